"""The wording of a text, as far as it carries facts: words, numbers and signs in order, without punctuation and case.

Two wordings tell the same only if they can be laid side by side, word upon word, with nothing over: the same word, a
form of it that its language lists as such, or a filler that one of them leaves out. Whatever else differs may be a
fact: a number, a name, an opposite, another order, another case, another tense, one or several (spec T6, ruling 13).
"""

from __future__ import annotations

import itertools
import operator
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple

from madeleine.memory.text.lexicon import Lexicon, words_of_lexicon_table_entry
from madeleine.memory.text.reading import AnalysedText, canonical_number_text
from madeleine.memory.text.retold_forms import unify_spelling_and_past_tense
from madeleine.memory.text.scripts import HAN_AND_KANA_CHAR_CLASS, HAN_OR_KANA_CHAR_PATTERN

_OPTIONAL_ARABIC_MARK_PATTERN = re.compile("[\u064b-\u0652\u0670\u0640]")
_NUMBER_WORD_OR_SIGN_PATTERN = re.compile(
    r"(?P<number>(?:(?<![\w)])[-−–](?=\d))?\d+(?:[.,:/\-]\d+)*)"
    rf"|(?P<word>(?:[^\W\d_]|{_OPTIONAL_ARABIC_MARK_PATTERN.pattern})+)|(?P<sign>[^\w\s])"
)
_HAN_OR_KANA_CHAR_OR_OTHER_RUN_PATTERN = re.compile(f"{HAN_OR_KANA_CHAR_PATTERN.pattern}|[^{HAN_AND_KANA_CHAR_CLASS}]+")
"""Each sign of a script without spaces is taken by itself."""
_MEANINGFUL_SIGNS = frozenset("%#@&/\\‰")
"""Of punctuation. Symbols (currencies, +, <, =, °, emoji) tell as well."""
MIN_INFLECTED_STEM_LETTERS = 3
"""Letters that two forms of a word share at their beginning."""
MIN_INFLECTED_STEM_JAMO = 1
"""The same in Korean, where the endings have their vowels: 온다 and 와요."""
MIN_WORDS_PROVING_MISSING_ACCENTS = 2
"""Words that must have accents in one text and none in the other: then the other was typed without accents, and
`papa` is `papá`. One alone may be another word."""


class NormalizedWordToken(NamedTuple):
    """`form`: in lower case, with accents; a number in digits. `name`: it has a capital."""

    form: str
    is_number: bool = False
    name: bool = False

    @property
    def unaccented_form(self) -> str:
        return _word_without_latin_accents(self.form)


MIN_GRAMMATICAL_CASE_CHANGES_FOR_NEW_ROLES = 2
"""Words in another case by which the roles may have changed; one alone cannot."""
MAX_WORDS_FROM_REPORTING_VERB_TO_CLAUSE = 5
"""Words between a verb of saying and the clause that it introduces: told the people of Dundee that."""
WordTokens = Sequence[NormalizedWordToken]


@dataclass(frozen=True)
class WordingForComparison:
    """The words of a text that carry facts. `beside`: the text that it is compared with, by which the languages are
    told, too."""

    text: str
    beside: str = ""

    @cached_property
    def analysed_text(self) -> AnalysedText:
        return AnalysedText(self.text, self.beside)

    @cached_property
    def tokens(self) -> tuple[NormalizedWordToken, ...]:
        names = frozenset(word.low for word in self.analysed_text.words if word.is_capitalised)
        return tuple(
            self._tokenize_text(
                unify_spelling_and_past_tense(self.analysed_text.normalized_text, self.analysed_text.lexicons), names
            )
        )

    @staticmethod
    def _tokenize_text(text: str, names: frozenset[str] = frozenset()) -> Iterator[NormalizedWordToken]:
        for match in _NUMBER_WORD_OR_SIGN_PATTERN.finditer(text):
            if number := match["number"]:
                yield NormalizedWordToken(re.sub("^[−–]", "-", canonical_number_text(number)), is_number=True)
            elif word := match["word"]:
                form = unicodedata.normalize("NFC", word.casefold().replace("ı", "i"))
                for run in (form,) if form.isascii() else _HAN_OR_KANA_CHAR_OR_OTHER_RUN_PATTERN.findall(form):
                    yield NormalizedWordToken(run, name=form in names)
            elif match["sign"] in _MEANINGFUL_SIGNS or unicodedata.category(match["sign"]) in {"Sm", "Sc", "So"}:
                yield NormalizedWordToken(match["sign"])

    @cached_property
    def tokens_without_fillers(self) -> tuple[NormalizedWordToken, ...]:
        """Without fillers."""
        fillers = _lexicon_words_for_retellings(self.analysed_text.lexicons, "fillers")
        return tuple(token for token in self.tokens if token.form not in fillers)

    @cached_property
    def comparison_key(self) -> str:
        """Equal for texts that differ in case and punctuation alone. Nothing is respelt: a pattern may need punctuation
        that the other text has lost."""
        return " ".join(token.form for token in self._tokenize_text(self.analysed_text.normalized_text))

    @cached_property
    def comparison_key_without_optional_spaces(self) -> str:
        """The key, without spaces between words where the language leaves them to the writer."""
        free = any(
            _lexicon_entries_for_retellings(lexicon).get("spaces_are_free") for lexicon in self.analysed_text.lexicons
        )
        return re.sub(r"(?<=[^\W\d_]) (?=[^\W\d_])", "", self.comparison_key) if free else self.comparison_key


