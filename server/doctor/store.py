"""Checks of the ledger, the index, and what the memories say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from madeleine.memory.model import short_id_of_memory_number
from madeleine.memory.rules.review import MemoryForReview, ReviewReason, memories_by_review_reason
from madeleine.memory.rules.storing.secrets import redact_secrets
from madeleine.memory.text.structure import terminal_safe_line
from madeleine.server.background.index_origin import (
    INDEX_FOLDERS,
    SourceLedgerStateOfIndex,
    require_ledger_file_if_index_exists,
)
from madeleine.server.background.index_place import BUILT_INDEX_LOCATION_SETTING, SECOND_INDEX_IN_USE_SETTING
from madeleine.server.counted import count_phrase
from madeleine.server.doctor.findings import DoctorFinding, FindingLevel
from madeleine.server.doctor.installation import host_holds_lock
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.data_directory import LEDGER_FILE
from madeleine.storage.qdrant.edge_files import find_damage_of_index_files
from madeleine.storage.sql.database.inspection import LedgerFileInspector, open_ledger_file_inspector
from madeleine.storage.sql.database.schema import NEWEST_SCHEMA_REVISION

LEDGER_RESTORE_ADVICE = (
    "`madeleine stop`, then `madeleine restore FILE` with a backup; `madeleine export` saves what can still be read."
)
INDEX_REBUILDS_ITSELF_NOTE = "Nothing is lost: the next start of the host builds it anew, as `madeleine reindex` does."
MAX_BACKUP_AGE_WITHOUT_WARNING = timedelta(days=30)
MAX_MEMORIES_REVIEWED_BY_DOCTOR = 20_000
"""The newest; so many take 3 s of a processor."""
MAX_MEMORIES_NAMED_IN_FINDING = 5
FINDING_BY_REVIEW_REASON: Mapping[ReviewReason, tuple[FindingLevel, str, str]] = {
    "secret": (
        "problem",
        "What looks like a secret",
        "Correct them with update_memory, or erase them with forget; MADELEINE_REDACT=on takes secrets out of new ones",
    ),
    "duplicate": ("note", "The same words as in another memory", "`madeleine patrol` merges them"),
    "junk": ("note", "Nothing but greetings, thanks, yes or no", "forget erases them"),
    "undecided": (
        "note",
        "May have made an earlier one untrue, and nobody has decided for a month",
        "`madeleine patrol` shows what is pending; update_memory or a language model decides",
    ),
    "never recalled": (
        "note",
        "Never recalled in three months",
        "Nothing need be done: they fade with the patrols, and search_memory still finds them",
    ),
}


def ledger_findings(data_dir: Path, *, thorough: bool) -> Iterator[DoctorFinding]:
    path = data_dir / LEDGER_FILE
    require_ledger_file_if_index_exists(path)
    if not path.exists():
        yield DoctorFinding(
            "ledger", "note", "Nothing is stored yet.", "`madeleine init` connects the clients on this machine."
        )
        return
    with open_ledger_file_inspector(path) as ledger:
        if damage := ledger.find_damage(thorough=thorough):
            text = f"The memory database is damaged: {'; '.join(damage)}"
            yield DoctorFinding("ledger", "problem", text, LEDGER_RESTORE_ADVICE, {"damage": damage})
        revision = ledger.schema_revision()
        if not revision:
            yield DoctorFinding("ledger", "problem", f"{path} is no memory of Madeleine.", LEDGER_RESTORE_ADVICE)
            return
        yield from _schema_finding(revision)
        if damage or revision != NEWEST_SCHEMA_REVISION:
            return
        memories = ledger.count_memories()
        total = (
            f"{count_phrase(sum(memories.values()), 'memory', 'memories')} of {count_phrase(len(memories), 'being')}"
        )
        yield DoctorFinding("ledger", "ok", f"The memory database is whole: {total}.", details={"memories": memories})
        if unreadable := ledger.count_unreadable_notes():
            text = f"{count_phrase(unreadable, 'note')} could not be read."
            yield DoctorFinding("ledger", "note", text, "`madeleine profile show notes` shows them with the reason.")
        yield from _backup_finding(ledger, has_memories=bool(memories))


def _schema_finding(revision: str) -> Iterator[DoctorFinding]:
    if revision > NEWEST_SCHEMA_REVISION:
        text = (
            f"The memory database was written by a newer Madeleine (schema {revision}, not {NEWEST_SCHEMA_REVISION})."
        )
        yield DoctorFinding("ledger", "problem", text, "Update Madeleine.")
    elif revision < NEWEST_SCHEMA_REVISION:
        text = f"The memory database is of an older version (schema {revision}, not {NEWEST_SCHEMA_REVISION})."
        yield DoctorFinding("ledger", "note", text, "The next start of the host brings it up to date.")


def _backup_finding(ledger: LedgerFileInspector, *, has_memories: bool) -> Iterator[DoctorFinding]:
    last = ledger.path_and_time_of_last_backup()
    advice = "`madeleine backup`, or MADELEINE_BACKUP_HOURS, makes one."
    if last is None:
        if has_memories:
            yield DoctorFinding("backup", "note", "There is no backup.", advice)
        return
    path, micros = last
    at = datetime.fromtimestamp(micros / 1_000_000, UTC)
    text = f"The last backup is of {at:%Y-%m-%d}, in {path}"
    if not Path(path).exists():
        yield DoctorFinding("backup", "note", f"{text}, and is not there any more.", advice)
    elif utc_now() - at > MAX_BACKUP_AGE_WITHOUT_WARNING:
        yield DoctorFinding("backup", "note", f"{text}.", advice)
    else:
        yield DoctorFinding("backup", "ok", f"{text}.")


def findings_about_index(settings: Settings) -> Iterator[DoctorFinding]:
    """Only its list of files is read: the engine would write, and map files that may be torn."""
    path = settings.data_dir / LEDGER_FILE
    if settings.qdrant_url:
        yield DoctorFinding("index", "ok", f"The index is on the Qdrant server {settings.qdrant_url}.")
        return
    if not path.exists():
        return
    with open_ledger_file_inspector(path) as ledger:
        folder = settings.data_dir / INDEX_FOLDERS[bool(ledger.setting(SECOND_INDEX_IN_USE_SETTING))]
        built = ledger.setting(BUILT_INDEX_LOCATION_SETTING)
        pending, memories = ledger.count_pending_index_marks(), sum(ledger.count_memories().values())
    details = {"pending": pending, "memories": memories, "path": str(folder)}
    if host_holds_lock(settings.data_dir):
        text = f"The index is open; {count_phrase(pending, 'change')} to be taken in."
        yield DoctorFinding("index", "ok", text, details=details)
    elif not built or not folder.is_dir():
        yield DoctorFinding("index", "note", "The index is not complete.", INDEX_REBUILDS_ITSELF_NOTE, details)
    elif damage := find_damage_of_index_files(folder):
        yield DoctorFinding("index", "problem", f"The index is damaged: {damage}.", INDEX_REBUILDS_ITSELF_NOTE, details)
    elif SourceLedgerStateOfIndex.read(folder) is None:
        yield DoctorFinding("index", "note", "The index does not tell which ledger it was made from.", "", details)
    else:
        text = f"The files of the index are whole; {count_phrase(pending, 'change')} to be taken in."
        yield DoctorFinding("index", "ok", text, details=details)


def memory_quality_findings(data_dir: Path) -> Iterator[DoctorFinding]:
    """What is junk, duplicated, undecided, never asked for, secret."""
    path = data_dir / LEDGER_FILE
    if not path.exists():
        return
    with open_ledger_file_inspector(path) as ledger:
        living = list(ledger.newest_living_memories_of_all_beings(limit=MAX_MEMORIES_REVIEWED_BY_DOCTOR))
    noticed = memories_by_review_reason(living, now=utc_now(), redact=redact_secrets)
    for reason, (level, text, advice) in FINDING_BY_REVIEW_REASON.items():
        if memories := noticed.get(reason):
            named = ", ".join(_short_ids_named_in_finding(memories))
            yield DoctorFinding(
                "memories",
                level,
                f"{text}: {len(memories):,} {'memory' if len(memories) == 1 else 'memories'} ({named}).",
                f"{advice}.",
                {"reason": reason, "count": len(memories), "ids": [memory.id for memory in memories]},
            )
    if not noticed and living:
        yield DoctorFinding("memories", "ok", f"Nothing is to be said of {len(living):,} living memories.")
    if len(living) == MAX_MEMORIES_REVIEWED_BY_DOCTOR:
        yield DoctorFinding(
            "memories", "note", f"Only the newest {MAX_MEMORIES_REVIEWED_BY_DOCTOR:,} memories were looked at."
        )


def _short_ids_named_in_finding(memories: list[MemoryForReview]) -> Iterator[str]:
    several = len({memory.being for memory in memories}) > 1
    for memory in memories[:MAX_MEMORIES_NAMED_IN_FINDING]:
        whose = f" of {terminal_safe_line(memory.being)}" if several else ""
        yield f"{short_id_of_memory_number(memory.number)}{whose}"
    if len(memories) > MAX_MEMORIES_NAMED_IN_FINDING:
        yield "…"


def findings_about_language_model_settings(settings: Settings) -> Iterator[DoctorFinding]:
    """Which model, whether there is a key, and what of the budgets is spent. No request is sent, no key shown."""
    config = settings.llm_config()
    key = bool(settings.resolved_llm_key())
    if config is None or not (settings.llm or settings.is_llm_chosen_or_turned_off()):
        advice = "None is needed. MADELEINE_LLM and MADELEINE_LLM_API_KEY choose one."
        yield DoctorFinding("language model", "ok", "There is no language model.", advice)
        return
    details = {"protocol": config.protocol, "small": config.small_model, "large": config.large_model, "key": key}
    text = f"{config.large_model} ({config.protocol}{f', {config.url}' if config.url else ''})"
    if not key and not config.url:
        advice = f"Set MADELEINE_LLM_API_KEY, or {config.protocol.upper()}_API_KEY."
        yield DoctorFinding(
            "language model", "problem", f"{text} is chosen, and there is no key for it.", advice, details
        )
    else:
        yield DoctorFinding("language model", "ok", f"{text}; {'a key' if key else 'no key'}.", details=details)
    path = settings.data_dir / LEDGER_FILE
    if path.exists():
        since = (utc_now() - timedelta(days=1)).timestamp() * 1_000_000
        with open_ledger_file_inspector(path) as ledger:
            spent = ledger.tokens_spent_by_purpose_since(int(since))
        used, budget = spent.get("extract", 0), settings.thread_token_budget
        text = f"{sum(spent.values()):,} tokens in 24 hours; the memory thread has used {used:,} of {budget:,}."
        if budget and used >= budget:
            advice = "It waits until tokens are free again; MADELEINE_THREAD_TOKEN_BUDGET raises the limit."
            yield DoctorFinding("language model", "note", text, advice, {"tokens": spent})
        elif spent:
            yield DoctorFinding("language model", "ok", text, details={"tokens": spent})
