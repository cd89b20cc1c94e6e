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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple

from madeleine.memory.text.lexicon import Lexicon, words_of_lexicon_tables
from madeleine.memory.text.reading import AnalysedText, canonical_number_text
from madeleine.memory.text.scripts import HAN_AND_KANA_CHAR_CLASS, HAN_OR_KANA_SIGN_PATTERN

_ARABIC_MARKS = re.compile("[\u064b-\u0652\u0670\u0640]")
_TOKEN = re.compile(
    r"(?P<number>(?:(?<![\w)])[-−–](?=\d))?\d+(?:[.,:/\-]\d+)*)"
    rf"|(?P<word>(?:[^\W\d_]|{_ARABIC_MARKS.pattern})+)|(?P<sign>[^\w\s])"
)
_SIGN_OR_WORD = re.compile(f"{HAN_OR_KANA_SIGN_PATTERN.pattern}|[^{HAN_AND_KANA_CHAR_CLASS}]+")
"""Each sign of a script without spaces is taken by itself."""
_SIGNS_THAT_TELL = frozenset("%#@&/\\‰")
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
        return _without_accents(self.form)


MIN_WORDS_WITH_CHANGED_GRAMMATICAL_CASE = 2
"""Words in another case by which the roles may have changed; one alone cannot."""
MAX_WORDS_FROM_VERB_TO_CLAUSE = 5
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
        return tuple(self._tokens(_respelt(self.analysed_text.normalized_text, self.analysed_text.lexicons), names))

    @staticmethod
    def _tokens(text: str, names: frozenset[str] = frozenset()) -> Iterator[NormalizedWordToken]:
        for match in _TOKEN.finditer(text):
            if number := match["number"]:
                yield NormalizedWordToken(re.sub("^[−–]", "-", canonical_number_text(number)), is_number=True)
            elif word := match["word"]:
                form = unicodedata.normalize("NFC", word.casefold().replace("ı", "i"))
                for run in (form,) if form.isascii() else _SIGN_OR_WORD.findall(form):
                    yield NormalizedWordToken(run, name=form in names)
            elif match["sign"] in _SIGNS_THAT_TELL or unicodedata.category(match["sign"]) in {"Sm", "Sc", "So"}:
                yield NormalizedWordToken(match["sign"])

    @cached_property
    def tokens_without_fillers(self) -> tuple[NormalizedWordToken, ...]:
        """Without fillers."""
        fillers = _retold_words(self.analysed_text.lexicons, "fillers")
        return tuple(token for token in self.tokens if token.form not in fillers)

    @cached_property
    def comparison_key(self) -> str:
        """Equal for texts that differ in case and punctuation alone. Nothing is respelt: a pattern may need punctuation
        that the other text has lost."""
        return " ".join(token.form for token in self._tokens(self.analysed_text.normalized_text))

    @cached_property
    def unspaced_comparison_key(self) -> str:
        """The key, without spaces between words where the language leaves them to the writer."""
        free = any(_retold(lexicon).get("spaces_are_free") for lexicon in self.analysed_text.lexicons)
        return re.sub(r"(?<=[^\W\d_]) (?=[^\W\d_])", "", self.comparison_key) if free else self.comparison_key