def have_equivalent_wording(first: str, second: str) -> bool:
    """Whether two texts have the same words in the same order but for fillers and forms that tell nothing. A question
    is no statement. Takes a tenth of a second for two long ones."""
    mine, theirs = WordingForComparison(first, second), WordingForComparison(second, first)
    if mine.analysed_text.ends_with_question_mark != theirs.analysed_text.ends_with_question_mark:
        return False
    if (
        mine.comparison_key == theirs.comparison_key
        or mine.comparison_key_without_optional_spaces == theirs.comparison_key_without_optional_spaces
    ):
        return True
    one_sentence = len(mine.analysed_text.sentences) == len(theirs.analysed_text.sentences) == 1
    return WordingAlignment(mine.analysed_text.lexicons, mine.tokens, theirs.tokens, one_sentence).is_complete


@dataclass(frozen=True)
class WordingAlignment:
    """Two wordings side by side, read by the lexicons of their languages."""

    lexicons: tuple[Lexicon, ...]
    first: WordTokens
    second: WordTokens
    of_one_sentence: bool = True
    """Each: a sentence of its own after what was said is not reported."""

    @cached_property
    def is_complete(self) -> bool:
        """Every word of one has its counterpart at its place in the other, fillers aside."""
        generic = self._differ_only_as_generic_singular_and_plural(
            self.first, self.second
        ) or self._differ_only_as_generic_singular_and_plural(self.second, self.first)
        return (
            self._words_match_and_fillers_agree(self.first, self.second, self._words_match_but_for_reported_tense)
            or generic
        )

    def _words_match_and_fillers_agree(
        self, first: WordTokens, second: WordTokens, match: Callable[[WordTokens, WordTokens], bool]
    ) -> bool:
        mine, my_fillers = self._split_words_and_fillers(first)
        theirs, their_fillers = self._split_words_and_fillers(second)
        return (
            len(mine) == len(theirs)
            and match(mine, theirs)
            and all(
                self._shorter_fillers_occur_in_longer(*gaps) for gaps in zip(my_fillers, their_fillers, strict=True)
            )
        )

    def _words_match_but_for_reported_tense(self, mine: WordTokens, theirs: WordTokens) -> bool:
        """After a verb of saying in the past the tense may shift: she said that it is, that it was. Elsewhere another
        tense is another fact; and where two words change their case, they may have changed roles."""
        reported, cases = False, 0
        past = _lexicon_words_for_retellings(self.lexicons, "reported")
        for word, other in zip(mine, theirs, strict=True):
            introduces = {word.form, other.form} & self._reporting_verbs_before_clause
            if introduces and (word.form, other.form) in _listed_form_pairs(self.lexicons, "reporting"):
                reported |= not past.isdisjoint((word.form, other.form))
            elif self._are_equivalent_tokens(word, other):
                reported |= not past.isdisjoint(introduces)
            elif self._is_verb_of_collective_in_other_number(word, other):
                continue
            elif self._are_listed_forms_or_endings(word, other, "cases", "case_endings"):
                cases += 1
            elif not (reported and self._is_tense_shift_after_reporting_verb(word, other)):
                return False
        return cases < MIN_GRAMMATICAL_CASE_CHANGES_FOR_NEW_ROLES

    def _differ_only_as_generic_singular_and_plural(self, singular: WordTokens, plural: WordTokens) -> bool:
        """Whether they differ as "an owl hunts" and "owls hunt" do, in a subject and its verb in the present: one
        has an indefinite article, or the many have none."""
        indefinite, articles = (
            _lexicon_words_for_retellings(self.lexicons, name) for name in ("indefinite", "articles")
        )
        opens = [tokens[0].form if tokens else "" for tokens in (singular, plural)]
        bare = opens[0] in articles and opens[1] not in articles | indefinite
        if not (bare or opens[0] in indefinite) or opens[1] in indefinite:
            return False
        return self._words_match_and_fillers_agree(
            singular[1:], plural[opens[1] in articles :], self._differ_only_in_verb_and_noun_number
        )

    def _differ_only_in_verb_and_noun_number(self, singular: WordTokens, plural: WordTokens) -> bool:
        others = [pair for pair in zip(singular, plural, strict=True) if not self._are_equivalent_tokens(*pair)]
        verbs = [
            self._are_listed_forms_or_endings(*pair, "agreement", "agreement_endings", in_order=True) for pair in others
        ]
        nouns = [
            self._are_listed_forms_or_endings(*pair, "plurals", "plural_endings", in_order=True) for pair in others
        ]
        return any(verbs) and all(map(operator.or_, verbs, nouns))

    def _is_verb_of_collective_in_other_number(self, mine: NormalizedWordToken, theirs: NormalizedWordToken) -> bool:
        """The team is, the team are: the verb of a sentence that a collective noun opens may be singular or plural.
        Where nouns take the same ending, only listed verbs do."""
        return (
            self._begin_with_same_collective_noun
            and self._are_listed_forms_or_endings(mine, theirs, "agreement", "agreement_endings")
            and not self._are_listed_forms_or_endings(mine, theirs, "plurals", "plural_endings")
        )

    @cached_property
    def _begin_with_same_collective_noun(self) -> bool:
        articles = _lexicon_words_for_retellings(self.lexicons, "articles") | _lexicon_words_for_retellings(
            self.lexicons, "indefinite"
        )
        opening = [
            next((one.form for one in text if one.form not in articles), "") for text in (self.first, self.second)
        ]
        return opening[0] == opening[1] and opening[0] in _lexicon_words_for_retellings(self.lexicons, "collectives")

    def _split_words_and_fillers(
        self, tokens: WordTokens
    ) -> tuple[list[NormalizedWordToken], list[list[NormalizedWordToken]]]:
        """(words that tell, fillers before each of them and after the last)."""
        telling: list[NormalizedWordToken] = []
        fillers: list[list[NormalizedWordToken]] = [[]]
        known = _lexicon_words_for_retellings(self.lexicons, "fillers")
        for token in tokens:
            if token.form in known:
                fillers[-1].append(token)
            else:
                telling.append(token)
                fillers.append([])
        return telling, fillers

    def _shorter_fillers_occur_in_longer(self, mine: WordTokens, theirs: WordTokens) -> bool:
        """Fillers may be left out; in place of one another they are case, gender or number: der, den."""
        shorter, longer = sorted((mine, theirs), key=len)
        rest = iter(longer)
        return all(any(self._fillers_are_interchangeable(word, other) for other in rest) for word in shorter)

    def _fillers_are_interchangeable(self, mine: NormalizedWordToken, theirs: NormalizedWordToken) -> bool:
        return (
            self._are_equivalent_tokens(mine, theirs)
            or self._is_tense_shift_after_reporting_verb(mine, theirs)
            or self._is_verb_of_collective_in_other_number(mine, theirs)
        )

    def _is_tense_shift_after_reporting_verb(self, mine: NormalizedWordToken, theirs: NormalizedWordToken) -> bool:
        return bool(self._reporting_verbs_before_clause) and self._are_listed_forms_or_endings(
            mine, theirs, "tenses", "tense_endings"
        )

    @cached_property
    def _reporting_verbs_before_clause(self) -> frozenset[str]:
        """Verbs of saying that a clause follows soon in one of the texts: reported that. Not: speaks French."""
        verbs = {word for pair in _listed_form_pairs(self.lexicons, "reporting") for word in pair}
        clauses = _lexicon_words_for_retellings(self.lexicons, "clauses")
        return frozenset(
            token.form
            for tokens in (self.first, self.second)
            for at, token in enumerate(tokens)
            if self.of_one_sentence
            and token.form in verbs
            and any(word.form in clauses for word in tokens[at + 1 : at + 1 + MAX_WORDS_FROM_REPORTING_VERB_TO_CLAUSE])
        )

    def _are_equivalent_tokens(self, mine: NormalizedWordToken, theirs: NormalizedWordToken) -> bool:
        if mine.form == theirs.form:
            return True
        if mine.is_number or theirs.is_number:
            return self._digits_of_number_token(mine) == self._digits_of_number_token(theirs) != ""
        if self._may_ignore_accents and mine.unaccented_form == theirs.unaccented_form:
            return True
        unmarked = [_OPTIONAL_ARABIC_MARK_PATTERN.sub("", token.form) for token in (mine, theirs)]
        if unmarked[0] == unmarked[1]:
            # Vowel marks may be left out; other marks are another case or word.
            return mine.form in unmarked or theirs.form in unmarked
        return self._differ_only_in_listed_prefix(mine.form, theirs.form) or self._are_listed_forms_or_endings(
            mine, theirs, "forms", "endings"
        )

    def _are_listed_forms_or_endings(
        self,
        mine: NormalizedWordToken,
        theirs: NormalizedWordToken,
        forms: str,
        endings: str,
        *,
        in_order: bool = False,
    ) -> bool:
        if (mine.form, theirs.form) in _listed_form_pairs(self.lexicons, forms, in_order):
            return True
        are_names = mine.name and theirs.name and not self._nouns_are_capitalised
        known = _listed_form_pairs(self.lexicons, endings, in_order)
        return not are_names and differ_only_in_inflection(mine.form, theirs.form, known)

    def _digits_of_number_token(self, token: NormalizedWordToken) -> str:
        if token.is_number:
            return token.form
        return next((value for each in self.lexicons if (value := each.digits_by_number_word.get(token.form, ""))), "")

    def _differ_only_in_listed_prefix(self, mine: str, theirs: str) -> bool:
        return any(
            mine.removeprefix(article) == theirs.removeprefix(article)
            for article in _lexicon_words_for_retellings(self.lexicons, "beginnings")
        )

    @cached_property
    def _nouns_are_capitalised(self) -> bool:
        return all(lexicon.entries.get("nouns_capitalised") for lexicon in self.lexicons)

    @cached_property
    def _may_ignore_accents(self) -> bool:
        mine, theirs = self._accented_token_count(self.first), self._accented_token_count(self.second)
        if mine and theirs:
            return False
        tell = any(_lexicon_entries_for_retellings(lexicon).get("accents_tell") for lexicon in self.lexicons)
        return mine + theirs >= MIN_WORDS_PROVING_MISSING_ACCENTS or not tell

    @staticmethod
    def _accented_token_count(tokens: WordTokens) -> int:
        return sum(token.form != token.unaccented_form for token in tokens)


