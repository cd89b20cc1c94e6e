"""`madeleine doctor`: what is wrong with this installation and its memory, and what to do. Nothing is changed, and no
process is started or ended."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial

from rich.table import Table
from rich.text import Text

from madeleine.memory.errors import InvalidInput
from madeleine.memory.text.structure import terminal_safe_line
from madeleine.server import EXIT_FAILURE
from madeleine.server.cli.output import make_console, print_json, show_spinner
from madeleine.server.counted import count_phrase
from madeleine.server.doctor.clients import findings_about_claude_code_hooks, findings_about_client_configurations
from madeleine.server.doctor.findings import DoctorCheck, DoctorFinding, FindingLevel, findings_of_checks
from madeleine.server.doctor.installation import (
    data_directory_findings,
    file_permission_findings,
    findings_about_embedding_model,
    findings_about_host_log,
    findings_about_host_process,
    software_version_findings,
)
from madeleine.server.doctor.postgres import findings_about_postgres
from madeleine.server.doctor.store import (
    findings_about_index,
    findings_about_language_model_settings,
    ledger_findings,
    memory_quality_findings,
)
from madeleine.server.settings.environment import (
    read_environment_variables,
    resolve_data_directory,
    setting_values_from_variables,
)
from madeleine.server.settings.settings import Settings, read_settings

STYLE_BY_FINDING_LEVEL: Mapping[FindingLevel, str] = {"ok": "green", "note": "yellow", "problem": "bold red"}


def doctor_command(arguments: argparse.Namespace) -> int:
    """The exit code: 1 if there are problems."""
    with show_spinner("looking at everything"):
        findings = list(run_all_doctor_checks(quick=arguments.quick))
    problems = sum(finding.level == "problem" for finding in findings)
    if arguments.json:
        print_json({"problems": problems, "findings": [asdict(finding) for finding in findings]})
    else:
        print_doctor_findings(findings)
        notes = sum(finding.level == "note" for finding in findings)
        print(
            f"{count_phrase(problems, 'problem')}, {count_phrase(notes, 'note')}."
            if problems or notes
            else "All is well."
        )
    return EXIT_FAILURE if problems else 0


def run_all_doctor_checks(*, quick: bool) -> Iterator[DoctorFinding]:
    """`quick`: without what reads the whole memory. Settings that cannot be used are a finding; what does not depend on
    them is looked at all the same."""
    variables = read_environment_variables()
    data_dir = resolve_data_directory(setting_values_from_variables(variables).get("data_dir"))
    checks: dict[str, DoctorCheck] = {
        "versions": software_version_findings,
        "settings": partial(_findings_about_settings, variables),
    }
    settings = _settings_if_usable(variables)
    if settings:
        checks["model"] = partial(findings_about_embedding_model, settings)
    checks |= {
        "data directory": partial(data_directory_findings, data_dir),
        "permissions": partial(file_permission_findings, data_dir),
        "host": partial(findings_about_host_process, data_dir),
        "log": partial(findings_about_host_log, data_dir),
    }
    if settings and settings.database_url:
        checks["ledger"] = partial(findings_about_postgres, settings)
    else:
        checks["ledger"] = partial(ledger_findings, data_dir, thorough=not quick)
    if settings:
        if not settings.database_url:
            checks["index"] = partial(findings_about_index, settings)
        checks |= {
            "language model": partial(findings_about_language_model_settings, settings),
        }
    checks |= {
        "clients": partial(findings_about_client_configurations, variables, data_dir),
        "hooks": partial(findings_about_claude_code_hooks, variables),
    }
    if not quick:
        checks["memories"] = partial(memory_quality_findings, data_dir)
    return findings_of_checks(checks)


def _settings_if_usable(variables: Mapping[str, str]) -> Settings | None:
    try:
        return read_settings(variables)
    except InvalidInput:
        return None


def _findings_about_settings(variables: Mapping[str, str]) -> Iterable[DoctorFinding]:
    try:
        settings = read_settings(variables)
    except InvalidInput as error:
        yield DoctorFinding("settings", "problem", str(error), "`madeleine help settings` lists them all.")
        return
    changed = settings.model_fields_set - {"data_dir"}
    text = f"The being is {settings.being!r}."
    yield DoctorFinding("settings", "ok", text, details={"being": settings.being, "set": sorted(changed)})


def print_doctor_findings(findings: Sequence[DoctorFinding]) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    for no_wrap in (True, True, False):
        table.add_column(no_wrap=no_wrap, overflow="fold")
    for finding in findings:
        lines = [finding.text, *([f"→ {finding.advice}"] if finding.advice and finding.level != "ok" else [])]
        text = Text("\n".join(map(terminal_safe_line, lines)))
        table.add_row(Text(finding.level, style=STYLE_BY_FINDING_LEVEL[finding.level]), finding.area, text)
    make_console().print(table)
