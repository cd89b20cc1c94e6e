"""Notes in Markdown: plain folders, basic-memory's with its observations and relations, and what Claude Code has noted
for itself. A list item, or neighbouring paragraphs of a section, become one memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from madeleine.memory.moving.sources.values import (
    FileShape,
    FileToImport,
    ImportedStatement,
    ImportFileFormat,
    ImportItem,
    SkippedContent,
    first_iso_time_from_json,
    label_from_json,
    labels_from_json,
)
from madeleine.memory.text.dates import parse_iso_period
from madeleine.memory.text.normalization import fold_text, normalize_unicode_and_whitespace

MAX_JOINED_PARAGRAPH_CHARS = 700
"""Of neighbouring paragraphs, or of a list, that become one memory: what an embedding model reads as a whole."""
MAX_CHARS_OF_TITLE_USED_AS_THEME = 60
"""Of a title that is a theme, too."""
MAX_MARKDOWN_NOTE_CHARS = 8 * 1024 * 1024
_NEW_LINE = "\n"
_FRONT_MATTER_PATTERN = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_HEADING_LINE_PATTERN = re.compile(r"[ ]{0,3}(#{1,6})[ \t]+(.*?)[ \t#]*")
_LEADING_TITLE_HEADING_PATTERN = re.compile(r"\s*# +\S")
_CODE_FENCE_PATTERN = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_LIST_ITEM_PATTERN = re.compile(r"[ ]{0,3}(?:[-*+]|\d{1,3}[.)])[ \t]+(.*)")
_HORIZONTAL_RULE_PATTERN = re.compile(r"[ ]{0,3}(?:[-*_][ \t]*){3,}")
_HTML_COMMENT_PATTERN = re.compile(r"<!--.*?-->", re.DOTALL)
_BASIC_MEMORY_OBSERVATION_PATTERN = re.compile(r"\[([^\[\]()]{2,100})\][ \t]+(\S.*)", re.DOTALL)
_DATE_OR_TIME_LABEL_PATTERN = re.compile(r"[\d:.,\s-]+")
_BASIC_MEMORY_RELATION_PATTERN = re.compile(r"(?:(\S[^\[\]]*?)[ \t]+)?\[\[([^\[\]]+)\]\](?:[ \t]*\([^()]*\))?")
_LINK_ONLY_ITEM_PATTERN = re.compile(r"!?\[[^\[\]]*\]\(([^()]*)\)(?:[ \t]*[—–:-][ \t]*(.*))?", re.DOTALL)
_HASHTAG_PATTERN = re.compile(r"(?<!\S)#([^\s#]+)")
_WIKI_LINK_PATTERN = re.compile(r"\[\[([^\[\]|]+\|)?([^\[\]]+)\]\]")


@dataclass(frozen=True, slots=True)
class _MarkdownBlock:
    """A paragraph, a list item or a block of code. `headings`: those that it stands below."""

    text: str
    headings: tuple[str, ...]
    is_item: bool = False


@dataclass(frozen=True, slots=True)
class _MarkdownNote:
    body: str
    fields: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)

    def front_matter_text(self, *names: str) -> str:
        return next((label_from_json(value) for name in names if (value := self.fields.get(name))), "")


def parse_markdown_note(text: str) -> _MarkdownNote:
    """Split off the front matter, of which plain values and lists are read."""
    text = text.replace("\r\n", "\n")
    match = _FRONT_MATTER_PATTERN.match(text)
    if not match:
        return _MarkdownNote(text)
    fields: dict[str, str | tuple[str, ...]] = {}
    name = ""
    for line in match[1].split("\n"):
        key, colon, value = line.partition(":")
        if colon and not line[:1].isspace() and not line.startswith("-"):
            name, value = key.strip().lower(), value.strip()
            bare = value.strip("\"'")
            fields[name] = labels_from_json(value.strip("[]").replace('"', "")) if value.startswith("[") else bare
        elif line.lstrip().startswith("- ") and name:
            earlier = fields.get(name)
            items = earlier if isinstance(earlier, tuple) else ()
            fields[name] = (*items, *labels_from_json([line.lstrip()[2:].strip("\"'")]))
    return _MarkdownNote(text[match.end() :], fields)


def import_items_from_markdown(
    text: str, *, title: str, when: str = "", themes: tuple[str, ...] = (), is_about_title: bool = False
) -> Iterator[ImportItem]:
    """`title`: of the whole text. The last heading stands before what does not name it, which would not be understood
    without it; or the title, if all of the text `is_about_title`."""
    if title and len(title) <= MAX_CHARS_OF_TITLE_USED_AS_THEME and not parse_iso_period(title):
        themes = tuple(dict.fromkeys((title, *themes)))
    for (headings, is_item), same in groupby(
        _split_into_markdown_blocks(text), key=lambda block: (block.headings, block.is_item)
    ):
        blocks = [block.text for block in same]
        last_heading = next((label for label in reversed((title, *headings)) if label), "")
        subject = title if is_about_title else last_heading
        if not is_item:
            for joined in _join_short_texts(blocks, "\n\n"):
                yield ImportedStatement(text=_text_with_subject(subject, joined), when=when, themes=themes)
            continue
        plain: list[str] = []
        for item in blocks:
            if special := _import_item_of_basic_memory_line(item, subject_of_note=title or subject):
                yield _add_date_and_themes(special, when, themes)
            elif (link := _LINK_ONLY_ITEM_PATTERN.fullmatch(item)) and not link[2]:
                yield SkippedContent("links without a text")
            else:
                plain.append(item)
        if sum(map(len, plain)) <= MAX_JOINED_PARAGRAPH_CHARS and len(plain) > 1:
            plain = ["\n".join(f"- {item}" for item in plain)]
        for item in plain:
            yield ImportedStatement(text=_text_with_subject(subject, item), when=when, themes=themes)


def _text_with_subject(subject: str, text: str) -> str:
    if not subject or parse_iso_period(subject) or fold_text(subject) in fold_text(text):
        return text
    return f"{subject}:{_NEW_LINE if text.startswith(('- ', '```')) else ' '}{text}"


def _add_date_and_themes(special: ImportItem, when: str, themes: tuple[str, ...]) -> ImportItem:
    if not isinstance(special, ImportedStatement):
        return special
    return ImportedStatement(text=special.text, when=when, themes=tuple(dict.fromkeys((*special.themes, *themes))))


def _import_item_of_basic_memory_line(item: str, *, subject_of_note: str) -> ImportItem | None:
    """`- [category] observation #tag` and `- relation [[Target]]`, as basic-memory writes them; None for any other."""
    observation = _BASIC_MEMORY_OBSERVATION_PATTERN.fullmatch(item)
    if observation and not _DATE_OR_TIME_LABEL_PATTERN.fullmatch(observation[1]) and not item.startswith("[["):
        text = observation[2].strip()
        return ImportedStatement(
            text=_text_with_subject(subject_of_note, text),
            themes=labels_from_json([observation[1], *_HASHTAG_PATTERN.findall(text)]),
        )
    relation = _BASIC_MEMORY_RELATION_PATTERN.fullmatch(item)
    if not relation:
        return None
    if not relation[1] or not subject_of_note:
        return SkippedContent("links without a text")
    return ImportedStatement(text=f"{subject_of_note} {relation[1].replace('_', ' ')} {relation[2]}")


def _join_short_texts(texts: list[str], separator: str) -> Iterator[str]:
    joined = ""
    for text in texts:
        if joined and len(joined) + len(text) > MAX_JOINED_PARAGRAPH_CHARS:
            yield joined
            joined = ""
        joined = f"{joined}{separator}{text}" if joined else text
    if joined:
        yield joined


def _split_into_markdown_blocks(text: str) -> Iterator[_MarkdownBlock]:
    headings: list[tuple[int, str]] = []
    lines: list[str] = []
    fence = ""
    is_item = False

    def block() -> Iterator[_MarkdownBlock]:
        content = _WIKI_LINK_PATTERN.sub(r"[[\2]]", "\n".join(lines)).strip("\n").rstrip()
        lines.clear()
        if content.strip():
            yield _MarkdownBlock(content, tuple(label for _, label in headings), is_item)

    for line in normalize_unicode_and_whitespace(_HTML_COMMENT_PATTERN.sub("", text)).split("\n"):
        if fence:
            lines.append(line)
            if line.lstrip().startswith(fence):
                fence = ""
        elif opened := _CODE_FENCE_PATTERN.match(line):
            if is_item and not line[:1].isspace():
                yield from block()
                is_item = False
            fence = opened[1]
            lines.append(line)
        elif _HORIZONTAL_RULE_PATTERN.fullmatch(line):
            yield from block()
            is_item = False
        elif heading := _HEADING_LINE_PATTERN.fullmatch(line):
            yield from block()
            is_item = False
            level = len(heading[1])
            headings = [pair for pair in headings if pair[0] < level] + [(level, label_from_json(heading[2]))]
        elif item := _LIST_ITEM_PATTERN.fullmatch(line):
            yield from block()
            is_item = True
            lines.append(item[1])
        elif not line.strip():
            if not is_item:
                yield from block()
        elif is_item and not line[:1].isspace() and lines and not lines[-1].strip():
            yield from block()
            is_item = False
            lines.append(line)
        else:
            lines.append(line)
    yield from block()


# --- files --------------------------------------------------------------------------------------------------------


def _read_text_up_to_limit(file: FileToImport) -> tuple[str, bool]:
    """The text, at most `MAX_MARKDOWN_NOTE_CHARS` of it, and whether that is all."""
    parts: list[str] = []
    length = 0
    for chunk in file.text_chunks():
        parts.append(chunk)
        length += len(chunk)
        if length > MAX_MARKDOWN_NOTE_CHARS:
            return "".join(parts)[:MAX_MARKDOWN_NOTE_CHARS], False
    return "".join(parts), True


def _read_markdown(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    text, is_whole = _read_text_up_to_limit(file)
    note = parse_markdown_note(text)
    stem = file.display_path.rpartition("/")[2].rpartition(".")[0]
    title = note.front_matter_text("title", "name") or ("" if _LEADING_TITLE_HEADING_PATTERN.match(note.body) else stem)
    modified = file.modified_at.isoformat() if file.modified_at else ""
    when = first_iso_time_from_json(
        note.front_matter_text("created", "date", "created_at"),
        stem,
        note.front_matter_text("modified", "updated"),
        modified,
    )
    tags = note.fields.get("tags", ())
    themes = labels_from_json(list(tags) if isinstance(tags, tuple) else tags)
    if note.front_matter_text("description") and not note.body.strip():
        yield ImportedStatement(text=f"{title}: {note.front_matter_text('description')}", when=when, themes=themes)
    is_about_title = "permalink" in note.fields
    yield from import_items_from_markdown(
        note.body, title=title, when=when, themes=themes, is_about_title=is_about_title
    )
    if not is_whole:
        yield SkippedContent("notes cut after 8 million characters")


def _read_claude_code_memory(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    """`MEMORY.md` mostly lists the other files of its folder, which are read themselves."""
    for item in _read_markdown(file, max_text_chars):
        if (
            isinstance(item, ImportedStatement)
            and file.display_path.endswith("/MEMORY.md")
            and _LINK_TO_MARKDOWN_FILE_PATTERN.search(item.text)
        ):
            yield SkippedContent("entries of an index of notes")
        else:
            yield item


_LINK_TO_MARKDOWN_FILE_PATTERN = re.compile(r"\]\([^()\s]+\.md\)")
_CLAUDE_CODE_MEMORY_PATH_PATTERN = re.compile(r"(?:^|/)memory/[^/]+\.md$")
_MARKDOWN_SUFFIXES = (".md", ".markdown", ".mdown")


def _is_basic_memory_note(shape: FileShape) -> bool:
    fields = parse_markdown_note(shape.head.decode("utf-8", "replace")).fields
    return shape.suffix in _MARKDOWN_SUFFIXES and {"permalink", "type"} <= fields.keys()


MARKDOWN_FORMATS = (
    ImportFileFormat(
        "Claude Code memory",
        lambda shape: bool(_CLAUDE_CODE_MEMORY_PATH_PATTERN.search(shape.name)),
        _read_claude_code_memory,
    ),
    ImportFileFormat("basic-memory", _is_basic_memory_note, _read_markdown),
    ImportFileFormat("Markdown", lambda shape: shape.suffix in _MARKDOWN_SUFFIXES, _read_markdown),
)
