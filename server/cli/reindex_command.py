"""`madeleine reindex`: build the index anew from the ledger."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.progress import Progress

from madeleine.memory.model import BeingId, Scope
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import open_memory


async def reindex_command(settings: Settings, arguments: argparse.Namespace) -> None:
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("reindex", total=None)

        async def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        async with open_memory(settings, rebuild=True, progress=show, background=False) as memory:
            memory.use.audit(Scope(BeingId(""), "madeleine reindex"), "reindex")
            await memory.index.optimize()
            count = await memory.index.count()
    print(f"The index was rebuilt: {count} memories.")
