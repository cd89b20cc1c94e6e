"""Checks of the installation: versions, model files, data directory, space, permissions, host, log."""

from __future__ import annotations

import os
import platform
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from madeleine import operating_system
from madeleine.inference import PACKAGED_MODEL_NAME
from madeleine.inference.available import model_name_identifying_vectors
from madeleine.inference.default_model import english_encoder, multilingual_encoder
from madeleine.inference.default_model.engines import REINSTALL_REMEDY
from madeleine.inference.default_model.model_files import DamagedModelFile
from madeleine.server import __version__
from madeleine.server.attach.connector import (
    HOST_LOG_FILE,
    HostHandshakeRequest,
    HostRefused,
    HostUnavailable,
    connect_to_host,
    hung_host_message,
    is_host_running,
)
from madeleine.server.attach.endpoint import HOST_LOCK_FILE
from madeleine.server.counted import count_phrase
from madeleine.server.doctor.findings import DoctorFinding
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.data_directory import (
    GROUP_AND_OTHERS_PERMISSION_BITS,
    OWNER_ONLY_DATA_FILE_PATTERNS,
    OWNER_ONLY_DATA_FOLDER_PATTERNS,
)
from madeleine.storage.resources import LEDGER_DISK_RESERVE_BYTES, MEGABYTE, free_disk_bytes

MIN_COMFORTABLE_FREE_DISK_BYTES = 10 * LEDGER_DISK_RESERVE_BYTES
MAX_HOST_ANSWER_SECONDS = 5.0
MAX_LOG_BYTES_READ = 1_000_000
MAX_FILES_NAMED_IN_FINDING = 3


def software_version_findings() -> Iterator[DoctorFinding]:
    details = {"madeleine": __version__, "python": platform.python_version(), "platform": platform.platform()}
    where = f"Python {details['python']}, {details['platform']}"
    yield DoctorFinding("versions", "ok", f"Madeleine {__version__}, {where}.", details=details)
    if not (3, 11) <= sys.version_info[:2] < (3, 15):
        yield DoctorFinding(
            "versions", "note", "This Python is not tested.", "Install Madeleine with Python 3.11 to 3.14."
        )


def findings_about_embedding_model(settings: Settings) -> Iterator[DoctorFinding]:
    if settings.embedding_model != PACKAGED_MODEL_NAME:
        model = model_name_identifying_vectors(settings.embedding_model)  # raises for a directory without a model
        advice = "`madeleine models list` shows those that can be had without a network."
        yield DoctorFinding("model", "ok", f"{model} is configured.", advice, {"model": model})
        return
    damaged = []
    for files in (english_encoder.ENGLISH_ENCODER_FILES, multilingual_encoder.MULTILINGUAL_ENCODER_FILES):
        for name in files.sha256:
            try:
                files.checked_path(name)
            except (OSError, DamagedModelFile) as error:
                damaged.append(f"{name}: {getattr(error, 'strerror', None) or error}")
    if damaged:
        text = f"Files of the embedding model cannot be used ({'; '.join(damaged)}): only words are compared."
        yield DoctorFinding("model", "problem", text, f"{REINSTALL_REMEDY[0].upper()}{REINSTALL_REMEDY[1:]}.")
    else:
        yield DoctorFinding(
            "model", "ok", "The files of the embedding model are whole.", details={"model": PACKAGED_MODEL_NAME}
        )


def data_directory_findings(data_dir: Path) -> Iterator[DoctorFinding]:
    if not data_dir.exists():
        advice = "The first client makes it. MADELEINE_DATA_DIR names another one."
        yield DoctorFinding("data directory", "note", f"{data_dir} is not there yet.", advice)
        return
    if not data_dir.is_dir() or not os.access(data_dir, os.R_OK | os.W_OK | os.X_OK):
        text = f"{data_dir} is no directory that this user can write to."
        yield DoctorFinding(
            "data directory", "problem", text, "Change its owner, or set MADELEINE_DATA_DIR to another one."
        )
        return
    free = free_disk_bytes(data_dir)
    details = {"path": str(data_dir), "free_bytes": free}
    space = f"{free // MEGABYTE:,} MB are free"
    advice = "Free some space: nothing is lost, but nothing is stored below that."
    if free < LEDGER_DISK_RESERVE_BYTES:
        text = f"{space}, fewer than the {LEDGER_DISK_RESERVE_BYTES // MEGABYTE} MB that a memory keeps free."
        yield DoctorFinding("data directory", "problem", text, advice, details)
    elif free < MIN_COMFORTABLE_FREE_DISK_BYTES:
        yield DoctorFinding("data directory", "note", f"Only {space} on the disk of {data_dir}.", advice, details)
    else:
        yield DoctorFinding("data directory", "ok", f"{data_dir}; {space}.", details=details)