def differ_only_in_inflection(mine: str, theirs: str, endings: frozenset[tuple[str, str]]) -> bool:
    """Whether the words differ in an ending alone, and the two endings are listed together."""
    mine, theirs = unicodedata.normalize("NFD", mine), unicodedata.normalize("NFD", theirs)
    shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(mine, theirs, strict=False)))
    least = MIN_INFLECTED_STEM_JAMO if "\u1100" <= mine[:1] <= "\u11ff" else MIN_INFLECTED_STEM_LETTERS
    return any((mine[at:], theirs[at:]) in endings for at in range(least, shared + 1))


def _lexicon_words_for_retellings(lexicons: tuple[Lexicon, ...], name: str) -> frozenset[str]:
    return words_of_lexicon_table_entry(lexicons, "retold", name)


@lru_cache(maxsize=2_000)
def _listed_form_pairs(lexicons: tuple[Lexicon, ...], name: str, in_order: bool = False) -> frozenset[tuple[str, str]]:
    return frozenset(pair for lexicon in lexicons for pair in _form_pairs_of_lexicon_lines(lexicon, name, in_order))


@cache
def _form_pairs_of_lexicon_lines(lexicon: Lexicon, name: str, in_order: bool) -> frozenset[tuple[str, str]]:
    """Any two words of a line, or with the first before the second; `-` is no ending at all."""
    text = str(_lexicon_entries_for_retellings(lexicon).get(name, ""))
    lines = map(str.split, (unicodedata.normalize("NFD", text) if "endings" in name else text).splitlines())
    words = ([word.replace("-", "") for word in line] for line in lines)
    pairs = itertools.combinations if in_order else itertools.permutations
    return frozenset(pair for line in words for pair in pairs(line, 2))


def _lexicon_entries_for_retellings(lexicon: Lexicon) -> dict[str, Any]:
    return dict(lexicon.entries.get("retold", {}))


@lru_cache(maxsize=10_000)
def _word_without_latin_accents(word: str) -> str:
    """Latin letters alone lose their marks: й is no и, and が is no か."""
    if word.isascii():
        return word
    parts = unicodedata.normalize("NFD", word.replace("ё", "е").replace("ß", "ss"))
    return unicodedata.normalize("NFC", re.sub(r"(?<=[a-z])[\u0300-\u036f]+", "", parts))
