"""Cutting a text where its meaning ends (spec L1, step 2).

A text is read as paragraphs, a paragraph as atoms: sentences, items of a list, rows of a table, lines of code. Chunks
are made of whole atoms. Of all ways to do that within the limits, the one is taken that
1. has the fewest chunks below the least length,
2. then cuts the least inside of paragraphs, lists and blocks of code, and between a heading and what it is over,
3. then keeps the most paragraphs apart,
4. then has the chunks most alike in length (least sum of squares).

The chunks join back to the text, whatever it is; the space between two belongs to the first. No chunk has more tokens
than the limit, unless a single sign has. One has fewer than the least length only if the whole text has, or if with
either neighbour it would be over the limit; for a tokenizer that counts in a text what it counts in its atoms, as
WordPiece does, and where each atom counts for one token at least.

The work grows with the length of the text, and is done in a thread: a text of any shape stops nobody else.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from madeleine.memory.text.sentences import sentences

Count = Callable[[Sequence[str]], Awaitable[list[int]]]
"""Tokens of each text, by the tokenizer of the model."""


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """Tokens."""

    least: int = 50
    most: int = 300


LIMITS = ChunkLimits()
TINY = 10
"""Tokens below which an atom is joined to its neighbour: "Yes." is no place to cut at, and the search is shorter."""
LONGEST_WORD = 40
"""Signs after which a word that is too long may be cut."""
PIECES = 4
"""At least so many of a sentence that is too long make a chunk."""

_WITHIN, _WORDS = 1, 3
"""What a cut costs inside of a paragraph, and inside of a sentence or a line. Between paragraphs it is free."""
_LINE_END = 2
"""A line that ends without a full stop, before one that begins like a sentence."""

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r"\s*(`{3,}(?=[^`\n]*$)|~{3,})", re.MULTILINE)
_ITEM = re.compile(r"\s*(?:[-*+•‣◦·–]\s|\(?\d{1,3}[.)]\s|[a-zA-Z][.)]\s|\|)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s[^\n]*|[^\n]+\n\s{0,3}(?:={2,}|-{2,})|(?:[-*_]\s*){3,}")
_INDENTED = re.compile(r"(?: {4}|\t)\s*\S")
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_JOINING_SIGN = "\u200d"


@dataclass(frozen=True, slots=True)
class Atom:
    """`cut`: what it costs to cut behind it, 0 at the end of a paragraph."""

    text: str
    cut: int
    tokens: int = 0


async def chunked(text: str, count: Count, limits: ChunkLimits = LIMITS) -> list[str]:
    """`text` is cleaned (`memory.text.cleaning`); an empty one has no chunks."""
    if not text:
        return []
    found = await asyncio.to_thread(atoms, text)
    counts = await count([atom.text for atom in found])
    fitting: list[Atom] = []
    for atom, tokens in zip(found, counts, strict=True):
        if tokens <= limits.most:
            # At least 1: else a chunk could be made of what the tokenizer passes over without any end.
            fitting.append(replace(atom, tokens=max(1, tokens)))
        else:
            fitting += await _pieces(atom, count, limits.most)
    chunks = await asyncio.to_thread(_joined, fitting, limits)
    # Where a tokenizer counts other tokens in a text than in its parts.
    lengths = await count(chunks)
    return [
        part
        for chunk, tokens in zip(chunks, lengths, strict=True)
        for part in ([chunk] if tokens <= limits.most else await _halves(chunk, count, limits.most))
    ]


def _joined(fitting: Sequence[Atom], limits: ChunkLimits) -> list[str]:
    return ["".join(atom.text for atom in some) for some in partition(without_tiny(fitting, limits), limits)]


# --- atoms ------------------------------------------------------------------------------------------------------


def atoms(text: str) -> list[Atom]:
    """Not yet counted; none is blank, and they join back to `text`."""
    found: list[Atom] = []
    blocks = list(_blocks(text))
    for block, following in zip(blocks, [*blocks[1:], ""], strict=True):
        parts = list(_atoms_of(block))
        ends = _WITHIN if _belongs_to_next(block, following) else 0
        found += [*parts[:-1], replace(parts[-1], cut=ends)]
    return found


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs and blocks of code, each with the blank lines behind it."""
    block: list[str] = []
    fence = ""
    blank = False
    for line in _LINES.findall(text):
        mark = _FENCE.match(line)
        if fence:
            block.append(line)
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
                blank = True  # what follows a block of code is another
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


