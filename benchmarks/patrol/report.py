"""The figures as tables on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.patrol.made_up_store import NEW


def tables(figures: Mapping[str, Any]) -> list[tuple[str, list[str], list[list[str]]]]:
    """(title, columns, rows) of each table."""
    parts = []
    if sizes := figures.get("growth"):
        small, large = sizes.values()
        rows = [
            *(_compared(part, small["ms"][part], large["ms"].get(part, 0.0)) for part in small["ms"]),
            _compared("all", small["total ms"], large["total ms"]),
            _compared("journal rows", sum(small["journal rows"].values()), sum(large["journal rows"].values())),
            *(_compared(f"read: {name}", ms, large["reads ms"][name]) for name, ms in small["reads ms"].items()),
        ]
        names = [f"{int(size):,}" for size in sizes]
        parts.append((f"A patrol that takes in {NEW} memories, ms", ["", *names, "ratio"], rows))
    if of_idle := figures.get("idle"):
        rows = [
            [p, *(f"{of_idle[n]['ms'].get(p, 0.0):.1f}" for n in ("none fades", "some fade"))]
            for p in of_idle["none fades"]["ms"]
        ]
        rows.append(["all", *(f"{of_idle[n]['total ms']:.1f}" for n in ("none fades", "some fade"))])
        dying = of_idle["some fade"]["counts"]["flag"]["dying"]
        parts.append(
            (f"A patrol of {of_idle['memories']:,} idle memories, ms", ["", "none fades", f"{dying:,} fade"], rows)
        )
        parts.append(
            ("Reads, ms", ["", "ms"], [[name, f"{ms:.1f}"] for name, ms in of_idle["reads ms"].items()])
        )  # fmt: skip
    if of_recall := figures.get("recall"):
        rows = [
            [percentile, *(f"{of_recall[f'{percentile} ms {when}']:.1f}" for when in ("at rest", "during")),
             f"{of_recall[f'{percentile} ms during'] / of_recall[f'{percentile} ms at rest']:.2f}"]
            for percentile in ("p50", "p95")
        ]  # fmt: skip
        title = f"Recall over {of_recall['memories']:,} memories, ms ({of_recall['recalls during']} during patrols)"
        parts.append((title, ["", "at rest", "during a patrol", "ratio"], rows))
    return parts


def _compared(name: str, small: float, large: float) -> list[str]:
    ratio = f"{large / small:.2f}" if small else ""
    return [name, f"{small:,.1f}", f"{large:,.1f}", ratio]


def show(console: Console, figures: Mapping[str, Any]) -> None:
    for title, columns, rows in tables(figures):
        table = Table(*columns, title=title)
        for cells in rows:
            table.add_row(*cells)
        console.print(table)
