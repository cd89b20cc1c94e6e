"""What is about to be stored, without the secrets in it: before anything is embedded, hashed or written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from madeleine.memory.model import DatedAction, Scene, WhenItem
from madeleine.memory.rules.storing.secrets import Redact


class Redaction:
    """Cleans the parts of one thing; `found` counts what was taken out of them, by kind."""

    def __init__(self, redact: Redact) -> None:
        self.found: Counter[str] = Counter()
        self._redact = redact

    def text(self, text: str) -> str:
        cleaned = self._redact(text)
        self.found.update(cleaned.found)
        return cleaned.text

    def texts(self, texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.text(one) for one in texts)

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
        """JSON with every text in it cleaned, names too. A text under the name of a secret is told by its name."""
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
    """A note's content, as it was written unless something was found; JSON stays JSON."""
    cleaning = Redaction(redact)
    try:
        cleaned = cleaning.json(json.loads(content))
    except (ValueError, RecursionError):
        return cleaning.text(content), cleaning.found
    written = json.dumps(cleaned, ensure_ascii=False) if cleaning.found else content
    # Once more as it is written: of two equal names JSON keeps the last, the text both.
    return cleaning.text(written), cleaning.found
