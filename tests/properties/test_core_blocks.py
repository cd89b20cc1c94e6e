"""Editors of core blocks, who each know the version that they have read (spec O12)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.core_blocks.core_blocks import EditCoreBlocks
from madeleine.memory.core_blocks.values import CoreBlock, VersionedCoreBlockEdit
from madeleine.memory.errors import CoreBlockEditConflict, InvalidInput
from tests.contracts.ledger.ledger_values import ADA, MOMENT
from tests.fakes.graph import InMemoryCoreBlocks

LIMIT = 12
NAMES = ("human", "task")
_texts = st.text("ab \n", max_size=LIMIT + 3)
_edits = st.fixed_dictionaries(
    {"kind": st.sampled_from(("write", "append", "replace")), "text": _texts, "old": st.text("ab", max_size=2)}
)
_steps = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(NAMES), st.booleans(), _edits), max_size=25)


@dataclass
class Editor:
    """`read`: the versions that it knows."""

    read: dict[str, CoreBlock] = field(default_factory=dict)


def text_by_hand(before: str, edit: dict[str, Any]) -> str:
    match edit["kind"]:
        case "write":
            return str(edit["text"])
        case "append":
            return f"{before}\n{edit['text']}" if before else str(edit["text"])
    return str(edit["text"]).join(before.split(edit["old"]))


@given(_steps)
def test_no_edit_is_lost_and_none_is_made_from_what_was_not_read(steps: list[Any]) -> None:
    """Every accepted edit was made from the version before it, by who had read that; a refused one changes nothing, and
    its diff leads from what was read to what is there; no text is longer than its limit; versions have no gap."""

    async def live() -> None:
        ledger = InMemoryCoreBlocks()
        edit_blocks = EditCoreBlocks(ledger, lambda: None, now=lambda: MOMENT)
        editors = [Editor() for _ in range(3)]
        for number, name, reads, edit in steps:
            editor = editors[number]
            current = {block.name: block for block in await edit_blocks.blocks(ADA)}
            if reads:
                editor.read = dict(current)
            known, before = editor.read.get(name), current.get(name)
            made = VersionedCoreBlockEdit(name=name, version=known.version if known else 0, max_chars=LIMIT, **edit)
            try:
                done = (await edit_blocks.edit(ADA, made)).block
            except CoreBlockEditConflict as refusal:
                diff = refusal.diff.splitlines()
                assert known != before
                assert before is not None
                removed, added = ([], []) if known is None else (known.text.splitlines(), before.text.splitlines())
                assert all(f"+{line}" in diff for line in set(added) - set(removed))
                assert {block.name: block for block in await edit_blocks.blocks(ADA)} == current
                continue
            except InvalidInput:
                assert {block.name: block for block in await edit_blocks.blocks(ADA)} == current
                continue
            assert known == before
            assert done.version == (before.version if before else 0) + 1
            assert done.text == text_by_hand(before.text if before else "", edit).strip()
            editor.read[name] = done
        for block in await edit_blocks.blocks(ADA):
            versions = await edit_blocks.versions(ADA, block.name)
            assert [one.version for one in versions] == list(range(1, block.version + 1))
            assert all(len(one.text) <= LIMIT for one in versions)

    asyncio.run(live())
