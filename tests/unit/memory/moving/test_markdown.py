"""The Markdown view: safe names, links between versions, and texts that stay texts."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from madeleine.memory.moving import records as r
from madeleine.memory.moving.markdown import MarkdownExportBuilder, escape_markdown_line, safe_file_name
from madeleine.memory.moving.record_base import ExportRecord
from tests.rows import for_each_row

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def memory(number: int, action: str, **other: Any) -> r.MemoryExportRecord:
    values: dict[str, Any] = {
        "being": "ada", "id": f"00000000-0000-0000-0000-{number:012}", "number": number, "action": action, "actors": (),
        "when": (), "setting": "", "dialogue": (), "sensory": (), "feeling": "", "lesson": "", "category": "semantic",
        "themes": (), "emotions": (), "importance": 0.5, "pinned": False, "created_at": NOW, "happened_at": NOW,
        "tool": "store", "client": "", "session_id": "", "turn": 0, "status": "active", "fresh": False,
        "compressed": False, "compression_source": False, "retold": (), "truth": "current", "retraction_reason": "",
        "session_count": 0, "access_count": 0, "reactivation_count": 0,
    }  # fmt: skip
    return r.MemoryExportRecord(**(values | other))


def files(*records: ExportRecord) -> dict[str, str]:
    view = MarkdownExportBuilder()
    for record in records:
        view.add(record)
    return dict(view.files())


def cluster(id_: str, name: str, parent: str = "") -> r.ClusterExportRecord:
    return r.ClusterExportRecord(being="ada", id=id_, name=name, parent_id=parent or id_, is_root=not parent)


@for_each_row(
    ("title", "name"),
    [
        ("Harbour", "Harbour"),
        ("../../etc/passwd", "etc passwd"),
        ("a/b\\c:d*e?f", "a b c d e f"),
        ("[[link]]#^x|y", "link x y"),
        ("CON", "CON_"),
        ("nul.txt", "nul.txt_"),
        ("", "Untitled"),
        ("...", "Untitled"),
        ("東京", "東京"),
        ("x" * 300, "x" * 80),
    ],
)
def test_a_title_becomes_a_name_that_every_system_takes(title: str, name: str) -> None:
    assert safe_file_name(title) == name


def test_clusters_of_one_name_have_files_of_their_own() -> None:
    found = files(cluster("a", "Tea"), cluster("b", "tea"), cluster("c", "Tea?"))
    assert list(found) == ["Memories/Tea.md", "Memories/tea (2).md", "Memories/Tea (3).md"]


def test_versions_link_to_one_another_across_files() -> None:
    old = memory(1, "Lives in Rome", cluster_id="a", truth="superseded", superseded_by=memory(2, "x").id)
    found = files(cluster("r", "Private"), cluster("a", "Home", "r"), old, memory(2, "Lives in Paris"))
    assert "[[Memories/Unsorted#^m2|m2]]" in found["Memories/Home.md"]
    assert "Part of [[Memories/Private]]." in found["Memories/Home.md"]
    assert found["Memories/Unsorted.md"].rstrip().splitlines()[-2].endswith("Lives in Paris ^m2")


def test_a_text_is_never_a_link_a_heading_a_block_or_front_matter() -> None:
    hostile = '---\ntitle: x\n---\n# Head [[Other]] ^m9 <script>alert(1)</script> ![x](http://a/b) `code` {"a": 1}'
    found = files(cluster("a", hostile), memory(1, hostile, cluster_id="a", feeling=hostile))
    [text] = found.values()
    front, body = re.fullmatch(r"---\n(.*?)\n---\n(.*)", text, flags=re.DOTALL).groups()  # type: ignore[union-attr]
    assert [line.split(":")[0] for line in front.splitlines()] == ["title", "memories"]
    assert re.findall(r"(?<!\\)\[\[", body) == []
    assert re.findall(r"(?<!\\)<", body) == []
    assert re.findall(r"(?<!\\)\^\w+", body) == ["^m1"]
    assert [line for line in body.splitlines() if line.startswith("---")] == []
    assert "\n" not in escape_markdown_line(hostile)


def test_diary_conversations_profile_and_notes_have_files() -> None:
    session = r.SessionExportRecord(
        being="ada", session_id="s", title="A talk", interface="", first_at=NOW, last_at=NOW, messages=1, watched=1,
        put_off=0, abandoned=0, failures=0, next_try=NOW,
    )  # fmt: skip
    message = r.MessageExportRecord(
        being="ada", id="m", session_id="s", position=0, role="user", speaker="Bob", text="Ahoy", at=NOW, stored_at=NOW,
        client="",
    )  # fmt: skip
    diary = r.DiaryExportRecord(
        being="ada", date="2026-03-01", text="Sailed", sources=(memory(1, "x").id,), written_at=NOW
    )
    profile = r.ProfileExportRecord(being="ada", kind="soul", name="voice", value="calm", enabled=True, updated_at=NOW)
    note = r.NoteExportRecord(
        being="ada", id="n", kind="todo", content="Buy tea", state="unread", reason="", created_at=NOW
    )
    found = files(memory(1, "x"), session, message, diary, profile, note)
    assert "[[Memories/Unsorted#^m1|m1]]" in found["Diary/2026-03.md"]
    assert "**Bob** Ahoy" in found["Conversations/A talk.md"]
    assert {"Profile.md", "Notes.md"} <= set(found)


def test_beings_have_folders_of_their_own() -> None:
    other = memory(1, "y").model_copy(update={"being": "../bob"})
    assert list(files(memory(1, "x"), other)) == ["ada/Memories/Unsorted.md", "bob/Memories/Unsorted.md"]
