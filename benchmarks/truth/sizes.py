"""What is proposed to be superseded in stores of a person's own: `python -m benchmarks.truth --sizes 20,40,80,300`.

Every store is one being in one language. About a quarter of its memories are changes: of the hand-written chains, of
the changed pairs of `benchmarks/duplicates`, told again in the same words, or of the stores of `benchmarks/small`, as
they are. The others are look-alikes, the first versions of other chains of the same role and the first sentences of
other pairs; in English stores of more than those, made-up sentences. Everything goes through the use case behind
`store`, in the order of its days, without any act.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from rich.table import Table

from benchmarks.truth import material
from benchmarks.truth.material import DAYS, Told
from benchmarks.truth.run import TruthStore
from madeleine.server.wiring.open_memory import OpenedMemoryStore

BENCHMARKS = Path(__file__).parents[1]
PAIR_KINDS = ("number", "name", "date", "negation", "opposite", "value", "preference_turned")
"""Of `benchmarks/duplicates`, those whose second sentence makes the first one untrue."""
CHAINS_OF = {20: 2, 40: 4, 80: 8}
"""Chains, and changed pairs, in a store of a size; of a greater size all that there are."""
_LANGUAGES = {"English": "en", "French": "fr", "German": "de"}
Row = tuple[int, str, str]
"""(size, language, kind of change); 0 for the stores of `benchmarks/small`, whose size varies."""


@dataclass(frozen=True, slots=True)
class Fact:
    """`versions`: texts with their days, oldest first; of an ordinary memory one."""

    kind: str
    versions: tuple[Told, ...]


@dataclass(frozen=True, slots=True)
class SizedStore:
    name: str
    row_size: int
    language: str
    facts: tuple[Fact, ...]

    @property
    def told(self) -> list[Told]:
        return [version for fact in self.facts for version in fact.versions]


def sized_stores(size: int, *, seed: int = 13) -> Iterator[SizedStore]:
    """Each chain and each pair is in one store of the size."""
    rng = random.Random(seed)
    pairs, chains = _pairs(rng), _chains()
    languages: dict[str, list[tuple[str, list[Fact]]]] = {language: [] for language in pairs}
    for (role, language), of_role in chains.items():
        languages[language].append((role, of_role))
    for language, roles in languages.items():
        for role, facts in [*roles, ("pairs", pairs[language])]:
            pool = [*pairs[language], *_lookalikes(role, language)] if role != "pairs" else pairs[language]
            yield from _divided((role, language), size, facts, pool, rng)


def _divided(
    group: tuple[str, str], size: int, facts: Sequence[Fact], others: Sequence[Fact], rng: random.Random
) -> Iterator[SizedStore]:
    """`group`: role and language."""
    role, language = group
    facts = rng.sample(facts, len(facts))
    changing = CHAINS_OF.get(size, len(facts))
    for start in range(0, len(facts), changing):
        chosen = facts[start : start + changing]
        rest = [
            Fact("ordinary", fact.versions[:1])
            for fact in dict.fromkeys((*facts, *others))
            if fact not in chosen and fact.kind != "look-alike"
        ]
        alike = [fact for fact in others if fact.kind == "look-alike"]
        room = size - sum(len(fact.versions) for fact in chosen)
        ordinary = rng.sample(alike, min(len(alike), max(0, room // 6)))
        room -= 2 * len(ordinary)
        ordinary += rng.sample(rest, min(len(rest), max(0, room)))
        room = size - sum(len(fact.versions) for fact in (*chosen, *ordinary))
        if language == "en" and room > 0:
            ordinary += [Fact("ordinary", (told,)) for told in material.fillers(room)]
        yield SizedStore(f"{role}-{language}-{size}-{start}", size, language, (*chosen, *ordinary))


def _chains() -> dict[tuple[str, str], list[Fact]]:
    found: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for role in material.ROLES:
        for chain in material.chains(role):
            # The other languages have too few for three roles.
            group = role if chain.language == "en" else "all"
            found[group, chain.language].append(Fact("own words", chain.versions))
    return found


def _lookalikes(role: str, language: str) -> list[Fact]:
    if language != "en":
        return []
    return [Fact("look-alike", pair.facts) for pair in material.lookalikes(role)]


def _pairs(rng: random.Random) -> dict[str, list[Fact]]:
    found: dict[str, list[Fact]] = {}
    for path in sorted((BENCHMARKS / "duplicates" / "sentences").glob("*.jsonl")):
        rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        found[path.stem] = [
            Fact(row["kind"], (Told(row["first"], day := rng.randrange(DAYS // 2)), Told(row["second"], day + 60)))
            for row in rows
            if row["kind"] in PAIR_KINDS
        ]
    return found


def hand_written_stores() -> Iterator[SizedStore]:
    """Those of `benchmarks/small`."""
    for path in sorted((BENCHMARKS / "small").glob("*.json")):
        store = json.loads(path.read_text(encoding="utf-8"))
        before = {key: was for asked in store["questions"] for was in asked.get("was", ()) for key in asked["answer"]}
        before |= {memory["key"]: memory["supersedes"] for memory in store["memories"] if "supersedes" in memory}
        versions: dict[str, list[Told]] = {}
        for memory in store["memories"]:
            day = (date.fromisoformat(memory["when"][:10]) - date(2026, 1, 1)).days
            chain = versions.pop(before.get(memory["key"], ""), [])
            versions[memory["key"]] = [*chain, Told(memory["text"], day)]
        facts = tuple(Fact("as agents write" if len(told) > 1 else "ordinary", (*told,)) for told in versions.values())
        yield SizedStore(store["name"], 0, _LANGUAGES[store["language"]], facts)


async def measure_store(memory: OpenedMemoryStore, store: SizedStore) -> dict[Row, Counter[str]]:
    """Counts of changes, proposals and ordinary memories, by size, language and kind of change."""
    being = TruthStore(memory, store.name)
    await being.tell(store.told, {})
    counts: dict[Row, Counter[str]] = defaultdict(Counter)
    for fact in store.facts:
        ids = [being.id_of(version) for version in fact.versions]
        row = counts[store.row_size, store.language, fact.kind]
        for at, version in enumerate(fact.versions):
            proposed = being.stored[version.text].may_supersede
            is_change = at > 0 and fact.kind != "look-alike"
            right = proposed is not None and is_change and proposed.id in ids[:at]
            row["changes" if is_change else "ordinary"] += 1
            row["proposals right"] += right
            row["proposals wrong"] += proposed is not None and not right
            row["ordinary with a proposal"] += proposed is not None and not is_change
    return counts


async def measure_sizes(memory: OpenedMemoryStore, sizes: Sequence[int]) -> dict[Row, Counter[str]]:
    stores = itertools.chain(hand_written_stores(), *(sized_stores(size) for size in sizes))
    totals: dict[Row, Counter[str]] = defaultdict(Counter)
    for store in stores:
        for row, counts in (await measure_store(memory, store)).items():
            totals[row] += counts
    return totals


def table_of_sizes(totals: Mapping[Row, Counter[str]]) -> Table:
    """By size and kind of change, the languages together; then by size and language, the kinds together."""
    table = Table("store of", "", "changes", "proposed, %", "proposals right, %", "ordinary", "of these proposed, %")
    grouped: dict[tuple[int, str], Counter[str]] = defaultdict(Counter)
    for (size, language, kind), counts in totals.items():
        told = "same words" if kind in PAIR_KINDS else kind
        grouped[size, f"language {language}"] += counts
        grouped[size, told] += counts
        grouped[size, "all"] += counts
    for (size, name), counts in sorted(grouped.items()):
        proposals = counts["proposals right"] + counts["proposals wrong"]
        table.add_row(
            str(size) if size else "by hand",
            name,
            str(counts["changes"]),
            _percent(counts["proposals right"], counts["changes"]),
            _percent(counts["proposals right"], proposals),
            str(counts["ordinary"]),
            _percent(counts["ordinary with a proposal"], counts["ordinary"]),
        )
    return table


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else ""
