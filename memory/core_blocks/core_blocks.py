"""Read and edit core blocks (spec O12)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import datetime

from madeleine.memory.core_blocks.ports import CoreBlockLedger, RequestErasedBytesScrub
from madeleine.memory.core_blocks.values import (
    DEFAULT_BLOCK_CHARS,
    MAX_CORE_BLOCKS,
    CoreBlock,
    VersionedCoreBlockEdit,
    core_block_conflict_error,
    core_block_text_after_edit,
    require_core_block_text_within_limit,
)
from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import Scope
from madeleine.memory.rules.storing.secrets import CountingRedactor, RedactText, redact_secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedCoreBlock:
    """`redacted`: number of secrets removed, by kind."""

    block: CoreBlock
    redacted: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class EditCoreBlocks:
    """The use case. An edit names the version that it was made from; it is refused, with a diff, if that is not the
    current one any more."""

    ledger: CoreBlockLedger
    request_scrub: RequestErasedBytesScrub
    _: KW_ONLY
    now: Callable[[], datetime]
    redact: RedactText = redact_secrets

    async def blocks(self, scope: Scope) -> list[CoreBlock]:
        return await self.ledger.core_blocks(scope)

    async def versions(self, scope: Scope, name: str) -> list[CoreBlock]:
        """Oldest first. Raises `InvalidInput` for an unknown block."""
        versions = await self.ledger.core_block_versions(scope, " ".join(name.split()))
        if not versions:
            raise _unknown_core_block_error(name)
        return versions

    async def edit(self, scope: Scope, edit: VersionedCoreBlockEdit) -> EditedCoreBlock:
        """Write the next version. Secrets are redacted first. Raises `CoreBlockEditConflict` for an edit of another
        version than the current one, `InvalidInput` for what does not fit, `StorageFull`, `StorageError`."""
        redactor = CountingRedactor(self.redact)
        name = " ".join(redactor.redact_text(edit.name).split())
        known = {block.name: block for block in await self.ledger.core_blocks(scope)}
        current = known.get(name)
        if edit.version != (current.version if current else 0):
            raise await self._conflict_error(scope, name, edit.version)
        if current is None:
            if edit.kind == "replace":
                raise _unknown_core_block_error(name)
            if len(known) >= MAX_CORE_BLOCKS:
                raise InvalidInput(
                    f"There are {MAX_CORE_BLOCKS} core blocks, each part of every prompt. Nothing was written: add to "
                    "one of them, or store this as a memory."
                )
        text = redactor.redact_text(core_block_text_after_edit(current.text if current else "", edit)).strip()
        before = current.description if current else ""
        description = before if edit.description is None else redactor.redact_text(edit.description)
        block = CoreBlock(
            name=name,
            version=edit.version + 1,
            text=text,
            description=description,
            max_chars=edit.max_chars or (current.max_chars if current else DEFAULT_BLOCK_CHARS),
            written_at=self.now(),
            client=scope.client,
        )
        require_core_block_text_within_limit(text, block.max_chars, name)
        if not await self.ledger.write_core_block_if_next_version(scope, block):
            raise await self._conflict_error(scope, name, edit.version)
        return EditedCoreBlock(block=block, redacted=redactor.found)

    async def _conflict_error(self, scope: Scope, name: str, edited: int) -> Exception:
        versions = await self.ledger.core_block_versions(scope, name)
        read = next((block for block in versions if block.version == edited), None)
        if edited and read is None and versions:
            return InvalidInput(
                f"The core block {name!r} has no version {edited}. Nothing was changed: its version is "
                f"{versions[-1].version}."
            )
        return core_block_conflict_error(name, read=read, edited=edited, current=versions[-1] if versions else None)

    async def erase(self, scope: Scope, name: str) -> str:
        """Erase a block with all its versions, from the files too; its id in the audit. Raises `InvalidInput` for an
        unknown block."""
        [*_, last] = await self.versions(scope, name)
        if not await self.ledger.erase_core_block(scope, last.name, at=self.now()):
            raise _unknown_core_block_error(name)
        self.request_scrub()
        return last.id


def _unknown_core_block_error(name: str) -> InvalidInput:
    return InvalidInput(
        f"There is no core block {name[:100]!r}. Nothing was changed: core_memory lists all; a new one has version 0."
    )
