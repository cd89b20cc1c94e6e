"""Where programs keep the configuration of a user, by operating system. The one place that knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from madeleine.operating_system import OperatingSystem


@dataclass(frozen=True, slots=True)
class ClientConfigurationPaths:
    """`variables`: the environment, which moves some of them."""

    home: Path
    system: OperatingSystem
    variables: Mapping[str, str]

    def _folder_from_variable_or_default(self, variable: str, default: Path) -> Path:
        value = self.variables.get(variable)
        return Path(value) if value else default

    @property
    def folder_of_all_applications_settings(self) -> Path:
        """Where desktop programs keep their settings."""
        if self.system == "windows":
            return self._folder_from_variable_or_default("APPDATA", self.home / "AppData" / "Roaming")
        if self.system == "macos":
            return self.home / "Library" / "Application Support"
        return self._folder_from_variable_or_default("XDG_CONFIG_HOME", self.home / ".config")

    @property
    def claude_code_folder(self) -> Path:
        return self._folder_from_variable_or_default("CLAUDE_CONFIG_DIR", self.home / ".claude")

    @property
    def claude_code_servers_file(self) -> Path:
        """Beside its folder, or in the one that was named."""
        return self._folder_from_variable_or_default("CLAUDE_CONFIG_DIR", self.home) / ".claude.json"

    @property
    def claude_code_settings_file(self) -> Path:
        """With its hooks."""
        return self.claude_code_folder / "settings.json"

    @property
    def claude_desktop_servers_file(self) -> Path:
        return self.folder_of_all_applications_settings / "Claude" / "claude_desktop_config.json"

    @property
    def codex_folder(self) -> Path:
        return self._folder_from_variable_or_default("CODEX_HOME", self.home / ".codex")

    @property
    def codex_settings_file(self) -> Path:
        return self.codex_folder / "config.toml"

    @property
    def cursor_servers_file(self) -> Path:
        return self.home / ".cursor" / "mcp.json"

    @property
    def gemini_settings_file(self) -> Path:
        return self.home / ".gemini" / "settings.json"

    @property
    def vscode_servers_file(self) -> Path:
        return self.folder_of_all_applications_settings / "Code" / "User" / "mcp.json"

    @property
    def windsurf_servers_file(self) -> Path:
        return self.home / ".codeium" / "windsurf" / "mcp_config.json"

    @property
    def zed_settings_file(self) -> Path:
        if self.system == "windows":
            return self.folder_of_all_applications_settings / "Zed" / "settings.json"
        base = self.home / ".config" if self.system == "macos" else self.folder_of_all_applications_settings
        return base / "zed" / "settings.json"