def have_equivalent_wording(first: str, second: str) -> bool:
    """Whether two texts have the same words in the same order but for fillers and forms that tell nothing. A question
    is no statement. Takes a tenth of a second for two long ones."""
    mine, theirs = WordingForComparison(first, second), WordingForComparison(second, first)
    if mine.analysed_text.ends_with_question_mark != theirs.analysed_text.ends_with_question_mark:
        return False
    if mine.comparison_key == theirs.comparison_key or mine.unspaced_comparison_key == theirs.unspaced_comparison_key:
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
        generic = self._generic(self.first, self.second) or self._generic(self.second, self.first)
        return self._covers(self.first, self.second, self._told_in_same_tense) or generic

    def _covers(self, first: WordTokens, second: WordTokens, match: Callable[[WordTokens, WordTokens], bool]) -> bool:
        mine, my_fillers = self._divided(first)
        theirs, their_fillers = self._divided(second)
        return (
            len(mine) == len(theirs)
            and match(mine, theirs)
            and all(self._one_says_no_more(*gaps) for gaps in zip(my_fillers, their_fillers, strict=True))
        )

    def _told_in_same_tense(self, mine: WordTokens, theirs: WordTokens) -> bool:
        """After a verb of saying in the past the tense may shift: she said that it is, that it was. Elsewhere another
        tense is another fact; and where two words change their case, they may have changed roles."""
        reported, cases = False, 0
        past = _retold_words(self.lexicons, "reported")
        for word, other in zip(mine, theirs, strict=True):
            introduces = {word.form, other.form} & self._introducing
            if introduces and (word.form, other.form) in _forms(self.lexicons, "reporting"):
                reported |= not past.isdisjoint((word.form, other.form))
            elif self._is_counterpart(word, other):
                reported |= not past.isdisjoint(introduces)
            elif self._agrees_with_collective(word, other):
                continue
            elif self._is_listed(word, other, "cases", "case_endings"):
                cases += 1
            elif not (reported and self._shifts(word, other)):
                return False
        return cases < MIN_WORDS_WITH_CHANGED_GRAMMATICAL_CASE

    def _generic(self, singular: WordTokens, plural: WordTokens) -> bool:
        """Whether they differ as "an owl hunts" and "owls hunt" do, in a subject and its verb in the present: one
        has an indefinite article, or the many have none."""
        indefinite, articles = (_retold_words(self.lexicons, name) for name in ("indefinite", "articles"))
        opens = [tokens[0].form if tokens else "" for tokens in (singular, plural)]
        bare = opens[0] in articles and opens[1] not in articles | indefinite
        if not (bare or opens[0] in indefinite) or opens[1] in indefinite:
            return False
        return self._covers(singular[1:], plural[opens[1] in articles :], self._agree)

    def _agree(self, singular: WordTokens, plural: WordTokens) -> bool:
        others = [pair for pair in zip(singular, plural, strict=True) if not self._is_counterpart(*pair)]
        verbs = [self._is_listed(*pair, "agreement", "agreement_endings", in_order=True) for pair in others]
        nouns = [self._is_listed(*pair, "plurals", "plural_endings", in_order=True) for pair in others]
        return any(verbs) and all(map(operator.or_, verbs, nouns))

    def _agrees_with_collective(self, mine: NormalizedWordToken, theirs: NormalizedWordToken) -> bool:
        """The team is, the team are: the verb of a sentence that a collective noun opens may be singular or plural.
        Where nouns take the same ending, only listed verbs do."""
        return (
            self._is_told_of_collective
            and self._is_listed(mine, theirs, "agreement", "agreement_endings")
            and not self._is_listed(mine, theirs, "plurals", "plural_endings")
        )

    @cached_property
    def _is_told_of_collective(self) -> bool:
        articles = _retold_words(self.lexicons, "articles") | _retold_words(self.lexicons, "indefinite")
        opening = [
            next((one.form for one in text if one.form not in articles), "") for text in (self.first, self.second)
        ]
        return opening[0] == opening[1] and opening[0] in _retold_words(self.lexicons, "collectives")

    def _divided(self, tokens: WordTokens) -> tuple[list[NormalizedWordToken], list[list[NormalizedWordToken]]]:
        """(words that tell, fillers before each of them and after the last)."""
        telling: list[NormalizedWordToken] = []
        fillers: list[list[NormalizedWordToken]] = [[]]
        known = _retold_words(self.lexicons, "fillers")
        for token in tokens:
            if token.form in known:
                fillers[-1].append(token)
            else:
                telling.append(token)
                fillers.append([])
        return telling, fillers

    def _one_says_no_more(self, mine: WordTokens, theirs: WordTokens) -> bool:
        """Fillers may be left out; in place of one another they are case, gender or number: der, den."""
        shorter, longer = sorted((mine, theirs), key=len)
        rest = iter(longer)
        return all(any(self._may_replace(word, other) for other in rest) for word in shorter)

    def _may_replace(self, mine: NormalizedWordToken, theirs: NormalizedWordToken) -> bool:
        return (
            self._is_counterpart(mine, theirs)
            or self._shifts(mine, theirs)
            or self._agrees_with_collective(mine, theirs)
        )

    def _shifts(self, mine: NormalizedWordToken, theirs: NormalizedWordToken) -> bool:
        return bool(self._introducing) and self._is_listed(mine, theirs, "tenses", "tense_endings")

    @cached_property
    def _introducing(self) -> frozenset[str]:
        """Verbs of saying that a clause follows soon in one of the texts: reported that. Not: speaks French."""
        verbs = {word for pair in _forms(self.lexicons, "reporting") for word in pair}
        clauses = _retold_words(self.lexicons, "clauses")
        return frozenset(
            token.form
            for tokens in (self.first, self.second)
            for at, token in enumerate(tokens)
            if self.of_one_sentence
            and token.form in verbs
            and any(word.form in clauses for word in tokens[at + 1 : at + 1 + MAX_WORDS_FROM_VERB_TO_CLAUSE])
        )

    def _is_counterpart(self, mine: NormalizedWordToken, theirs: NormalizedWordToken) -> bool:
        if mine.form == theirs.form:
            return True
        if mine.is_number or theirs.is_number:
            return self._number_of(mine) == self._number_of(theirs) != ""
        if self._accents_are_left_out and mine.unaccented_form == theirs.unaccented_form:
            return True
        unmarked = [_ARABIC_MARKS.sub("", token.form) for token in (mine, theirs)]
        if unmarked[0] == unmarked[1]:
            # Vowel marks may be left out; other marks are another case or word.
            return mine.form in unmarked or theirs.form in unmarked
        return self._is_listed_with(mine.form, theirs.form) or self._is_listed(mine, theirs, "forms", "endings")

    def _is_listed(
        self,
        mine: NormalizedWordToken,
        theirs: NormalizedWordToken,
        forms: str,
        endings: str,
        *,
        in_order: bool = False,
    ) -> bool:
        if (mine.form, theirs.form) in _forms(self.lexicons, forms, in_order):
            return True
        are_names = mine.name and theirs.name and not self._nouns_are_capitalised
        known = _forms(self.lexicons, endings, in_order)
        return not are_names and differ_only_in_inflection(mine.form, theirs.form, known)

    def _number_of(self, token: NormalizedWordToken) -> str:
        if token.is_number:
            return token.form
        return next((value for each in self.lexicons if (value := each.digits_by_number_word.get(token.form, ""))), "")

    def _is_listed_with(self, mine: str, theirs: str) -> bool:
        return any(
            mine.removeprefix(article) == theirs.removeprefix(article)
            for article in _retold_words(self.lexicons, "beginnings")
        )

    @cached_property
    def _nouns_are_capitalised(self) -> bool:
        return all(lexicon.entries.get("nouns_capitalised") for lexicon in self.lexicons)

    @cached_property
    def _accents_are_left_out(self) -> bool:
        mine, theirs = self._accented(self.first), self._accented(self.second)
        if mine and theirs:
            return False
        tell = any(_retold(lexicon).get("accents_tell") for lexicon in self.lexicons)
        return mine + theirs >= MIN_WORDS_PROVING_MISSING_ACCENTS or not tell

    @staticmethod
    def _accented(tokens: WordTokens) -> int:
        return sum(token.form != token.unaccented_form for token in tokens)


