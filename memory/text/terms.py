"""The text that BM25 sees: of a memory, and of a query."""

from __future__ import annotations

import re
import unicodedata

from madeleine.memory.model import DatedAction, Memory, parse_moment

STOP_WORDS: frozenset[str] = frozenset(
    """
    a an the and or but if then else of at by for with about against between into through during before after above
    below to from up down in out on off over under again further once here there all any both each few more most other
    some such no nor not only own same so than too very s t d m o y can will just should now don ain aren couldn didn
    doesn hadn hasn haven isn ma mightn mustn needn shan shouldn wasn weren won wouldn i me my myself we our ours
    ourselves you your yours yourself yourselves he him his himself she her hers herself it its itself they them their
    theirs themselves what which who whom whose this that these those am is are was were be been being have has had
    having do does did doing would could ought cannot cant dont didnt doesnt isnt arent wasnt werent im ive id ill
    youre youve youd youll hes shes theyre theyve theyd theyll weve wed were thats whats whos lets wont wouldnt
    couldnt shouldnt hasnt havent hadnt how when where why may might must shall because as until while also yes yeah
    ok okay oh hey hi hello um well really get got go going
    """.split()
)
"""English function words, question words, pronouns and their contractions without apostrophes. Leaving the question
words and pronouns in costs 3 points of nDCG@10 on LoCoMo."""

_APOSTROPHES = re.compile("['\u2018\u2019\u02bc]")
_ACCENTS_FOR_APOSTROPHES = re.compile(r"(?<=\w)[\u00b4`\u2032](?=\w)")
"""As some keyboards write them; NFKC would make a space of the first."""


def normalize(text: str) -> str:
    """NFKC, apostrophes dropped (`don't` and `dont` are one word)."""
    return _APOSTROPHES.sub("", unicodedata.normalize("NFKC", _ACCENTS_FOR_APOSTROPHES.sub("", text)))


def memory_words(memory: Memory) -> str:
    """Dates in words, actors that the action does not name, then everything that was said of the scene."""
    scene = memory.scene
    moment = memory.happened_at
    dates = [f"{moment:%A} {moment.day} {moment:%B} {moment.year}"]
    for item in scene.when:
        text = item.date if isinstance(item, DatedAction) else item
        if parse_moment(text) is None:
            dates.append(text)
        if isinstance(item, DatedAction):
            dates.append(item.action)
    actors = [actor for actor in scene.actors if actor.casefold() not in scene.action.casefold()]
    parts = (
        *dates, *actors, scene.setting, scene.action, *scene.dialogue, *scene.sensory,
        memory.feeling, *memory.themes, memory.lesson,
    )  # fmt: skip
    return normalize(" ".join(part for part in parts if part))