def _belongs_to_next(block: str, following: str) -> bool:
    """A heading; a line that says what comes; what no blank line parts from the block of code behind it."""
    told = block.rstrip()
    if not following or _FENCE.match(block):
        return False
    blank_line_behind = _BLANK_LINE.search(block, len(told))
    return bool(_HEADING.fullmatch(told)) or told.endswith((":", "：")) or not blank_line_behind


def _atoms_of(block: str) -> Iterator[Atom]:
    if _FENCE.match(block) or all(_INDENTED.match(line) for line in _LINES.findall(block) if line.strip()):
        yield from _lines_of_code(block)
    elif _ITEM.match(block):
        yield from _items(block)
    else:
        yield from _sentences(block)


def _lines_of_code(block: str) -> Iterator[Atom]:
    for line, blank in _with_blank_lines(_LINES.findall(block)):
        yield Atom(line, _WITHIN if blank else _LINE_END)


def _with_blank_lines(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Each line with the blank ones behind it, and whether there are any."""
    held: list[str] = []
    begun = blank = False
    for line in lines:
        told = bool(line.strip())
        if begun and told:
            yield "".join(held), blank
            held, begun, blank = [], False, False
        blank = blank or (begun and not told)
        begun = begun or told
        held.append(line)
    if held:
        yield "".join(held), blank


def _items(block: str) -> Iterator[Atom]:
    item = ""
    for line in _LINES.findall(block):
        if item and _ITEM.match(line):
            yield Atom(item, _WITHIN)
            item = ""
        item += line
    yield Atom(item, _WITHIN)


def _sentences(block: str) -> Iterator[Atom]:
    for sentence in sentences(block):
        lines = _LINES.findall(sentence)
        held: list[str] = []
        begun = False
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            held.append(line)
            begun = begun or bool(line.strip())
            begins = following.lstrip()[:1]
            if begun and begins and not begins.islower():
                yield Atom("".join(held), _LINE_END)
                held, begun = [], False
        if held:
            yield Atom("".join(held), _WITHIN)


# --- what is too long, and what is too short --------------------------------------------------------------------


async def _pieces(atom: Atom, count: Count, most: int) -> list[Atom]:
    """One that is over the limit, cut between words, or between signs where a word is longer than a line; in pieces so
    small that chunks of like length can be made of them."""
    longest = min(LONGEST_WORD, max(1, most // PIECES))
    words: list[str] = []
    lengths: list[int] = []
    parts = await asyncio.to_thread(lambda: list(_words(atom.text, longest)))
    for part, length in zip(parts, await count(parts), strict=True):
        # Few signs may be many tokens.
        smaller = [part] if length <= most else list(_words(part, 1))
        words += smaller
        lengths += [length] if len(smaller) == 1 else await count(smaller)
    found: list[Atom] = []
    held: list[str] = []
    tokens = 0
    for word, length in zip(words, lengths, strict=True):
        if held and tokens + length > most // PIECES:
            found.append(Atom("".join(held), _WORDS, max(1, tokens)))
            held, tokens = [], 0
        held.append(word)
        tokens += length
    return [*found, Atom("".join(held), atom.cut, max(1, tokens))]


def _words(text: str, longest: int) -> Iterator[str]:
    """Each with the space around it, cut where it has more signs than `longest`; none is blank if `text` is not."""
    for word in re.findall(r"\s*\S+\s*", text) or [text]:
        signs = list(_signs(word)) if len(word) > longest else []
        told = len(signs)
        while told and not signs[told - 1].strip():
            told -= 1
        blank = next((at for at, sign in enumerate(signs) if sign.strip()), 0)
        start, end = 0, max(longest, blank + 1)
        while told > end:
            yield "".join(signs[start:end])
            start, end = end, end + longest
        yield "".join(signs[start:]) if signs else word


def _signs(text: str) -> Iterator[str]:
    """What a reader takes for one: a letter with its accents, a flag, a family."""
    sign = ""
    for char in text:
        belongs = unicodedata.category(char)[0] == "M" or char == _JOINING_SIGN or sign.endswith(_JOINING_SIGN)
        if sign and not belongs:
            yield sign
            sign = ""
        sign += char
    if sign:
        yield sign


async def _halves(chunk: str, count: Count, most: int) -> list[str]:
    parts = list(_words(chunk, LONGEST_WORD))
    if len(parts) == 1:
        parts = list(_words(chunk, 1))
    middle = len(parts) // 2
    if not middle:
        return [chunk]
    halves = ["".join(parts[:middle]), "".join(parts[middle:])]
    return [
        part
        for half, tokens in zip(halves, await count(halves), strict=True)
        for part in ([half] if tokens <= most else await _halves(half, count, most))
    ]


def without_tiny(found: Iterable[Atom], limits: ChunkLimits) -> list[Atom]:
    """Atoms of a few tokens joined to a neighbour in the same paragraph: where a cut would cost more, else behind."""
    joined: list[Atom] = []
    for atom in found:
        if _tiny_within(joined[-1:]):
            before = joined[-2].cut if len(joined) > 1 else 0
            if before > joined[-1].cut:
                tiny = joined.pop()
                if not _join(joined, tiny, limits):
                    joined.append(tiny)
            elif _join(joined, atom, limits):
                continue
        if atom.cut or atom.tokens >= TINY or not _join(joined, atom, limits):
            joined.append(atom)
    return joined


def _tiny_within(last: Sequence[Atom]) -> bool:
    return any(atom.cut and atom.tokens < TINY for atom in last)


def _join(joined: list[Atom], atom: Atom, limits: ChunkLimits) -> bool:
    """To the last, where that is of the same paragraph and there is room."""
    if not joined or not joined[-1].cut or joined[-1].tokens + atom.tokens > limits.most:
        return False
    last = joined.pop()
    joined.append(Atom(last.text + atom.text, atom.cut, last.tokens + atom.tokens))
    return True


# --- the best partition -----------------------------------------------------------------------------------------


def partition(found: Sequence[Atom], limits: ChunkLimits) -> list[Sequence[Atom]]:
    """In order, each at most `limits.most` tokens if every atom is, which has one at least; the best by the rules
    above."""
    tokens = [0, *accumulate(atom.tokens for atom in found)]
    ends = [0, *accumulate(not atom.cut for atom in found)]
    n = len(found)
    # The four costs as one number, each worth more than all that the ones behind it can come to.
    joining = tokens[n] ** 2 + 1
    cutting = joining * (n + 1)
    shortness = cutting * (sum(atom.cut for atom in found) + 1)
    # By dynamic programming: the least cost up to each atom, and the start of the last chunk.
    best = [0]
    starts = [0]
    # Of a chunk that begins here, but for its length and what comes at its end.
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
            elif dominated < 0 and start and not found[start - 1].cut:
                # A free cut here: a chunk that reaches so far beyond it that both sides are long enough is worse.
                dominated = before - limits.least
            if start == end - 1 or cost <= lowest:
                lowest, first = cost, start
        lowest += joining * ends[end - 1] + (cutting * found[end - 1].cut if end < n else 0)
        best.append(lowest)
        starts.append(first)
        opening.append(lowest - joining * ends[end])
    bounds = [n]
    while bounds[-1]:
        bounds.append(starts[bounds[-1]])
    return [found[start:end] for end, start in pairwise(bounds)][::-1]
