"""Split a text into chunks at semantic boundaries (spec L1, step 2).

A text consists of paragraphs, a paragraph of atoms: sentences, list items, table rows, lines of code. A chunk consists
of whole atoms. Of all partitions within the limits, the one is taken that
1. has the fewest chunks below the minimum length,
2. then cuts least inside paragraphs, lists and code blocks, and between a heading and its text,
3. then keeps the most paragraphs apart,
4. then has the chunks most alike in length (least sum of squares).

The chunks join back to any text; the space between two belongs to the first. No chunk has more tokens than the limit,
unless a single character has. A chunk is below the minimum only if the whole text is, or if with either neighbour it
would exceed the limit. This holds for tokenizers that count in a text what they count in its atoms, as WordPiece does,
and where each atom counts for at least one token.

The time is linear in the length of the text, and is spent in a thread.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from madeleine.memory.text.sentences import split_sentences

CountTokens = Callable[[Sequence[str]], Awaitable[list[int]]]
"""Tokens of each text, by the tokenizer of the model."""


@dataclass(frozen=True, slots=True)
class ChunkTokenLimits:
    """Tokens."""

    least: int = 50
    most: int = 300


DEFAULT_CHUNK_TOKEN_LIMITS = ChunkTokenLimits()
MIN_SEPARATE_ATOM_TOKENS = 10
"""Tokens below which an atom is joined to its neighbour: "Yes." is no place to cut, and the search is shorter."""
MAX_UNCUT_WORD_CHARS = 40
"""Characters after which a word that is too long may be cut."""
CHUNK_TO_SENTENCE_PIECE_TOKEN_RATIO = 4
"""A sentence that is too long is cut into pieces of at most a quarter of a chunk."""

_CUT_IN_PARAGRAPH, _CUT_AT_LINE_END, _CUT_IN_SENTENCE = 1, 2, 3
"""Costs of a cut: inside a paragraph; after a line without a full stop, before a line that begins like a sentence;
inside a sentence or a line. Between paragraphs a cut is free."""

_LINE_AND_BREAK_PATTERN = re.compile(r"[^\n]*\n|[^\n]+")
_CODE_FENCE_PATTERN = re.compile(r"\s*(`{3,}(?=[^`\n]*$)|~{3,})", re.MULTILINE)
_LIST_ITEM_OR_TABLE_ROW_PATTERN = re.compile(r"\s*(?:[-*+•‣◦·–]\s|\(?\d{1,3}[.)]\s|[a-zA-Z][.)]\s|\|)")
_HEADING_OR_DIVIDER_PATTERN = re.compile(r"\s{0,3}#{1,6}\s[^\n]*|[^\n]+\n\s{0,3}(?:={2,}|-{2,})|(?:[-*_]\s*){3,}")
_INDENTED_CODE_LINE_PATTERN = re.compile(r"(?: {4}|\t)\s*\S")
_BLANK_LINE_PATTERN = re.compile(r"\n[^\S\n]*\n")
_ZERO_WIDTH_JOINER = "\u200d"


@dataclass(frozen=True, slots=True)
class TextAtom:
    """`cut`: the cost of a cut behind it, 0 at the end of a paragraph."""

    text: str
    cut: int
    tokens: int = 0


async def split_into_chunks(
    text: str, count: CountTokens, limits: ChunkTokenLimits = DEFAULT_CHUNK_TOKEN_LIMITS
) -> list[str]:
    """Split a cleaned text (`memory.text.normalization.normalize_unicode_and_whitespace`); an empty one has no
    chunks."""
    if not text:
        return []
    uncounted = await asyncio.to_thread(split_text_into_uncounted_atoms, text)
    counts = await count([atom.text for atom in uncounted])
    fitting: list[TextAtom] = []
    for atom, tokens in zip(uncounted, counts, strict=True):
        if tokens <= limits.most:
            # At least 1: atoms without tokens would make a chunk of unlimited length.
            fitting.append(replace(atom, tokens=max(1, tokens)))
        else:
            fitting += await _pieces_of_long_atom(atom, count, limits.most)
    chunks = await asyncio.to_thread(_partition_into_chunk_texts, fitting, limits)
    # Some tokenizers count other tokens in a text than in its parts.
    return await _halved_until_fitting(chunks, count, limits.most)


def _partition_into_chunk_texts(fitting: Sequence[TextAtom], limits: ChunkTokenLimits) -> list[str]:
    return [
        "".join(atom.text for atom in chunk)
        for chunk in partition_atoms_into_chunks(join_tiny_atoms(fitting, limits), limits)
    ]


# --- atoms ------------------------------------------------------------------------------------------------------


def split_text_into_uncounted_atoms(text: str) -> list[TextAtom]:
    """Split into atoms whose tokens are not counted yet. None is blank, and they join back to `text`."""
    uncounted: list[TextAtom] = []
    blocks = list(_paragraphs_and_code_blocks(text))
    for block, following in zip(blocks, [*blocks[1:], ""], strict=True):
        parts = list(_atoms_of_block(block))
        ends = _CUT_IN_PARAGRAPH if _belongs_with_next_block(block, following) else 0
        uncounted += [*parts[:-1], replace(parts[-1], cut=ends)]
    return uncounted


def _paragraphs_and_code_blocks(text: str) -> Iterator[str]:
    """Paragraphs and blocks of code, each with the blank lines behind it."""
    block: list[str] = []
    fence = ""
    blank = False
    for line in _LINE_AND_BREAK_PATTERN.findall(text):
        mark = _CODE_FENCE_PATTERN.match(line)
        if fence:
            block.append(line)
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
                blank = True  # the next line begins another block
            continue
        if line.strip() and (blank or mark) and any(map(str.strip, block)):
            yield "".join(block)
            block = []
        blank = not line.strip()
        block.append(line)
        if mark:
            fence = mark[1]
    if block:
        yield "".join(block)


def _belongs_with_next_block(block: str, following: str) -> bool:
    """Whether a block is a heading, ends with a colon, or is followed by a code block without a blank line."""
    content = block.rstrip()
    if not following or _CODE_FENCE_PATTERN.match(block):
        return False
    blank_line_behind = _BLANK_LINE_PATTERN.search(block, len(content))
    return (
        bool(_HEADING_OR_DIVIDER_PATTERN.fullmatch(content)) or content.endswith((":", "：")) or not blank_line_behind
    )


def _atoms_of_block(block: str) -> Iterator[TextAtom]:
    lines = _LINE_AND_BREAK_PATTERN.findall(block)
    if _CODE_FENCE_PATTERN.match(block) or all(
        _INDENTED_CODE_LINE_PATTERN.match(line) for line in lines if line.strip()
    ):
        for code in _group_lines_at_beginnings(lines, str.strip):
            is_followed_by_blank_line = not _LINE_AND_BREAK_PATTERN.findall(code)[-1].strip()
            yield TextAtom(code, _CUT_IN_PARAGRAPH if is_followed_by_blank_line else _CUT_AT_LINE_END)
    elif _LIST_ITEM_OR_TABLE_ROW_PATTERN.match(block):
        yield from (
            TextAtom(item, _CUT_IN_PARAGRAPH)
            for item in _group_lines_at_beginnings(lines, _LIST_ITEM_OR_TABLE_ROW_PATTERN.match)
        )
    else:
        for sentence in split_sentences(block):
            *rows, last = _group_lines_at_beginnings(_LINE_AND_BREAK_PATTERN.findall(sentence), _begins_like_sentence)
            yield from (TextAtom(row, _CUT_AT_LINE_END) for row in rows)
            yield TextAtom(last, _CUT_IN_PARAGRAPH)


def _begins_like_sentence(line: str) -> bool:
    beginning = line.lstrip()[:1]
    return bool(beginning) and not beginning.islower()


def _group_lines_at_beginnings(lines: Iterable[str], begins: Callable[[str], object]) -> Iterator[str]:
    """Join lines. A line for which `begins` holds starts a new group, once the group before has text."""
    group: list[str] = []
    has_text = False
    for line in lines:
        if has_text and begins(line):
            yield "".join(group)
            group, has_text = [], False
        group.append(line)
        has_text = has_text or bool(line.strip())
    if group:
        yield "".join(group)


# --- what is too long, and what is too short --------------------------------------------------------------------


async def _pieces_of_long_atom(atom: TextAtom, count: CountTokens, most: int) -> list[TextAtom]:
    """Cut an atom above the limit between words, or between characters where a word is longer than a line, into pieces
    small enough to make chunks of similar length."""
    longest = min(MAX_UNCUT_WORD_CHARS, max(1, most // CHUNK_TO_SENTENCE_PIECE_TOKEN_RATIO))
    words: list[str] = []
    lengths: list[int] = []
    parts = await asyncio.to_thread(lambda: list(_words_with_spaces_cut_to_length(atom.text, longest)))
    for part, length in zip(parts, await count(parts), strict=True):
        # Few characters may be many tokens.
        smaller = [part] if length <= most else list(_words_with_spaces_cut_to_length(part, 1))
        words += smaller
        lengths += [length] if len(smaller) == 1 else await count(smaller)
    pieces: list[TextAtom] = []
    held: list[str] = []
    tokens = 0
    for word, length in zip(words, lengths, strict=True):
        if held and tokens + length > most // CHUNK_TO_SENTENCE_PIECE_TOKEN_RATIO:
            pieces.append(TextAtom("".join(held), _CUT_IN_SENTENCE, max(1, tokens)))
            held, tokens = [], 0
        held.append(word)
        tokens += length
    return [*pieces, TextAtom("".join(held), atom.cut, max(1, tokens))]


def _words_with_spaces_cut_to_length(text: str, longest: int) -> Iterator[str]:
    """Yield words with the space around them, cut above `longest` characters; none is blank if `text` is not."""
    for word in re.findall(r"\s*\S+\s*", text) or [text]:
        graphemes = list(_graphemes(word)) if len(word) > longest else []
        visible_end = len(graphemes)
        while visible_end and not graphemes[visible_end - 1].strip():
            visible_end -= 1
        first_visible = next((at for at, grapheme in enumerate(graphemes) if grapheme.strip()), 0)
        start, end = 0, max(longest, first_visible + 1)
        while visible_end > end:
            yield "".join(graphemes[start:end])
            start, end = end, end + longest
        yield "".join(graphemes[start:]) if graphemes else word


def _graphemes(text: str) -> Iterator[str]:
    """Yield what a reader takes for one character: a letter with its accents, a joined emoji."""
    grapheme = ""
    for char in text:
        belongs = unicodedata.category(char)[0] == "M" or char == _ZERO_WIDTH_JOINER
        if grapheme and not belongs and not grapheme.endswith(_ZERO_WIDTH_JOINER):
            yield grapheme
            grapheme = ""
        grapheme += char
    if grapheme:
        yield grapheme


async def _halved_until_fitting(chunks: Sequence[str], count: CountTokens, most: int) -> list[str]:
    fitting: list[str] = []
    for chunk, tokens in zip(chunks, await count(chunks), strict=True):
        halves = _halves_of_chunk(chunk) if tokens > most else [chunk]
        fitting += halves if len(halves) == 1 else await _halved_until_fitting(halves, count, most)
    return fitting


def _halves_of_chunk(chunk: str) -> list[str]:
    """Cut between words, or in the only word; the chunk alone if it is one character."""
    parts = list(_words_with_spaces_cut_to_length(chunk, MAX_UNCUT_WORD_CHARS))
    if len(parts) == 1:
        parts = list(_words_with_spaces_cut_to_length(chunk, 1))
    middle = len(parts) // 2
    return ["".join(parts[:middle]), "".join(parts[middle:])] if middle else [chunk]


def join_tiny_atoms(counted: Iterable[TextAtom], limits: ChunkTokenLimits) -> list[TextAtom]:
    """Join atoms of a few tokens to the neighbour in their paragraph where a cut costs more, else to the next."""
    joined: list[TextAtom] = []
    for atom in counted:
        if joined and joined[-1].cut and joined[-1].tokens < MIN_SEPARATE_ATOM_TOKENS:
            before = joined[-2].cut if len(joined) > 1 else 0
            if before > joined[-1].cut:
                tiny = joined.pop()
                if not _try_to_join_to_last_atom(joined, tiny, limits):
                    joined.append(tiny)
            elif _try_to_join_to_last_atom(joined, atom, limits):
                continue
        if atom.cut or atom.tokens >= MIN_SEPARATE_ATOM_TOKENS or not _try_to_join_to_last_atom(joined, atom, limits):
            joined.append(atom)
    return joined


def _try_to_join_to_last_atom(joined: list[TextAtom], atom: TextAtom, limits: ChunkTokenLimits) -> bool:
    """Join an atom to the last one if both are of one paragraph and within the limit. True if it was joined."""
    if not joined or not joined[-1].cut or joined[-1].tokens + atom.tokens > limits.most:
        return False
    last = joined.pop()
    joined.append(TextAtom(last.text + atom.text, atom.cut, last.tokens + atom.tokens))
    return True


# --- the best partition ----------------------------------------------------------------------------------------


def partition_atoms_into_chunks(counted: Sequence[TextAtom], limits: ChunkTokenLimits) -> list[Sequence[TextAtom]]:
    """The best partition by the rules above, in order: each part at most `limits.most` tokens if every atom is. Atoms
    have at least one token."""
    tokens = [0, *accumulate(atom.tokens for atom in counted)]
    ends = [0, *accumulate(not atom.cut for atom in counted)]
    n = len(counted)
    # The four costs as one number: each unit exceeds the greatest sum of all lesser costs.
    joining = tokens[n] ** 2 + 1
    cutting = joining * (n + 1)
    shortness = cutting * (sum(atom.cut for atom in counted) + 1)
    # Dynamic programming: the least cost up to each atom, and the start of its last chunk.
    best = [0]
    starts = [0]
    # The cost of a chunk that begins here, without its length and its end.
    opening = [0]
    for end in range(1, n + 1):
        total = tokens[end]
        lowest = first = 0
        dominated = -1
        for start in range(end - 1, -1, -1):
            before = tokens[start]
            length = total - before
            if (length > limits.most and start < end - 1) or before <= dominated:
                break
            cost = opening[start] + length * length
            if length < limits.least:
                cost += shortness
            elif dominated < 0 and start and not counted[start - 1].cut:
                # A free cut: a chunk that reaches beyond it is worse once both sides are long enough.
                dominated = before - limits.least
            if start == end - 1 or cost <= lowest:
                lowest, first = cost, start
        lowest += joining * ends[end - 1] + (cutting * counted[end - 1].cut if end < n else 0)
        best.append(lowest)
        starts.append(first)
        opening.append(lowest - joining * ends[end])
    bounds = [n]
    while bounds[-1]:
        bounds.append(starts[bounds[-1]])
    return [counted[start:end] for end, start in pairwise(bounds)][::-1]
