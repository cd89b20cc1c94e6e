"""What the ledger promises of core blocks (spec O12), for every implementation."""

from __future__ import annotations

import asyncio
from typing import Any

from madeleine.memory.core_blocks.ports import CoreBlockLedger
from madeleine.memory.core_blocks.values import CoreBlock
from tests.contracts.ledger.ledger_values import ADA, BOB, MOMENT


def block(name: str = "human", version: int = 1, **fields: Any) -> CoreBlock:
    given: dict[str, Any] = {
        "text": f"version {version}",
        "description": "",
        "max_chars": 99,
        "written_at": MOMENT,
        "client": "test",
    }
    return CoreBlock(name=name, version=version, **(given | fields))


class CoreBlockContract:
    async def test_each_version_is_kept_whole_and_the_last_one_is_current(self, blocks: CoreBlockLedger) -> None:
        written = [block(), block(version=2, text="ünï\ncode", description="of the user", max_chars=7), block("a")]
        for one in written:
            assert await blocks.write_core_block_if_next_version(ADA, one)
        assert await blocks.core_blocks(ADA) == [written[2], written[1]]
        assert await blocks.core_block_versions(ADA, "human") == written[:2]
        assert await blocks.core_blocks(BOB) == []
        assert await blocks.core_block_versions(BOB, "human") == []

    async def test_of_two_that_write_one_version_the_first_wins(self, blocks: CoreBlockLedger) -> None:
        for other in (block(version=2), block(version=0)):
            assert not await blocks.write_core_block_if_next_version(ADA, other)
        done = await asyncio.gather(
            *(blocks.write_core_block_if_next_version(ADA, block(text=str(n))) for n in range(4))
        )
        assert sum(done) == 1
        assert [one.text for one in await blocks.core_blocks(ADA)] == [str(done.index(True))]

    async def test_a_block_is_erased_with_all_versions_by_its_owner_alone(self, blocks: CoreBlockLedger) -> None:
        for version in (1, 2):
            await blocks.write_core_block_if_next_version(ADA, block(version=version))
        assert await blocks.erase_core_block(BOB, "human", at=MOMENT) == 0
        assert await blocks.erase_core_block(ADA, "human", at=MOMENT) == 2
        assert await blocks.core_block_versions(ADA, "human") == []
        assert await blocks.write_core_block_if_next_version(ADA, block())