def differ_only_in_inflection(mine: str, theirs: str, endings: frozenset[tuple[str, str]]) -> bool:
    """Whether the words differ in an ending alone, and the two endings are listed together."""
    mine, theirs = unicodedata.normalize("NFD", mine), unicodedata.normalize("NFD", theirs)
    shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(mine, theirs, strict=False)))
    least = MIN_INFLECTED_STEM_JAMO if "\u1100" <= mine[:1] <= "\u11ff" else MIN_INFLECTED_STEM_LETTERS
    return any((mine[at:], theirs[at:]) in endings for at in range(least, shared + 1))


def _retold_words(lexicons: tuple[Lexicon, ...], name: str) -> frozenset[str]:
    return words_of_lexicon_tables(lexicons, "retold", name)


@lru_cache(maxsize=2_000)
def _forms(lexicons: tuple[Lexicon, ...], name: str, in_order: bool = False) -> frozenset[tuple[str, str]]:
    return frozenset(pair for lexicon in lexicons for pair in _pairs_of_lines(lexicon, name, in_order))


@cache
def _pairs_of_lines(lexicon: Lexicon, name: str, in_order: bool) -> frozenset[tuple[str, str]]:
    """Any two words of a line, or with the first before the second; `-` is no ending at all."""
    text = str(_retold(lexicon).get(name, ""))
    lines = map(str.split, (unicodedata.normalize("NFD", text) if "endings" in name else text).splitlines())
    words = ([word.replace("-", "") for word in line] for line in lines)
    pairs = itertools.combinations if in_order else itertools.permutations
    return frozenset(pair for line in words for pair in pairs(line, 2))


