"""Checks of the MCP clients and the hooks on this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from madeleine import operating_system
from madeleine.server.clients.catalogue import claude_code_hook_event_names
from madeleine.server.clients.configuration_paths import ClientConfigurationPaths
from madeleine.server.clients.configured import (
    MadeleineServerEntry,
    UnreadableConfigurationFileReport,
    claude_code_madeleine_hook_events_by_file,
    find_madeleine_server_entries,
)
from madeleine.server.clients.jsonc import UnreadableConfiguration
from madeleine.server.doctor.findings import DoctorFinding
from madeleine.server.settings.environment import resolve_data_directory, setting_values_from_variables


def findings_about_client_configurations(variables: Mapping[str, str], data_dir: Path) -> Iterator[DoctorFinding]:
    places = ClientConfigurationPaths(Path.home(), operating_system.OPERATING_SYSTEM, variables)
    count = 0
    for found in find_madeleine_server_entries(places, Path.cwd()):
        if isinstance(found, UnreadableConfigurationFileReport):
            text = f"{found.client}: {found.file} cannot be read: {found.reason}."
            yield DoctorFinding("clients", "note", text, "Correct the file; the client itself may refuse it, too.")
        else:
            count += 1
            yield _finding_about_server_entry(found, data_dir)
    if not count:
        advice = "`madeleine init` connects those that it finds; `madeleine config` prints the entry for any other."
        yield DoctorFinding("clients", "note", "No MCP client on this machine is configured for Madeleine.", advice)


def _finding_about_server_entry(server: MadeleineServerEntry, data_dir: Path) -> DoctorFinding:
    entry = f"{server.client}: the entry {server.name!r} in {server.file}"
    settings = setting_values_from_variables(server.variables or {})
    being = settings.get("being", "default")
    details = {"client": server.client, "file": str(server.file), "being": being, "url": server.url}
    if server.url:
        return DoctorFinding("clients", "ok", f"{entry} reaches {server.url}.", details=details)
    command = _executable_path_or_none(server.command)
    details["command"] = server.command
    if command is None:
        text = f"{entry} starts {server.command!r}, which is not there."
        return DoctorFinding("clients", "problem", text, "Put the command in that `madeleine config` prints.", details)
    directory = resolve_data_directory(settings["data_dir"]) if "data_dir" in settings else None
    if directory and directory != data_dir:
        text = f"{entry} uses another memory: {directory}, being {being!r}."
        return DoctorFinding("clients", "note", text, "Nothing need be done if that is meant.", details)
    if not Path(server.command).is_absolute():
        text = f"{entry} starts {server.command!r}, which the client may not find: few see the PATH of a shell."
        return DoctorFinding("clients", "note", text, f"Give the whole path: {command}.", details)
    return DoctorFinding("clients", "ok", f"{entry}: being {being!r}.", details=details)


def _executable_path_or_none(command: str) -> str | None:
    if Path(command).is_absolute():
        return command if os.access(command, os.X_OK) else None
    return shutil.which(command)


def findings_about_claude_code_hooks(variables: Mapping[str, str]) -> Iterator[DoctorFinding]:
    places = ClientConfigurationPaths(Path.home(), operating_system.OPERATING_SYSTEM, variables)
    if not places.claude_code_folder.is_dir():
        return
    try:
        found = claude_code_madeleine_hook_events_by_file(places, Path.cwd())
    except UnreadableConfiguration as error:
        yield DoctorFinding(
            "hooks", "note", f"The settings of Claude Code cannot be read: {error}.", "Correct the file."
        )
        return
    advice = "`madeleine init` adds them; `madeleine help hooks` says how to do it by hand."
    if not found:
        yield DoctorFinding(
            "hooks", "note", "Claude Code has no hooks of Madeleine: it remembers what it is told.", advice
        )
    for file, events in found.items():
        missing = [event for event in claude_code_hook_event_names() if event not in events]
        details = {"file": str(file), "events": sorted(events)}
        if missing:
            text = f"The hooks in {file} lack {', '.join(missing)}."
            yield DoctorFinding("hooks", "note", text, advice, details)
        else:
            yield DoctorFinding("hooks", "ok", f"The hooks of Claude Code are in {file}.", details=details)