def file_permission_findings(data_dir: Path) -> Iterator[DoctorFinding]:
    """Only where the system has such permissions."""
    if not operating_system.system_has_permission_bits() or not data_dir.is_dir():
        return
    open_to_others = sorted(
        path.name for path in _owner_only_data_paths(data_dir) if _is_accessible_to_other_users(path)
    )
    if open_to_others:
        named = ", ".join(open_to_others[:MAX_FILES_NAMED_IN_FINDING])
        advice = "The next start of the host closes them; until then: chmod -R go= of the data directory."
        text = f"Other users can read {count_phrase(len(open_to_others), 'file')} of the memory ({named})."
        yield DoctorFinding("permissions", "problem", text, advice, {"files": open_to_others})
    else:
        yield DoctorFinding("permissions", "ok", "The files of the memory are readable by their owner alone.")


def _owner_only_data_paths(data_dir: Path) -> Iterable[Path]:
    for pattern in (*OWNER_ONLY_DATA_FILE_PATTERNS, *OWNER_ONLY_DATA_FOLDER_PATTERNS):
        yield from data_dir.glob(pattern)


def _is_accessible_to_other_users(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:  # a temporary file
        return False
    return not stat.S_ISLNK(mode) and bool(mode & GROUP_AND_OTHERS_PERMISSION_BITS)


def findings_about_host_process(data_dir: Path) -> Iterator[DoctorFinding]:
    """The process that owns the memory, and whether it and its clients are of this version."""
    if not data_dir.is_dir():
        return
    try:
        connection, status = connect_to_host(
            data_dir, HostHandshakeRequest(requested_service="status"), seconds=MAX_HOST_ANSWER_SECONDS
        )
        connection.close()
    except HostRefused as refusal:
        yield DoctorFinding("host", "problem", str(refusal), "Update the older installation, or run `madeleine stop`.")
        return
    except HostUnavailable:
        if host_holds_lock(data_dir):
            yield DoctorFinding("host", "problem", hung_host_message(data_dir), "Kill the process and connect again.")
        else:
            yield DoctorFinding("host", "ok", "No process serves the memory now; the next client starts one.")
        return
    clients = status.get("clients", [])
    text = f"Process {status['pid']} (Madeleine {status['version']}) serves {count_phrase(len(clients), 'client')}."
    yield DoctorFinding("host", "ok", text, details=status)
    if status["version"] != __version__:
        text = f"The process of the memory is Madeleine {status['version']}, and this is {__version__}."
        yield DoctorFinding("host", "note", text, "`madeleine stop` ends it, and the next client starts this version.")
    if others := sorted({str(one["version"]) for one in clients} - {__version__}):
        text = f"Clients have other versions: {', '.join(others)}."
        yield DoctorFinding("host", "note", text, "Update them, or restart the programs that have started them.")


def host_holds_lock(data_dir: Path) -> bool:
    """As `is_host_running`, which would make the file of the lock."""
    return (data_dir / HOST_LOCK_FILE).exists() and is_host_running(data_dir)


def findings_about_host_log(data_dir: Path) -> Iterator[DoctorFinding]:
    path = data_dir / HOST_LOG_FILE
    if not path.exists():
        return
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - MAX_LOG_BYTES_READ))
        lines = file.read().decode(errors="replace").splitlines()
    errors = [line for line in lines if " ERROR " in line]
    if errors:
        text = f"The log has {len(errors)} errors; the last one: {errors[-1]}"
        yield DoctorFinding("log", "note", text, f"Look into {path}.", {"errors": len(errors)})
    else:
        yield DoctorFinding("log", "ok", "The log has no errors.", details={"path": str(path)})
