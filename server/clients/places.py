"""Where programs keep the configuration of a user, by operating system. The one place that knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from madeleine.operating_system import OperatingSystem


@dataclass(frozen=True, slots=True)
class UserPlaces:
    """`variables`: the environment, which moves some of them."""

    home: Path
    system: OperatingSystem
    variables: Mapping[str, str]

    def _folder(self, variable: str, default: Path) -> Path:
        value = self.variables.get(variable)
        return Path(value) if value else default

    @property
    def application_settings(self) -> Path:
        """Where desktop programs keep their settings."""
        if self.system == "windows":
            return self._folder("APPDATA", self.home / "AppData" / "Roaming")
        if self.system == "macos":
            return self.home / "Library" / "Application Support"
        return self._folder("XDG_CONFIG_HOME", self.home / ".config")

    @property
    def claude_code(self) -> Path:
        return self._folder("CLAUDE_CONFIG_DIR", self.home / ".claude")

    @property
    def claude_code_servers(self) -> Path:
        """Beside its folder, or in the one that was named."""
        return self._folder("CLAUDE_CONFIG_DIR", self.home) / ".claude.json"

    @property
    def codex(self) -> Path:
        return self._folder("CODEX_HOME", self.home / ".codex")

    @property
    def zed(self) -> Path:
        if self.system == "windows":
            return self.application_settings / "Zed"
        base = self.home / ".config" if self.system == "macos" else self.application_settings
        return base / "zed"
