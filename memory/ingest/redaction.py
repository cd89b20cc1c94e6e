"""Takes secrets out of texts that are about to be stored, before they are embedded, hashed or written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import DatedAction, Scene, WhenItem
from madeleine.memory.rules.storing.secrets import Redact


def refuse_secret(name: str, value: str, redact: Redact) -> None:
    """Raises `InvalidInput` if the value of this argument is a secret."""
    if kinds := redact(value).found:
        raise InvalidInput(f"{name}: looks like a secret ({', '.join(kinds)}). Nothing was stored: use another {name}.")


class Redaction:
    """Redacts the texts of one use case; `found` counts the secrets that were taken out, by kind."""

    def __init__(self, redact: Redact) -> None:
        self.found: Counter[str] = Counter()
        self._redact = redact

    def text(self, text: str) -> str:
        redacted = self._redact(text)
        self.found.update(redacted.found)
        return redacted.text

    def texts(self, texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(self.text, texts))

    def scene(self, scene: Scene) -> Scene:
        return replace(
            scene,
            action=self.text(scene.action),
            actors=self.texts(scene.actors),
            when=tuple(self._when(item) for item in scene.when),
            setting=self.text(scene.setting),
            dialogue=self.texts(scene.dialogue),
            sensory=self.texts(scene.sensory),
        )

    def _when(self, item: WhenItem) -> WhenItem:
        return self.text(item) if isinstance(item, str) else DatedAction(self.text(item.date), self.text(item.action))

    def json(self, value: Any) -> Any:
        """JSON with every text redacted, names too. A text may be a secret by its name alone."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.json(part) for part in value]
        if isinstance(value, dict):
            return {self.text(name): self._named(name, part) for name, part in value.items()}
        return value

    def _named(self, name: str, value: Any) -> Any:
        if not isinstance(value, str):
            return self.json(value)
        before = f"{name}="
        alone, named = self._redact(value), self._redact(before + value)
        if sum(named.found.values()) <= sum(alone.found.values()) or not named.text.startswith(before):
            return self.text(value)
        self.found.update(named.found)
        return named.text.removeprefix(before)


def redact_note(content: str, redact: Redact) -> tuple[str, Mapping[str, int]]:
    """A note's content, unchanged if it holds no secret; JSON stays JSON."""
    redaction = Redaction(redact)
    try:
        redacted = redaction.json(json.loads(content))
    except (ValueError, RecursionError):
        return redaction.text(content), redaction.found
    written = json.dumps(redacted, ensure_ascii=False) if redaction.found else content
    # Once more as it is written: of two equal names JSON keeps the last, the text both.
    return redaction.text(written), redaction.found