def _retold(lexicon: Lexicon) -> dict[str, Any]:
    return dict(lexicon.entries.get("retold", {}))


@lru_cache(maxsize=200)
def _respelt(text: str, lexicons: tuple[Lexicon, ...]) -> str:
    """Kept, as a new text is compared with several others."""
    for lexicon in lexicons:
        text = _perfect_as_preterite(text, lexicon)
        for pattern, spelling in _respellings(lexicon):
            text = pattern.sub(spelling, text)
    return text


@cache
def _respellings(lexicon: Lexicon) -> list[tuple[re.Pattern[str], str]]:
    respelt = lexicon.entries.get("respelt", {})
    return [(re.compile(pattern, re.IGNORECASE | re.MULTILINE), spelling) for pattern, spelling in respelt.items()]


def _perfect_as_preterite(text: str, lexicon: Lexicon) -> str:
    """`hat es aufgeschrieben` is `schrieb es auf`, at the end of a main clause: there the two parts stand apart."""
    for pattern, preterites in _perfects(lexicon):

        def preterite(perfect: re.Match[str], preterites: Mapping[str, str] = preterites) -> str:
            between, separable, inseparable, participle = perfect.groups("")
            return f" {inseparable}{preterites[participle.lower()]}{between} {separable}"

        text = pattern.sub(preterite, text)
    return text


@cache
def _perfects(lexicon: Lexicon) -> list[tuple[re.Pattern[str], Mapping[str, str]]]:
    """For each auxiliary verb, in singular and plural: a pattern of the perfect, and preterites by participle."""
    perfect = lexicon.entries.get("perfect", {})
    return [
        (
            re.compile(
                rf"\b{auxiliary}\b( [^.,;:!?]{{0,200}}?) (?:({perfect['separable']})?ge|({perfect['inseparable']}))"
                rf"({'|'.join(preterites)})(?=\s*(?:[.,;:!?]|$))",
                re.IGNORECASE,
            ),
            preterites,
        )
        for name in ("have", "be")
        if perfect
        for number, auxiliary in enumerate(perfect[name].split(), start=1)
        for preterites in [
            {words[0]: words[number] for words in map(str.split, perfect[f"with_{name}"].strip().splitlines())}
        ]
    ]


@lru_cache(maxsize=10_000)
def _without_accents(word: str) -> str:
    """Latin letters alone lose their marks: й is no и, and が is no か."""
    if word.isascii():
        return word
    parts = unicodedata.normalize("NFD", word.replace("ё", "е").replace("ß", "ss"))
    return unicodedata.normalize("NFC", re.sub(r"(?<=[a-z])[\u0300-\u036f]+", "", parts))
