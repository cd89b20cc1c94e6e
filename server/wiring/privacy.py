"""The data directory is for its owner alone: files 0600, directories 0700."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

logger = logging.getLogger(__name__)

OWN_FILES = ("memory.db*", "owner.*", "host.*", "madeleine.*")
OWN_DIRECTORIES = ("index", "models")
OTHERS = stat.S_IRWXG | stat.S_IRWXO


def keep_private() -> None:
    """Whatever this process and its children make from now on, and whoever makes it: engines, libraries, SQLite."""
    os.umask(OTHERS)


def tighten(data_dir: Path) -> None:
    """Take from others what an earlier version, a copy or a lax umask has given them, and say so. Blocking.

    Only what is Madeleine's by its name. The directory itself only if nothing else lies in it: somebody may have put
    the memory where others must be able to read.
    """
    if os.name == "nt":  # permissions are inherited there, and these bits mean nothing
        return
    own = set(_own(data_dir))
    changed = [path for path in own if _close(path)]
    strangers = sorted(path.name for path in data_dir.iterdir() if path not in own)
    if not strangers:
        changed += [data_dir] if _close(data_dir) else []
    elif _mode(data_dir) & OTHERS:
        logger.warning("others may list %s; it is left as it is, for it holds more: %s", data_dir, strangers[0])
    if changed:
        logger.warning("others could read the memory in %s: %d files and directories closed", data_dir, len(changed))


def _own(data_dir: Path) -> Iterator[Path]:
    for pattern in (*OWN_FILES, *OWN_DIRECTORIES):
        yield from data_dir.glob(pattern)
    for directory in (data_dir / name for name in OWN_DIRECTORIES):
        if not directory.is_symlink():
            yield from directory.rglob("*")


def _mode(path: Path) -> int:
    return path.lstat().st_mode


def _close(path: Path) -> bool:
    """Whether there was something to take. What a link leads to is not ours."""
    try:
        mode = _mode(path)
        if stat.S_ISLNK(mode) or not mode & OTHERS:
            return False
        path.chmod(stat.S_IMODE(mode) & ~OTHERS)
        return True
    except FileNotFoundError:  # a leftover that was just removed
        return False
    except OSError as error:
        logger.warning("%s is open to others and cannot be closed: %s", path, error)
        return False
