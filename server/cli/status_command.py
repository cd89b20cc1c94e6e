"""`madeleine status` and `madeleine stop`: the process that owns the memory. Standard library only."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from madeleine.server.attach.connector import (
    HostRequest,
    NoHost,
    host_is_running,
    no_answer_message,
    query_host,
    stop_host,
)
from madeleine.server.settings.environment import data_directory, environment, madeleine_variables


def status_command(arguments: argparse.Namespace) -> int:
    """Raises `HostRefused`."""
    data_dir = _data_dir()
    try:
        status = query_host(data_dir, HostRequest(want="status"))
    except NoHost:
        status = {"data_dir": str(data_dir)}
    if arguments.json:
        print(json.dumps(status, indent=2))
    elif "pid" not in status and host_is_running(data_dir):
        print(no_answer_message(data_dir))
    elif "pid" not in status:
        print(f"No process serves the memory in {data_dir}; the next client starts one.")
    else:
        print(f"Process {status['pid']} (madeleine {status['version']}) serves the memory in {status['data_dir']}.")
        if status.get("http"):
            print(f"  over HTTP at {status['http']}")
        for client in status["clients"]:
            print(f"  a client of being {client['being']!r} (madeleine {client['version']})")
    return 0


def stop_command(arguments: argparse.Namespace) -> int:
    """Raises `HostRefused`."""
    data_dir = _data_dir()
    stopped = stop_host(data_dir)
    print("Ended." if stopped else f"No process serves the memory in {data_dir}.")
    return 0


def _data_dir() -> Path:
    return data_directory(madeleine_variables(environment()).get("data_dir"))
