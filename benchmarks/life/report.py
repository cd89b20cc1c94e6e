"""The lives as tables on the terminal and in Markdown, and as a plot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROWS = (
    "questions", "R@10", "nDCG@10", "R@10, what still holds", "noise among the first five %", "memories", "active",
    "dying", "dead", "absorbed", "compressed", "recalled from", "summaries", "preferences",
    "preferences of the assistant", "ledger bytes",
)  # fmt: skip
CLUSTER_ROWS = ("count", "in no cluster %", "largest %", "adjusted Rand")
COLOURS = ("#8c8c8c", "#e0a030", "#2a7f62")
Rows = list[list[str]]


def tables(figures: Mapping[str, Any]) -> Iterator[tuple[str, list[str], Rows]]:
    """(title, columns, rows) of each table."""
    for name, life in figures["lives"].items():
        days = [str(point["day"]) for point in next(iter(life["ways"].values()))["days"]]
        rows: Rows = []
        for way, of_way in life["ways"].items():
            rows += [[way, row, *(_cell(point.get(row)) for point in of_way["days"])] for row in ROWS]
            rows += [
                [way, f"clusters, {row}", *(_cell(point["clusters"][row]) for point in of_way["days"])]
                for row in CLUSTER_ROWS
            ]
        title = f"{name}: {life['turns']:,} turns of {life['sessions']} sessions by `{life['entry']}`"
        yield title, ["way", "on day", *days], rows
    nights = {
        (name, way): of_way["nights"]
        for name, life in figures["lives"].items()
        for way, of_way in life["ways"].items()
        if of_way["nights"]
    }
    labels = [label for label in next(iter(nights.values()), {}) if label != "refused"]
    yield (
        "What was let go of",
        ["life", "let go of", "found by one search %", "of these back after a patrol %"],
        [
            [name, *map(_cell, back.values())]
            for name, life in figures["lives"].items()
            for of_way in life["ways"].values()
            if (back := of_way["coming back"])
        ],
    )
    yield (
        "Nights",
        ["life", "way", *labels],
        [[name, way, *(_cell(of_way[label]) for label in labels)] for (name, way), of_way in nights.items()],
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def show(console: Console, figures: Mapping[str, Any]) -> None:
    for title, columns, rows in tables(figures):
        table = Table(*columns, title=title)
        for cells in rows:
            table.add_row(*cells)
        console.print(table)


def markdown(figures: Mapping[str, Any]) -> str:
    parts = []
    for title, columns, rows in tables(figures):
        lines = [f"**{title}**", "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        parts.append("\n".join([*lines, *(f"| {' | '.join(cells)} |" for cells in rows)]))
    return "\n\n".join(parts) + "\n"


def plot(figures: Mapping[str, Any], path: Path) -> None:
    """A row for each life: retrieval, memories recalled from, and the largest cluster, by day."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    lives = figures["lives"]
    grid, axes = plt.subplots(len(lives), 3, figsize=(12, 2.8 * len(lives)), layout="constrained", squeeze=False)
    for row, (name, life) in zip(axes, lives.items(), strict=True):
        for (way, of_way), colour in zip(life["ways"].items(), COLOURS, strict=False):
            days = [point["day"] for point in of_way["days"]]
            shares = [point["clusters"]["largest %"] for point in of_way["days"]]
            for axis, values in (
                (row[0], [point.get("R@10") for point in of_way["days"]]),
                (row[1], [point["recalled from"] for point in of_way["days"]]),
                (row[2], shares),
            ):
                axis.plot(days, values, marker="o", markersize=3, color=colour, label=way)
        for axis, title in zip(row, ("R@10, %", "memories recalled from", "largest cluster, %"), strict=True):
            axis.set(title=f"{name}: {title}", ylim=(0, None), xlabel="day")
            axis.grid(alpha=0.25)
    axes[0, 0].legend(frameon=False, fontsize=8, loc="lower left")
    grid.savefig(path, dpi=80)
    plt.close(grid)
