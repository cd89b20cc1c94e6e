"""Imports of exports, which the host carries out, and their undo."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from madeleine.memory.errors import InvalidInput
from madeleine.memory.moving.counts import describe_record_counts
from madeleine.memory.moving.export_file import is_export_header
from madeleine.memory.text.structure import terminal_safe_line
from madeleine.server import EXIT_FAILURE, EXIT_NOTHING_TO_DO
from madeleine.server.attach.client import run_command_on_host
from madeleine.server.cli.output import absolute_path, print_json, redacted_secrets_sentence, show_byte_progress
from madeleine.server.settings.environment import read_environment_variables, setting_values_from_variables
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.data_directory import open_ledger_without_index

MAX_EXPORT_HEADER_BYTES = 1_000_000
MAX_IMPORT_RECORDS_PRINTED = 20
_TEXT_BY_LEFT_OUT_REASON = {
    "different": "say something else here under the same id, and stay as they are here",
    "taken": "have an id that is another being's here",
    "forgotten": "were forgotten here, and do not come back",
}


def is_export_file(path: Path) -> bool:
    """Raises `InvalidInput` if it cannot be read."""
    if path.is_dir():
        return False
    try:
        with path.open("rb") as file:
            return is_export_header(file.readline(MAX_EXPORT_HEADER_BYTES))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error}. Nothing was imported.") from error


async def import_file_exported_by_madeleine(settings: Settings, file: Path, arguments: argparse.Namespace) -> int:
    """The exit code. Raises `InvalidInput`."""
    require_import_allowed(settings)
    command = {"command": "import", "file": str(absolute_path(str(file))), "being": arguments.being or ""}
    command |= {"dry_run": "yes"} if arguments.dry_run else {}
    result = await _run_import_with_progress(settings, command, file.name)
    if arguments.json:
        print_json(result)
    else:
        _print_import_result(file, result, is_dry_run=arguments.dry_run)
    left_out: Mapping[str, int] = result["left_out_counts"]
    if left_out.get("different") or left_out.get("taken"):
        return EXIT_FAILURE
    return 0 if result["added"] else EXIT_NOTHING_TO_DO


async def undo_import(settings: Settings, import_id: str, *, as_json: bool) -> int:
    require_import_allowed(settings)
    result = await _run_import_with_progress(settings, {"command": "undo_import", "import": import_id}, import_id)
    if as_json:
        print_json(result)
    else:
        kept = (
            f" Kept, for it was changed or built upon since: {describe_record_counts(result['kept'])}."
            if result["kept"]
            else ""
        )
        removed = describe_record_counts(result["removed"])
        print(f"The import {terminal_safe_line(import_id)} is undone: {removed} were removed.{kept}")
    return 0


async def print_past_imports(settings: Settings, *, as_json: bool) -> None:
    async with open_ledger_without_index(settings, create=False) as ledger:
        imports = await ledger.imports.past_imports()
    if as_json:
        fields = ("id", "source", "state")
        print_json(
            [
                {name: getattr(one, name) for name in fields} | {"at": one.at.isoformat(), "counts": dict(one.counts)}
                for one in imports
            ]
        )
        return
    for one in imports:
        at = one.at.astimezone().isoformat(sep=" ", timespec="seconds")
        print(terminal_safe_line(f"{at}  {one.id}  {one.state}  {one.source}: {describe_record_counts(one.counts)}"))
    if not imports:
        print("Nothing was imported yet.")


async def _run_import_with_progress(settings: Settings, command: Mapping[str, str], name: str) -> dict[str, Any]:
    with show_byte_progress(0) as show:

        def on_progress(done: int, total: int) -> None:
            show(name, 0, f"{done:,} of {total:,} records")

        return await run_import_command_on_host(settings, command, on_progress)


async def run_import_command_on_host(
    settings: Settings, command: Mapping[str, str], on_progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, Any]:
    """Have the host of the data directory, which is started if there is none, carry out a command. `on_progress`:
    (done, total)."""
    variables = read_environment_variables()
    own = {key: value for key, value in setting_values_from_variables(variables).items() if key != "data_dir"}
    return await run_command_on_host(settings.data_dir, variables, own, command, on_progress)


def require_import_allowed(settings: Settings) -> None:
    if settings.read_only:
        raise InvalidInput(
            "An import writes, and the setting read_only does not allow it. To do it this once, run it with "
            "MADELEINE_READ_ONLY=false."
        )


def _print_import_result(file: Path, result: Mapping[str, Any], *, is_dry_run: bool) -> None:
    known = f"; {describe_record_counts(result['known'])} are here already" if result["known"] else ""
    verb = "Would import" if is_dry_run else "Imported"
    print(terminal_safe_line(f"{verb} from {file}: {describe_record_counts(result['added'])}{known}."))
    if result["renumbered"]:
        print(f"{result['renumbered']:,} memories have another short id here, for theirs was taken.")
    if result["redacted"]:
        print(redacted_secrets_sentence(result["redacted"]))
    for reason, count in result["left_out_counts"].items():
        print(f"madeleine: {count:,} {_TEXT_BY_LEFT_OUT_REASON[reason]}:", file=sys.stderr)
        named = [record for record in result["left_out"] if record["reason"] == reason]
        for record in named[:MAX_IMPORT_RECORDS_PRINTED]:
            print(terminal_safe_line(f"  {record['type']} {record['id']} of {record['being']!r}"), file=sys.stderr)
        if (more := count - len(named[:MAX_IMPORT_RECORDS_PRINTED])) > 0:
            print(f"  and {more:,} more", file=sys.stderr)
    if result["import"]:
        print(f"To undo it: madeleine import --undo {result['import']}")
