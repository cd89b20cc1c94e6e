"""What a statement is about, as its beginning tells: whether two of them speak of two things (ruling 14).

"The code of the safe is 2084" and "Code of the gate changed: 7731" begin with the same word, but each belongs to
something else; "Inés is allergic to nuts" and "Thiago is allergic to dipyrone" tell the same of two people. Neither
takes the other's place, however alike they are.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from madeleine.memory.rules.storing.statements import (
    VALUE_LEXICON_LISTS,
    StatementForComparison,
    cached_statement_for_comparison,
    stem_of_word_beginning,
)
from madeleine.memory.text.content_words import opening_ticket_key
from madeleine.memory.text.lexicon import words_of_lexicon_table_entry

MAX_WORDS_OF_OPENING_PHRASE = 12
MAX_WORDS_FROM_OF_TO_OWNER = 3
"""With up to two words between: "the code of our own gate"."""


class OpeningWord(NamedTuple):
    """`is_owner`: a word like "of" stands between it and the one before it."""

    stem: str
    is_owner: bool


def speak_of_two_things(new: StatementForComparison, old: StatementForComparison) -> bool:
    """Whether both begin with the same thing of something else, that the other one does not hold."""
    return bool(owners_named_only_in_first(old, new) and owners_named_only_in_first(new, old))


def owners_named_only_in_first(one: StatementForComparison, other: StatementForComparison) -> Set[str]:
    """Stems of that to which the thing belongs with which both begin: the gate, of "code of the gate"; not of "gate
    code", for "API spec" may be the OpenAPI spec. Not what the other statement holds anywhere, nor what ends the
    statement, which is rather its value ("works for Acme"), nor what stands behind more than the thing ("My sister
    works for Acme since May")."""
    mine, theirs = (_opening_words(statement.text) for statement in (one, other))
    stems = {word.stem for word in theirs}
    at = next((at for at, word in enumerate(mine) if word.stem in stems and not word.is_owner), None)
    if at is None:
        return frozenset()
    owners = {word.stem for word in takewhile(lambda word: word.is_owner, mine[at + 1 :])}
    return owners - other.word_stems


def name_different_tickets(new: StatementForComparison, old: StatementForComparison) -> bool:
    """Whether each begins with the key of another ticket of one project: "SILT-41", "SILT-133"."""
    (project, _, number), (other_project, _, other_number) = (
        opening_ticket_key(one.text).partition("-") for one in (new, old)
    )
    return project == other_project and number != other_number


def tells_same_of_other_subject(new: StatementForComparison, old: StatementForComparison) -> bool:
    """Whether each begins with a name that the other does not hold, and both go on with the same words."""
    names = (statement.is_possible_name(_opening_word_and_rest(statement.text)[0]) for statement in (new, old))
    if not all(names) or different_subjects_before_same_word(new, old) is None:
        return False
    my_rest, their_rest = (_opening_word_and_rest(statement.text)[1] for statement in (new, old))
    return bool({*my_rest} & {*their_rest} & new.content_words_by_stem.keys())


def different_subjects_before_same_word(
    one: StatementForComparison, other: StatementForComparison
) -> tuple[str, str] | None:
    """The content words that the two begin with, if neither statement holds a form of the other's and the same word
    follows: the dog and the cat, of "The dog is called Rex", "The cat is called Tom"."""
    (mine, my_rest), (theirs, their_rest) = map(_opening_word_and_rest, (one.text, other.text))
    if not (my_rest and their_rest and my_rest[0] == their_rest[0]):
        return None
    is_held = stem_of_word_beginning(mine) in other.word_stems or stem_of_word_beginning(theirs) in one.word_stems
    return None if is_held else (mine, theirs)


@lru_cache(maxsize=1_000)
def _opening_words(text: str) -> Sequence[OpeningWord]:
    """The content words that a memory's text begins with, up to the first that belongs to nothing before it. None where
    the language has no words like "of". The text is compared with several."""
    statement = cached_statement_for_comparison(text)
    lexicons = statement.analysed_text.lexicons
    if not (joining := words_of_lexicon_table_entry(lexicons, "retold", "of")):
        return ()
    content = {*statement.content_words} - statement.change_words - _value_words(statement)
    words: list[OpeningWord] = []
    joined = last = 0
    for at, word in enumerate(statement.words[:MAX_WORDS_OF_OPENING_PHRASE]):
        if word in content:
            last = at
            words.append(OpeningWord(stem_of_word_beginning(word), is_owner=joined > 0))
            joined = 0
        elif word in joining and words:
            joined = MAX_WORDS_FROM_OF_TO_OWNER
        elif words and (joined := joined - 1) <= 0:
            break
    is_all_told = all(word in statement.function_words for word in statement.words[last + 1 :])
    return [word for word in words if not (is_all_told and word.is_owner)]


def _value_words(statement: StatementForComparison) -> Set[str]:
    return {*statement.numbers, *statement.analysed_text.words_in_lexicon_lists(*VALUE_LEXICON_LISTS)}


@lru_cache(maxsize=1_000)
def _opening_word_and_rest(text: str) -> tuple[str, Sequence[str]]:
    """The first content word, and the stems of what follows it; "" and nothing else if that is a value."""
    statement = cached_statement_for_comparison(text)
    first = next(iter(statement.content_words), "")
    if not first or first in _value_words(statement):
        return "", ()
    rest = statement.words[statement.words.index(first) + 1 :]
    return first, [*map(stem_of_word_beginning, rest)]
