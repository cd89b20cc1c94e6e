"""The files of one encoder, made by the build and checked by their hashes before they are used."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


class DamagedModelFile(ValueError):
    """A file whose hash is not the expected one; tells which."""


def check_file_sha256(folder: Path, name: str, expected: str) -> None:
    """Reads the file in pieces. Raises `DamagedModelFile`, or `OSError` if it cannot be read."""
    with (folder / name).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != expected:
        raise DamagedModelFile(f"{name} is damaged (SHA-256 {digest[:12]}…)")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """`folder`: made by the build, and not in the repository. `sha256`: of each file, by its name."""

    folder: Path
    sha256: Mapping[str, str]

    def checked_path(self, name: str) -> Path:
        """Where the file is. Raises `DamagedModelFile`, or `OSError` if it cannot be read."""
        check_file_sha256(self.folder, name, self.sha256[name])
        return self.folder / name

    def checked_paths(self) -> dict[str, Path]:
        """Of all files, by their names. Raises as `checked_path`."""
        return {name: self.checked_path(name) for name in self.sha256}

    def are_intact(self) -> bool:
        """Whether the files are there and undamaged."""
        try:
            self.checked_paths()
        except (OSError, DamagedModelFile):
            return False
        return True

    def write(self, contents: Mapping[str, bytes]) -> None:
        """All of them. Raises `DamagedModelFile` if one is not the expected one, `OSError` if it cannot be written."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        # In a folder of its own until it is whole: others may be reading, or making the same.
        with tempfile.TemporaryDirectory(dir=self.folder.parent, prefix=f".{self.folder.name}-") as folder:
            for name, content in contents.items():
                (Path(folder) / name).write_bytes(content)
                check_file_sha256(Path(folder), name, self.sha256[name])
            self.folder.mkdir(exist_ok=True)
            for name in contents:
                (Path(folder) / name).replace(self.folder / name)
