"""Find what a text only quotes from memory (spec T6): it was said once, and is not to be remembered again.

Two signs of a quote: the marks that recalled text comes in (tags, lines of a prompt block, a tool's answer as JSON),
and words that a memory says already. The second is compared sentence by sentence, and only where no fact differs: a
number, a name, a day or a negation more makes it news.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Any

from madeleine.memory.model import MEMORY_CATEGORIES, DatedAction, Memory, date_of_timeline_entry
from madeleine.memory.rules.storing.likeness import FACT_LEXICON_LIST_NAMES, extract_numbers_names_and_fact_words
from madeleine.memory.text.lexicon import lexicons_for_script_of_text, text_without_lexicon_pattern
from madeleine.memory.text.reading import AnalysedText
from madeleine.memory.text.scripts import HAN_OR_KANA_CHAR_PATTERN, HIRAGANA_RUN_PATTERN
from madeleine.memory.text.sentences import split_sentences
from madeleine.memory.text.terms import ENGLISH_STOP_WORDS
from madeleine.memory.text.wording import WordingForComparison

RECALLED_TEXT_TAG_NAMES = ("recall", "memory", "context")
"""Tags between which memories stand in a prompt (`memory.rules.prompting`)."""
MIN_PARAPHRASE_WORD_SHARE = 0.75
"""Share of its words from which a sentence of the assistant counts as a paraphrase of a memory."""
MIN_REPEATED_STATEMENT_WORDS = 3
"""Fewer words occur in many memories by chance: they count only if they are all that a memory says."""

_RECALLED_TEXT_OPENING_TAG_PATTERN = re.compile(
    rf"<\s{{0,3}}({'|'.join(RECALLED_TEXT_TAG_NAMES)})\b[^<>]{{0,200}}>", re.I
)
_CLOSING_TAG_PATTERN_BY_NAME = {
    name: re.compile(rf"<\s{{0,3}}/\s{{0,3}}{name}\s{{0,3}}>", re.I) for name in RECALLED_TEXT_TAG_NAMES
}
_MEMORY_LINE_OF_PROMPT_PATTERN = re.compile(
    rf"^[ \t>*-]{{0,8}}\[(?:{'|'.join(one.upper() for one in MEMORY_CATEGORIES)})\] .*$", re.M
)
_KEY_SETS_OF_OWN_TOOL_ANSWERS = (
    {"id", "text", "when", "score"},
    {"id", "text", "when", "source"},
    {"provenance", "id"},
    {"total_tokens", "budget_used"},
    {"snippet", "source"},
)
"""Keys that occur together in the answers of our own tools, of earlier versions too, at any depth. A memory is also
known by its short id beside a date."""
_SHORT_MEMORY_ID_PATTERN = re.compile(r"m[1-9]\d{0,9}")
_JSON_OPENING_BRACKET_PATTERN = re.compile(r"[{\[]")
_MAX_JSON_BEGINNINGS_TRIED = 50
"""Beginnings of JSON that are tried in one text."""

_RECALL_FRAGMENT_SEPARATOR_OR_LINE_BREAK_PATTERN = re.compile(r"(?<!\s)\s++/\s++|[\r\n]+")
"""Between the fragments of a recall, and between lines."""
_INFLECTION_ENDING_PATTERN = re.compile(r"(?<=\w{3})(?:ing|ed|es|en|er|e|s|n|t)$")
REPORTING_AND_FUNCTION_WORD_LISTS = ("reporting", "function_words")
"""Of a lexicon: words that only say that somebody speaks, remembers or is meant; they make no sentence a new one."""
_LEXICON_LISTS_VARIABLE_IN_PARAPHRASE = ("persons", "weak_opposites", *REPORTING_AND_FUNCTION_WORD_LISTS)
"""Words that change when a sentence is put in other words."""
_HANGUL_SYLLABLE_PATTERN = re.compile(r"[\uac00-\ud7af]")
_ANY_WORD_PATTERN = re.compile(r"\w+")


class StatementForRepetitionCheck:
    """One thing that was said, by a memory or in a conversation. `about`: its actors, dates and setting, which a
    repetition may name or omit."""

    def __init__(self, text: str, about: str = "") -> None:
        self.text = text
        self.reading = AnalysedText(text)
        self.plain = " ".join(_ANY_WORD_PATTERN.findall(unicodedata.normalize("NFKC", text).casefold()))
        self.stems = stems_of_content_words(text)
        self.numbers = frozenset(self.reading.numbers)
        self._about = AnalysedText(about)

    @cached_property
    def words_including_context(self) -> frozenset[str]:
        """Every word of it, as it stands."""
        return self.reading.words_and_parts_before_apostrophe | self._about.words_and_parts_before_apostrophe

    @cached_property
    def numbers_including_context(self) -> frozenset[str]:
        return self.numbers | frozenset(self._about.numbers)

    @cached_property
    def names(self) -> frozenset[str]:
        """Capitalised words; the first word may be a name or not."""
        opening = [word.stem for word in self.reading.words[:1] if word.is_capitalised]
        return (
            (extract_numbers_names_and_fact_words(self.reading).names | frozenset(opening))
            - _words_in_lexicon_lists(self.reading, *REPORTING_AND_FUNCTION_WORD_LISTS)
            - ENGLISH_STOP_WORDS
        )

    @cached_property
    def amount_day_and_negation_words(self) -> frozenset[str]:
        """Words for amounts, days, negations and opposites."""
        return frozenset(self.reading.words_in_lexicon_lists(*FACT_LEXICON_LIST_NAMES)) - _words_in_lexicon_lists(
            self.reading, *_LEXICON_LISTS_VARIABLE_IN_PARAPHRASE
        )

    @cached_property
    def caseless_script_fragments(self) -> frozenset[str]:
        return content_fragments_in_caseless_scripts(self.text)

    @cached_property
    def caseless_script_fragments_with_context(self) -> frozenset[str]:
        return content_fragments_in_caseless_scripts(f"{self.text} {self._about.text}", single=True)

    @cached_property
    def significant_word_stems(self) -> tuple[str, ...]:
        """Numbers and words in order, without their endings, and without those that only say who speaks or is meant; of
        scripts without case every sign."""
        optional = _words_in_lexicon_lists(self.reading, "persons", "roles", "reporting")
        parts: list[str] = []
        for token in WordingForComparison(_without_unspaced_reporting_phrases(self.text)).tokens_without_fillers:
            if not token.is_number and token.form.upper() == token.form.lower():
                parts += token.form
            elif token.name or token.form not in optional:
                parts.append(_INFLECTION_ENDING_PATTERN.sub("", token.form))
        return tuple(parts)

    @cached_property
    def character_pairs_in_caseless_scripts(self) -> frozenset[str]:
        """Of characters, where the script has no case."""
        caseless = (
            word.text
            for word in AnalysedText(_without_unspaced_reporting_phrases(self.text)).words
            if word.is_in_caseless_script
        )
        return frozenset(word[at : at + 2] for word in caseless for at in range(max(1, len(word) - 1)))


def _words_in_lexicon_lists(reading: AnalysedText, *lists: str) -> frozenset[str]:
    return frozenset(reading.words_in_lexicon_lists(*lists))


def statements_of_memory(memory: Memory) -> tuple[StatementForRepetitionCheck, ...]:
    """All that a memory says: its action, feeling, lesson, lines and timeline, each sentence and each whole."""
    scene = memory.scene
    about = " ".join(
        (*scene.actors, *(date_of_timeline_entry(item) for item in scene.when), scene.setting, memory.category)
    )
    wholes = [scene.action, memory.feeling, memory.lesson, *scene.dialogue, *scene.sensory]
    wholes += [item.action for item in scene.when if isinstance(item, DatedAction)]
    parts = [part for whole in wholes for part in (whole, *split_into_sentences_and_lines(whole))]
    return tuple(StatementForRepetitionCheck(part, about) for part in dict.fromkeys(parts) if part)


# --- marks ------------------------------------------------------------------------------------------------------


def without_recalled_text(text: str) -> str:
    """The text without what is marked as recalled: between our tags, lines of a prompt block, answers of our tools. An
    opening tag that nothing closes marks its own line."""
    return _MEMORY_LINE_OF_PROMPT_PATTERN.sub("", _without_json_tool_answers(_without_tagged_blocks(text))).strip()


def _without_tagged_blocks(text: str) -> str:
    kept: list[str] = []
    at = 0
    unclosed: set[str] = set()
    while opening := _RECALLED_TEXT_OPENING_TAG_PATTERN.search(text, at):
        kept.append(text[at : opening.start()])
        name = opening[1].lower()
        closing = None if name in unclosed else _CLOSING_TAG_PATTERN_BY_NAME[name].search(text, opening.end())
        if closing is None:
            unclosed.add(name)
            end = text.find("\n", opening.end())
            at = len(text) if end < 0 else end
        else:
            at = closing.end()
    return "".join((*kept, text[at:]))


def _without_json_tool_answers(text: str) -> str:
    kept: list[str] = []
    at = 0
    for _ in range(_MAX_JSON_BEGINNINGS_TRIED):
        opening = _JSON_OPENING_BRACKET_PATTERN.search(text, at)
        if opening is None:
            break
        try:
            value, end = json.JSONDecoder().raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            value, end = None, opening.end()
        kept.append(text[at : opening.start() if _contains_own_tool_answer(value) else end])
        at = end
    return "".join((*kept, text[at:]))


def _contains_own_tool_answer(value: Any, depth: int = 4) -> bool:
    if isinstance(value, dict):
        return (
            any(keys <= value.keys() for keys in _KEY_SETS_OF_OWN_TOOL_ANSWERS)
            or ("when" in value and bool(_SHORT_MEMORY_ID_PATTERN.fullmatch(str(value.get("id")))))
            or (depth > 0 and any(_contains_own_tool_answer(part, depth - 1) for part in value.values()))
        )
    return (
        isinstance(value, list) and depth > 0 and any(_contains_own_tool_answer(part, depth - 1) for part in value[:20])
    )


# --- words ------------------------------------------------------------------------------------------------------


def split_into_sentences_and_lines(text: str) -> list[str]:
    """Sentences, lines, and the fragments of a recall, which ` / ` parts. None is empty."""
    pieces = (
        sentence
        for line in _RECALL_FRAGMENT_SEPARATOR_OR_LINE_BREAK_PATTERN.split(text)
        for sentence in split_sentences(line)
    )
    return [part for piece in pieces if (part := piece.strip(" \t-*•>\"'“”"))]


def without_quotes_from_memory(
    text: str, known: Sequence[StatementForRepetitionCheck], *, by_assistant: bool, speakers: Collection[str] = ()
) -> str:
    """The text without what is marked as recalled, and without sentences that a memory tells already.

    What the assistant says of a memory is a quote, however it is put. A person may say a thing a second time: one
    sentence that says no more than a memory stays, unless it says that it is remembered; two in one message are a
    quote.
    """
    unmarked_text = without_recalled_text(text)
    if not unmarked_text or not known:
        return unmarked_text
    said = split_into_sentences_and_lines(unmarked_text)
    share = MIN_PARAPHRASE_WORD_SHARE if by_assistant else 1.0
    quotes = {
        piece
        for piece in dict.fromkeys(said)
        if _repeats_any_known_statement(StatementForRepetitionCheck(piece), known, speakers, share)
    }
    if not by_assistant and len(quotes) < 2:
        quotes = {piece for piece in quotes if AnalysedText(piece).matches_lexicon_pattern("recalls")}
    return "\n".join(piece for piece in said if piece not in quotes) if quotes else unmarked_text


def repeats_known_text(
    text: str,
    known: Sequence[StatementForRepetitionCheck],
    speakers: Collection[str] = (),
    *,
    share: float = MIN_PARAPHRASE_WORD_SHARE,
) -> bool:
    """Whether every sentence of the text says no more than a known statement: no fact differs, and at least this share
    of its words is there. `speakers`: names that are no news."""
    said = [StatementForRepetitionCheck(piece) for piece in split_into_sentences_and_lines(text)]
    return bool(said) and all(_repeats_any_known_statement(piece, known, speakers, share) for piece in said)


def person_restates_known_text(
    text: str, known: Sequence[StatementForRepetitionCheck], speakers: Collection[str] = ()
) -> bool:
    """As `repeats_known_text`, for what a person has said: every word must be there, and nobody whom the memory names
    may be missing, for it may be told of somebody else."""
    said = [StatementForRepetitionCheck(piece) for piece in split_into_sentences_and_lines(text)]
    return bool(said) and all(any(_restates_statement(piece, one, speakers) for one in known) for piece in said)


def share_of_words_in_source(text: str, source: str) -> float:
    """The share of its words that the source has, too; 0 where it has no words with a meaning."""
    mine = stems_of_content_words(text)
    return len(mine & stems_of_content_words(source)) / len(mine) if mine else 0.0


def _restates_statement(
    said: StatementForRepetitionCheck, one: StatementForRepetitionCheck, speakers: Collection[str]
) -> bool:
    if not (
        _repeats_any_known_statement(said, [one], speakers, 1.0)
        and one.names <= said.words_including_context
        and _words_stand_in_same_order(said, one, speakers)
    ):
        return False
    return len(
        said.character_pairs_in_caseless_scripts & one.character_pairs_in_caseless_scripts
    ) >= MIN_PARAPHRASE_WORD_SHARE * len(said.character_pairs_in_caseless_scripts)


def _words_stand_in_same_order(
    said: StatementForRepetitionCheck, one: StatementForRepetitionCheck, speakers: Collection[str]
) -> bool:
    """Its words, the speakers' names aside, stand in the other in the same order: who trains whom, from what to what
    (ruling 13)."""
    spoken_names = StatementForRepetitionCheck(" ".join(speakers)).significant_word_stems
    rest = iter(one.significant_word_stems)
    return all(word in rest for word in said.significant_word_stems if word not in spoken_names)


def _repeats_any_known_statement(
    said: StatementForRepetitionCheck,
    known: Iterable[StatementForRepetitionCheck],
    speakers: Collection[str],
    share: float,
) -> bool:
    spoken_names = AnalysedText(" ".join(speakers))
    mine = said.stems - stems_of_content_words(spoken_names.text) if speakers else said.stems
    telling = len(mine | said.amount_day_and_negation_words | said.numbers)
    for one in known:
        if said.plain and said.plain == one.plain:
            return True
        # The share first: it is soon told, and rules most of them out.
        if (
            telling >= MIN_REPEATED_STATEMENT_WORDS
            and len(mine & one.stems) >= share * len(mine)
            and _adds_no_fact(said, one, spoken_names)
        ):
            return True
    return False


def _adds_no_fact(said: StatementForRepetitionCheck, one: StatementForRepetitionCheck, speakers: AnalysedText) -> bool:
    """No number, name, day or negation that the other has not, and none of the other's negations missing."""
    return (
        said.numbers <= one.numbers_including_context
        and said.names <= one.words_including_context | speakers.words_and_parts_before_apostrophe
        and said.amount_day_and_negation_words <= one.words_including_context
        and said.reading.contains_negation == one.reading.contains_negation
        and said.caseless_script_fragments
        <= one.caseless_script_fragments_with_context
        | content_fragments_in_caseless_scripts(speakers.text, single=True)
    )


