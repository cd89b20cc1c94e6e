"""A view of an export for people: Markdown with front matter and wiki links, as Obsidian and its like read it.

One file a cluster, and one each for the diary of a month, a conversation, the profile and the notes. What was told is
escaped, so that no text can become a link, a heading or a block of its own. It cannot be imported.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from madeleine.memory.model import DatedAction, TextOrDatedAction, date_of_timeline_entry, short_id_of_memory_number
from madeleine.memory.moving.record_base import ExportRecord
from madeleine.memory.moving.records import (
    ClusterExportRecord,
    DiaryExportRecord,
    MemoryExportRecord,
    MessageExportRecord,
    NoteExportRecord,
    ProfileExportRecord,
    RevisionExportRecord,
    SessionExportRecord,
)
from madeleine.memory.text.structure import terminal_safe_line

MAX_MARKDOWN_FILE_NAME_CHARS = 80
MARKDOWN_UNSORTED_FILE_NAME = "Unsorted"
"""Memories that no patrol has given a cluster yet."""
_CHARS_UNSAFE_IN_FILE_NAMES_PATTERN = re.compile(r'[\x00-\x1f\x7f\\/:*?"<>|#^\[\]%]+')
_WINDOWS_DEVICE_NAME_PATTERN = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")
_MARKDOWN_SPECIAL_CHARS_PATTERN = re.compile(r"([\\`*_\[\]<>#^|~$&!%=])")


def safe_file_name(title: str) -> str:
    """A name that every file system and wiki link takes, without its suffix; "Untitled" if nothing is left."""
    name = " ".join(_CHARS_UNSAFE_IN_FILE_NAMES_PATTERN.sub(" ", terminal_safe_line(title)).split())[
        :MAX_MARKDOWN_FILE_NAME_CHARS
    ].strip(" .")
    return f"{name}_" if _WINDOWS_DEVICE_NAME_PATTERN.fullmatch(name) else name or "Untitled"


def escape_markdown_line(text: str) -> str:
    """One line that shows the text, whatever it holds."""
    return _MARKDOWN_SPECIAL_CHARS_PATTERN.sub(r"\\\1", " ".join(terminal_safe_line(text).split()))


class MarkdownExportBuilder:
    """Takes all records, then gives the files. Holds them in memory meanwhile."""

    def __init__(self) -> None:
        self.count = 0
        """Files that were given."""
        self._records: defaultdict[str, defaultdict[type[ExportRecord], list[Any]]] = defaultdict(
            lambda: defaultdict(list)
        )

    def add(self, record: ExportRecord) -> None:
        self._records[record.being][type(record)].append(record)

    def files(self) -> Iterator[tuple[str, str]]:
        """(path with slashes, text)."""
        folders = _UniqueFileNames()
        for being, records in self._records.items():
            folder = f"{folders.take(being)}/" if len(self._records) > 1 else ""
            for name, text in _BeingMarkdownFiles(records).files():
                self.count += 1
                yield f"{folder}{name}.md", text


class _UniqueFileNames:
    """Gives each name once, also where case does not count."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, title: str) -> str:
        base = name = safe_file_name(title)
        number = 1
        while name.casefold() in self._taken:
            number += 1
            name = f"{base} ({number})"
        self._taken.add(name.casefold())
        return name


