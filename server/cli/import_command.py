"""`madeleine import` and `madeleine move-in`: exports of Madeleine, and what other programs keep."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from madeleine.memory.errors import InvalidInput
from madeleine.memory.text.structure import terminal_safe_line
from madeleine.server import EXIT_NOTHING_TO_DO
from madeleine.server.cli.moving.export_import import (
    import_file_exported_by_madeleine,
    is_export_file,
    print_past_imports,
    require_import_allowed,
    undo_import,
)
from madeleine.server.cli.moving.source_import import import_files_of_other_programs
from madeleine.server.cli.output import absolute_path
from madeleine.server.moving_in.program_data import find_data_of_other_programs
from madeleine.server.settings.environment import read_environment_variables
from madeleine.server.settings.settings import Settings

MOVE_IN_IMPORT_NAME = "move-in"
"""The name of such an import in the list: one that was interrupted is continued by the next."""


async def import_command(settings: Settings, arguments: argparse.Namespace) -> int:
    """The exit code, the worst of all files. Raises `InvalidInput`."""
    if arguments.list:
        await print_past_imports(settings, as_json=arguments.json)
        return 0
    if arguments.undo:
        return await undo_import(settings, arguments.undo, as_json=arguments.json)
    if not arguments.files:
        raise InvalidInput("Give the files or folders to import; `madeleine move-in` finds those of this machine.")
    files = [absolute_path(file) for file in arguments.files]
    exports = [file for file in files if await asyncio.to_thread(is_export_file, file)]
    sources = [file for file in files if file not in exports]
    codes = [await import_file_exported_by_madeleine(settings, file, arguments) for file in exports]
    if sources:
        codes.append(await _import_from_other_programs(settings, sources, arguments))
    errors = [code for code in codes if code not in (0, EXIT_NOTHING_TO_DO)]
    return max(errors) if errors else min(codes)


async def move_in_command(settings: Settings, arguments: argparse.Namespace) -> int:
    """Show what other programs keep on this machine, ask, and import it."""
    home = absolute_path(arguments.home or "~")
    # The variables of the environment belong to the home of who is logged in.
    places = find_data_of_other_programs({} if arguments.home else read_environment_variables(), home)
    if not places:
        print(f"Nothing of another program was found in {home}. `madeleine import PATH` takes files from elsewhere.")
        return EXIT_NOTHING_TO_DO
    for product, path in places:
        print(terminal_safe_line(f"Found: {product}, {path}"), file=sys.stderr if arguments.json else sys.stdout)
    paths = [path for _, path in places]
    if not (arguments.json and arguments.yes and not arguments.dry_run):  # one JSON text is printed
        code = await _import_from_other_programs(settings, paths, arguments, dry_run=True)
        if arguments.dry_run or code == EXIT_NOTHING_TO_DO:
            return code
    if not arguments.yes and not await asyncio.to_thread(_ask_to_confirm_import, settings.being):
        print("Nothing was imported.")
        return EXIT_NOTHING_TO_DO
    return await _import_from_other_programs(settings, paths, arguments, dry_run=False, source=MOVE_IN_IMPORT_NAME)


async def _import_from_other_programs(
    settings: Settings,
    paths: list[Path],
    arguments: argparse.Namespace,
    *,
    dry_run: bool | None = None,
    source: str = "",
) -> int:
    dry_run = arguments.dry_run if dry_run is None else dry_run
    if not dry_run:
        require_import_allowed(settings)
    if arguments.being:
        settings = settings.model_copy(update={"being": arguments.being})
    return await import_files_of_other_programs(
        settings, paths, dry_run=dry_run, remember=arguments.remember, as_json=arguments.json, source=source
    )


def _ask_to_confirm_import(being: str) -> bool:
    if not sys.stdin.isatty():
        raise InvalidInput("Nothing was imported: there is no terminal to ask on. --yes imports it.")
    return input(f"Import this for {being!r}? [y/N] ").strip().lower() in ("y", "yes")