def stems_of_content_words(text: str) -> frozenset[str]:
    """Of words with a meaning, and of scripts without case what stands for them."""
    reading = AnalysedText(_without_unspaced_reporting_phrases(text))
    frame = _words_in_lexicon_lists(reading, *REPORTING_AND_FUNCTION_WORD_LISTS) | ENGLISH_STOP_WORDS
    words = (word.stem for word in reading.words if not word.is_in_caseless_script and word.stem not in frame)
    return frozenset(
        _INFLECTION_ENDING_PATTERN.sub("", word) for word in words
    ) | content_fragments_in_caseless_scripts(text)


def content_fragments_in_caseless_scripts(text: str, *, single: bool = False) -> frozenset[str]:
    """What carries the meaning in scripts without case: of Chinese and Japanese, pairs of signs that are no hiragana,
    which change with the tone; of others the beginnings of words. `single`: each sign by itself, too."""
    if text.isascii():
        return frozenset()
    parts: set[str] = set()
    for word in (
        word.text
        for word in AnalysedText(_without_unspaced_reporting_phrases(text)).words
        if word.is_in_caseless_script
    ):
        if not HAN_OR_KANA_CHAR_PATTERN.search(word):
            parts.add(word[: 2 if _HANGUL_SYLLABLE_PATTERN.match(word) else 4])
            continue
        for run in HIRAGANA_RUN_PATTERN.split(word):
            parts.update(run[at : at + 2] for at in range(max(1, len(run) - 1)) if run)
            parts.update(run if single else ())
    return frozenset(parts)


def _without_unspaced_reporting_phrases(text: str) -> str:
    """Without the phrases of unspaced scripts that only say that somebody speaks, remembers or is meant."""
    text = unicodedata.normalize("NFKC", text)
    return text if text.isascii() else text_without_lexicon_pattern(text, "framing", lexicons_for_script_of_text(text))