class _BeingMarkdownFiles:
    def __init__(self, records: Mapping[type[ExportRecord], list[Any]]) -> None:
        self._records = records
        self._memories: dict[str, MemoryExportRecord] = {
            memory.id: memory for memory in records.get(MemoryExportRecord, ())
        }
        clusters: dict[str, ClusterExportRecord] = {
            cluster.id: cluster for cluster in records.get(ClusterExportRecord, ())
        }
        names = _UniqueFileNames()
        self._files = {id_: f"Memories/{names.take(clusters[id_].name)}" for id_ in clusters}
        self._unsorted = f"Memories/{names.take(MARKDOWN_UNSORTED_FILE_NAME)}"
        self._clusters = clusters
        self._revisions: defaultdict[str, list[RevisionExportRecord]] = defaultdict(list)
        for revision in records.get(RevisionExportRecord, ()):
            self._revisions[revision.memory_id].append(revision)

    def files(self) -> Iterator[tuple[str, str]]:
        by_file: defaultdict[str, list[MemoryExportRecord]] = defaultdict(list)
        for memory in self._memories.values():
            by_file[self._file_path_of_memory(memory)].append(memory)
        clusters = {self._files[id_]: cluster for id_, cluster in self._clusters.items()}
        for file in dict.fromkeys([*clusters, *by_file]):
            yield file, self._cluster_file_text(clusters.get(file), by_file[file])
        yield from self._diary_files()
        yield from self._conversation_files()
        yield from self._list_file(
            "Profile",
            ProfileExportRecord,
            lambda one: f"**{escape_markdown_line(f'{one.kind}: {one.name}')}** {escape_markdown_line(one.value)}",
        )
        yield from self._list_file(
            "Notes",
            NoteExportRecord,
            lambda one: f"{escape_markdown_line(one.kind)} ({one.state}): {escape_markdown_line(one.content)}",
        )

    def _file_path_of_memory(self, memory: MemoryExportRecord) -> str:
        return self._files.get(memory.cluster_id or "", self._unsorted)

    def _cluster_file_text(self, cluster: ClusterExportRecord | None, memories: list[MemoryExportRecord]) -> str:
        title = cluster.name if cluster else MARKDOWN_UNSORTED_FILE_NAME
        fields: dict[str, Any] = {"title": terminal_safe_line(title), "memories": len(memories)}
        if themes := sorted({theme for memory in memories for theme in memory.themes}):
            fields["tags"] = [re.sub(r"[^\w/-]+", "-", theme) for theme in themes]
        lines = [f"# {escape_markdown_line(title)}", ""]
        if cluster and cluster.parent_id != cluster.id and (parent := self._files.get(cluster.parent_id)):
            lines += [f"Part of [[{parent}]].", ""]
        for memory in memories:
            lines += self._memory_lines(memory)
        return _with_front_matter(fields, lines)

    def _memory_lines(self, memory: MemoryExportRecord) -> Iterator[str]:
        dates = [date_of_timeline_entry(_timeline_entry_from_record(item)) for item in memory.when[:1]]
        date = dates[0] if dates else memory.happened_at.date().isoformat()
        state = "" if memory.truth == "current" else f" *({memory.truth})*"
        state += "" if memory.status == "active" else f" *({memory.status})*"
        pinned = " *(pinned)*" if memory.pinned else ""
        block = f" ^{short_id_of_memory_number(memory.number, memory.being)}"
        yield f"- **{escape_markdown_line(date)}** {escape_markdown_line(memory.action)}{state}{pinned}{block}"
        told = {
            "Where": memory.setting,
            "Who": ", ".join(memory.actors),
            "Said": " / ".join(memory.dialogue),
            "Senses": ", ".join(memory.sensory),
            "Feeling": memory.feeling,
            "Lesson": memory.lesson,
            "Category": memory.category,
            "Why retracted": memory.retraction_reason,
        }
        yield from (f"    - {name}: {escape_markdown_line(text)}" for name, text in told.items() if text)
        for item in (*memory.when[1:], *memory.retold):
            entry = _timeline_entry_from_record(item)
            action = entry.action if isinstance(entry, DatedAction) else ""
            yield f"    - {escape_markdown_line(f'{date_of_timeline_entry(entry)} {action}')}"
        for name, id_ in (
            ("Superseded by", memory.superseded_by),
            ("May supersede", memory.may_supersede),
            ("Merged into", memory.absorbed_into),
            ("Told in", memory.compressed_into),
            ("Resembles", memory.resembles),
        ):
            if id_:
                yield f"    - {name} {self._wiki_link_to_memory(id_)}"
        for revision in self._revisions[memory.id]:
            if revision.text is not None:
                yield f"    - Until {revision.at.date().isoformat()}: {escape_markdown_line(revision.text)}"

    def _wiki_link_to_memory(self, id_: str) -> str:
        memory = self._memories.get(id_)
        if memory is None:
            return "a memory that is not here"
        short = short_id_of_memory_number(memory.number, memory.being)
        return f"[[{self._file_path_of_memory(memory)}#^{short}|{short}]]"

    def _diary_files(self) -> Iterator[tuple[str, str]]:
        months: defaultdict[str, list[DiaryExportRecord]] = defaultdict(list)
        for entry in self._records.get(DiaryExportRecord, ()):
            months[entry.date[:7]].append(entry)
        names = _UniqueFileNames()
        for month, entries in months.items():
            lines = [f"# {escape_markdown_line(month)}"]
            for entry in entries:
                links = " ".join(self._wiki_link_to_memory(id_) for id_ in entry.sources if id_ in self._memories)
                lines += [
                    "",
                    f"## {escape_markdown_line(entry.date)}",
                    "",
                    escape_markdown_line(entry.text),
                    *(["", links] if links else []),
                ]
            yield f"Diary/{names.take(month)}", _with_front_matter({"title": month}, lines)

    def _conversation_files(self) -> Iterator[tuple[str, str]]:
        messages: defaultdict[str, list[MessageExportRecord]] = defaultdict(list)
        for message in self._records.get(MessageExportRecord, ()):
            messages[message.session_id].append(message)
        sessions: dict[str, SessionExportRecord] = {s.session_id: s for s in self._records.get(SessionExportRecord, ())}
        names = _UniqueFileNames()
        for id_, said in messages.items():
            title = (sessions[id_].title.strip("\x7f") if id_ in sessions else "") or id_
            lines = [f"# {escape_markdown_line(title)}", ""]
            lines += [
                f"- **{escape_markdown_line(one.speaker or one.role)}** {escape_markdown_line(one.text)}"
                for one in said
            ]
            fields = {
                "title": terminal_safe_line(title),
                "session": terminal_safe_line(id_),
                "date": said[0].at.date().isoformat(),
            }
            yield f"Conversations/{names.take(title)}", _with_front_matter(fields, lines)

    def _list_file(self, title: str, kind: type[ExportRecord], text_of: Any) -> Iterator[tuple[str, str]]:
        if records := self._records.get(kind):
            lines = [f"# {title}", "", *(f"- {text_of(record)}" for record in records)]
            yield title, _with_front_matter({"title": title}, lines)


def _timeline_entry_from_record(item: Any) -> TextOrDatedAction:
    return item if isinstance(item, str) else DatedAction(item.date, item.action)


def _with_front_matter(fields: Mapping[str, Any], lines: list[str]) -> str:
    # JSON is YAML, whatever a title holds.
    head = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items()]
    return "\n".join(["---", *head, "---", "", *lines]).rstrip() + "\n"
