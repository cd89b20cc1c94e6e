"""Words of a query that no text holds, and what was probably meant, looked at when nothing else is found (ruling 19,
ADR 0034): another form of the word (ADR 0079), what is told of whoever is asked for (ADR 0112), a typing error, or,
where words are joined to one (`compounds` of a lexicon), a part of a word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain

from madeleine.memory.rules.searching import SPACED_SCRIPT_CHAR_CLASS, UNSPACED_SCRIPT_RUN_PATTERN
from madeleine.memory.text.content_words import (
    content_words,
    lexicons_of_question,
    verb_or_adjective_mask,
    words_that_ask_or_join,
)
from madeleine.memory.text.lexicon import Lexicon, lexicons_for_script_of_text, nouns_have_capitals
from madeleine.memory.text.normalization import fold_text

MIN_CORRECTED_WORD_CHARS = 6
"""A shorter word has too many neighbours: `port` is `post`, `part` and `sort` at one error, `Mario` is `Maria`."""
MAX_CORRECTED_WORD_CHARS = 60
"""A longer one is no word; to compare two takes the product of their lengths."""
MIN_WORD_CHARS_FOR_TWO_TYPING_ERRORS = 9
MAX_RESPELT_WORDS = 10
"""Of a query: each is compared with every known word."""
MIN_COMPOUND_PART_CHARS = 4
"""Of each part: "Schwein" is no "Wein"."""
MAX_COMPOUND_LINKING_CHARS = 2
"""Between two parts: "Arbeitsamt", "Sonnenschirm"."""
MAX_DIFFERENT_ENDING_CHARS = 2
MIN_INFLECTED_WORD_CHARS = 4
"""Of a word and of its other forms: "pas" is none of "pasamos"."""
MIN_LISTED_INFLECTED_WORD_CHARS = 7
"""Of a word of a list, whose language and whose names are not known: "Carlos" is no form of "Carla"."""
MIN_STEM_CHARS = 3
MAX_WORD_CHARS_WITH_GENDER_VOWEL = 6
"""Up to which the last vowels may tell one thing from another ("hijo", "hija"); in a longer word they are an ending."""
_VOWELS = "aeiou"
_UNFOLDED_WORD_PATTERN = re.compile(r"\w+")

StemWordInLanguage = Callable[[str, str], str]
"""Returns the stem of a lower-case word in a language (its English name); the word itself where no rules are known."""


IsDictionaryWord = Callable[[str, str], bool]
"""Whether a word is one of a language (its code); False where no dictionary is known."""


def word_as_its_own_stem(word: str, language: str) -> str:
    """`StemWordInLanguage` that knows no rules."""
    return word


def no_dictionary_word(word: str, language: str) -> bool:
    """`IsDictionaryWord` that knows no dictionary."""
    return False


_FOLDED_SPACED_WORD_PATTERN = re.compile(f"[{SPACED_SCRIPT_CHAR_CLASS}]+")


def spelling_corrections_from_texts(
    words: Sequence[str],
    texts: Iterable[str],
    query: str = "",
    stem: StemWordInLanguage = word_as_its_own_stem,
    is_word: IsDictionaryWord = no_dictionary_word,
) -> Mapping[str, str]:
    """The word of `texts` that each of these words was probably meant to be, or the words that it joins; no entry for a
    word that the texts hold, nor for one with nothing like it. All are folded. `query`: where the words are from; ""
    for a list of words, which may be of any language of their script, and are not taken apart.

    A word like another begins with the same letter and is one error away, or two from 9 letters: a letter that is
    missing, added, replaced, or swapped with its neighbour. The commonest of equally near words is taken. Words with
    digits are names of other things, not typing errors, and a word of the query's language is none either: "leitet" is
    not meant to be "leidet". (Of a list of words the language is not known.)
    """
    lexicons = lexicons_of_question(query) if query else lexicons_for_script_of_text(" ".join(words))
    nouns, verbs, prefixes = _nouns_verbs_and_participle_prefixes(words, query, lexicons if query else ())
    inflected = _possibly_inflected_words(words, query, lexicons)
    doers = _possible_doers(words, query, lexicons)
    looked_up = nouns | verbs | inflected | doers
    unknown = [word for word in dict.fromkeys(words) if word in looked_up or _may_be_misspelt(word)]
    if not unknown:
        return {}
    words_of_texts = [_FOLDED_SPACED_WORD_PATTERN.findall(text) for text in texts]
    counts = Counter(chain.from_iterable(words_of_texts))
    known = "\n".join(counts)
    corrections: dict[str, str] = {}
    for word in unknown[:MAX_RESPELT_WORDS]:
        if word in counts:
            continue
        meant = None
        if word in nouns:
            meant = _commonest_compound_ending_with_word(word, counts) or _compound_parts_in_one_text(
                word, counts, words_of_texts
            )
        if word in verbs:
            meant = _commonest_verb_of_participle(word, counts, prefixes)
        if meant is None and word in inflected:
            meant = _commonest_word_of_same_stem(word, counts, lexicons, stem)
        if meant is None and word in doers:
            meant = _commonest_deed_of_doer(word, counts, lexicons, stem)
        if meant is None and word not in known and _may_be_misspelt(word):
            is_right = query and any(is_word(word, lexicon.language) for lexicon in lexicons)
            meant = None if is_right else _nearest_word(word, counts)
        if meant is not None:
            corrections[word] = meant
    return corrections


def _nouns_verbs_and_participle_prefixes(
    words: Sequence[str], query: str, lexicons: Sequence[Lexicon]
) -> tuple[set[str], set[str], tuple[str, ...]]:
    """Of a query in a language that joins words; nothing in another. Where nouns have no capitals, every word may be
    one."""
    if not lexicons or not all(lexicon.entries.get("compounds") for lexicon in lexicons):
        return set(), set(), ()
    plain = {
        word for word in words if MIN_COMPOUND_PART_CHARS <= len(word) <= MAX_CORRECTED_WORD_CHARS and word.isalpha()
    }
    if not nouns_have_capitals(lexicons):
        return plain, set(), ()
    capitalised = {fold_text(piece) for piece in _UNFOLDED_WORD_PATTERN.findall(query) if piece[0].isupper()}
    asked = content_words(query)
    small = {
        fold_text(word) for word, is_verb in zip(asked, verb_or_adjective_mask(query, asked), strict=True) if is_verb
    }
    prefixes = {prefix for lexicon in lexicons for prefix in lexicon.words("participle_prefix")}
    return plain & capitalised, plain & small, tuple(sorted(prefixes))


def _possibly_inflected_words(words: Sequence[str], query: str, lexicons: Sequence[Lexicon]) -> set[str]:
    """Those that may stand in another form in the texts. None of a query that may be English, whose stems the index
    compares. A name has no forms."""
    if not lexicons or (query and any(lexicon.language == "en" for lexicon in lexicons)):
        return set()
    names = set() if nouns_have_capitals(lexicons) else _folded_capitalised_words_inside(query)
    least = MIN_INFLECTED_WORD_CHARS if query else MIN_LISTED_INFLECTED_WORD_CHARS
    return {
        word
        for word in words
        if least <= len(word) <= MAX_CORRECTED_WORD_CHARS and word.isalpha() and word not in names
    }


def _folded_capitalised_words_inside(query: str) -> set[str]:
    """Words with a capital that do not begin the query, so that they may be names."""
    return {fold_text(piece) for piece in _UNFOLDED_WORD_PATTERN.findall(query)[1:] if piece[0].isupper()}


def _commonest_word_of_same_stem(
    word: str, counts: Mapping[str, int], lexicons: Iterable[Lexicon], stem: StemWordInLanguage
) -> str | None:
    """Of a short word one that ends with other vowels is another thing: "hijo" and "hija", "puerto" and "puerta"."""
    alike = [
        other
        for other in counts
        if other[:MIN_STEM_CHARS] == word[:MIN_STEM_CHARS] and len(other) >= MIN_INFLECTED_WORD_CHARS
        if len(word) > MAX_WORD_CHARS_WITH_GENDER_VOWEL or word.rstrip(_VOWELS) != other.rstrip(_VOWELS)
    ]
    forms = (
        (-counts[other], other)
        for lexicon in lexicons
        if len(root := stem(word, lexicon.entries["name"])) >= MIN_STEM_CHARS
        for other in alike
        if stem(other, lexicon.entries["name"]) == root and other not in _folded_words_that_ask_or_join(lexicon)
    )
    return min(forms, default=(0, None))[1]


def _possible_doers(words: Sequence[str], query: str, lexicons: Sequence[Lexicon]) -> set[str]:
    """Words for who does something ("cleaner"), of a question for somebody: a shower is nobody who shows anything. A
    name is none."""
    asked, names = _UNFOLDED_WORD_PATTERN.findall(query.lower()), _folded_capitalised_words_inside(query)
    endings = {
        ending
        for lexicon in lexicons
        if not lexicon.words("asks_for_somebody").isdisjoint(asked)
        for ending in lexicon.words("doer_endings")
    }
    return {
        word
        for word in words
        if word.removesuffix("s").endswith(tuple(endings)) and word.isalpha() and word not in names
        if MIN_INFLECTED_WORD_CHARS <= len(word) <= MAX_CORRECTED_WORD_CHARS
    }


def _commonest_deed_of_doer(
    word: str, counts: Mapping[str, int], lexicons: Iterable[Lexicon], stem: StemWordInLanguage
) -> str | None:
    """What is told of whoever is asked for: "cleans" or "cleaned" of the cleaner, not "clean"."""
    found: list[tuple[int, str]] = []
    for lexicon in lexicons:
        language, deed_endings = lexicon.entries["name"], tuple(lexicon.words("deed_endings"))
        doer = stem(word, language)
        roots = [doer.removesuffix(ending) for ending in lexicon.words("doer_endings") if doer.endswith(ending)]
        deeds = {stem(root + vowel, language) for root in roots if len(root) >= MIN_STEM_CHARS for vowel in ("", "e")}
        found += (
            (-count, other)
            for other, count in counts.items()
            if other[:MIN_STEM_CHARS] == word[:MIN_STEM_CHARS] and other.endswith(deed_endings)
            if stem(other, language) in deeds
        )
    return min(found, default=(0, None))[1]


@cache
def _folded_words_that_ask_or_join(lexicon: Lexicon) -> frozenset[str]:
    return frozenset(map(fold_text, words_that_ask_or_join(lexicon)))


def _commonest_compound_ending_with_word(word: str, counts: Mapping[str, int]) -> str | None:
    """The longer word that ends with this one and so is a kind of it: "Pflegeheim" of "Heim"."""
    kinds = (
        (-count, other)
        for other, count in counts.items()
        if other.endswith(word) and len(other) >= len(word) + MIN_COMPOUND_PART_CHARS and other.isalpha()
    )
    return min(kinds, default=(0, None))[1]


def _compound_parts_in_one_text(
    word: str, counts: Mapping[str, int], words_of_texts: Sequence[Sequence[str]]
) -> str | None:
    """The words that this one joins, "Zahnarzt Termin" of "Zahnarzttermin", if one text holds both: what two texts tell
    is something else."""
    pairs = (
        (word[:end], word[end + joint :])
        for end in range(MIN_COMPOUND_PART_CHARS, len(word) - MIN_COMPOUND_PART_CHARS + 1)
        for joint in range(MAX_COMPOUND_LINKING_CHARS + 1)
    )
    known = [pair for pair in pairs if len(pair[1]) >= MIN_COMPOUND_PART_CHARS and all(part in counts for part in pair)]
    together = [
        f"{first} {last}" for first, last in known if any(first in one and last in one for one in words_of_texts)
    ]
    return max(together, key=len, default=None)


def _commonest_verb_of_participle(word: str, counts: Mapping[str, int], prefixes: Iterable[str]) -> str | None:
    stems = [word.removeprefix(prefix) for prefix in prefixes if word.startswith(prefix)]
    forms = (
        (-count, other) for other, count in counts.items() if any(_is_form_of_same_word(stem, other) for stem in stems)
    )
    return min(forms, default=(0, None))[1]


def _is_form_of_same_word(word: str, other: str) -> bool:
    """Whether they differ in their endings alone."""
    # Most words differ here, at no further cost.
    if word[:MIN_COMPOUND_PART_CHARS] != other[:MIN_COMPOUND_PART_CHARS]:
        return False
    least = max(MIN_COMPOUND_PART_CHARS, max(len(word), len(other)) - MAX_DIFFERENT_ENDING_CHARS)
    return word[:least] == other[:least]


def _may_be_misspelt(word: str) -> bool:
    return (
        MIN_CORRECTED_WORD_CHARS <= len(word) <= MAX_CORRECTED_WORD_CHARS
        and word.isalpha()
        and not UNSPACED_SCRIPT_RUN_PATTERN.search(word)
    )


def _nearest_word(word: str, counts: Mapping[str, int]) -> str | None:
    most = 1 + (len(word) >= MIN_WORD_CHARS_FOR_TWO_TYPING_ERRORS)
    near = (
        (errors, -count, other)
        for other, count in counts.items()
        if other[0] == word[0]
        and abs(len(other) - len(word)) <= most
        and other.isalpha()
        and (errors := typing_error_count(word, other)) <= most
    )
    return min(near, default=(0, 0, None))[2]


def typing_error_count(word: str, other: str) -> int:
    """Optimal string alignment distance: the fewest letters to insert, delete, replace or swap with their neighbour,
    none of them twice."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(word, start=1):
        row = [i]
        for j, facing in enumerate(other, start=1):
            errors = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != facing))
            if i > 1 and j > 1 and letter == other[j - 2] and facing == word[i - 2]:
                errors = min(errors, before[j - 2] + 1)
            row.append(errors)
        before, last = last, row
    return last[-1]
