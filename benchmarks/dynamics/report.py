"""The results of the simulated years as tables on the terminal, as Markdown, and as a plot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.dynamics.measures import GAP_CLASSES
from benchmarks.dynamics.revival import CUES


def tables(figures: Mapping[str, Any]) -> list[tuple[str, list[str], list[list[str]]]]:
    """(title, columns, rows) of each table."""
    variants: Mapping[str, Any] = figures["variants"]
    names = list(variants)

    def row(label: str, *path: str) -> list[str]:
        cells = []
        for name in names:
            value: Any = variants[name]
            for key in path:
                value = value.get(key)
            cells.append("" if value is None else f"{value:.1f}" if isinstance(value, float) else f"{value:,}")
        return [label, *cells]

    in_year, last, changed = "asked in the year", "last day", "changed"
    main = [
        row("R@5 when asked in the year", in_year, "R@5"),
        row("  with the search where that fails", in_year, "R@5, then search"),
        *(row(f"  {name} days after", in_year, "by days since", name, "R@5") for name in GAP_CLASSES),
        row("R@5 on the last day, cued facts", last, "R@5, cued"),
        row("  touched within 60 days", last, "R@5, cued within 60 days"),
        row("  facts never cued", last, "R@5, never cued"),
        row("cued facts that come first", last, "first, cued"),
        row("noise among the first five, %", last, "noise among the first five"),
        row("changed facts: the newest comes first of all", changed, "newest first of all"),
        row("  before an older version, where both come", changed, "newest before older"),
        row("  both come", changed, "both found"),
        row("  only an older one comes", changed, "older alone"),
        row("died in the year", "did", "decided.made_dead"),
        row("absorbed in the year", "did", "decided.absorbed"),
        row("revived in the year", "did", "revive.revived"),
        row("active", "size", "active"),
        row("dying", "size", "dying"),
        row("dead", "size", "dead"),
        row("living points of the index", "size", "living points"),
        row("ledger, bytes", "size", "ledger bytes"),
    ]
    losses_ = [[name, f"{points:.2f}"] for name, points in figures["loss to decay, points"].items()]
    back = figures["coming back"]
    ways = [
        [way["channel"], str(way["cues"]), way["patrols"], str(way["memories"]), _percent(way["hit"]),
         _percent(way["came back, of those hit"]), _percent(way["came back"])]
        for way in back["ways"]
    ]  # fmt: skip
    formula = [["–" if value is None else str(value) for value in row.values()] for row in back["by importance"]]
    return [
        (
            f"{figures['days']} days, {figures['memories told']:,} memories stored, {figures['facts']} facts",
            ["", *names],
            main,
        ),
        ("R@5 lost to decay, points", ["", "points"], losses_),
        (
            f"Revival of {back['dead'] - back['absorbed']:,} forgotten memories",
            ["tool", "cues", "patrols", "memories", "hit, %", "revived, of hit, %", "revived, %"],
            ways,
        ),
        ("Session count after revival, by the number of strong cues", list(back["by importance"][0]), formula),
    ]


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


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
        parts.append("\n".join([*lines, *(f"| {' | '.join(cell.strip() for cell in cells)} |" for cells in rows)]))
    return "\n\n".join(parts) + "\n"


def plot(figures: Mapping[str, Any], path: Path) -> None:
    """Plot the status counts of each variant, R@5 by days since last touched, and the share of revived memories."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(12.5, 6.6), layout="constrained")
    colours = {"active": "#2a7f62", "dying": "#e0a030", "dead": "#8c8c8c"}
    of_status = (axes[0, 0], axes[0, 1], axes[0, 2], axes[1, 0])
    for axis, (name, of_variant) in zip(of_status, figures["variants"].items(), strict=True):
        curve = of_variant["curve"]
        for status, colour in colours.items():
            axis.plot([point["day"] for point in curve], [point[status] for point in curve], color=colour, label=status)
        axis.set(title=name, xlabel="day", ylabel="memories", ylim=(0, figures["memories told"]))
        axis.grid(alpha=0.25)
    axes[0, 0].legend(frameon=False)
    axis = axes[1, 1]
    width = 0.2
    for position, (name, of_variant) in enumerate(figures["variants"].items()):
        groups = of_variant["asked in the year"]["by days since"]
        places = np.arange(len(groups)) + (position - 1.5) * width
        axis.bar(places, [group["R@5"] or 0 for group in groups.values()], width, label=name)
    axis.set_xticks(range(len(GAP_CLASSES)), GAP_CLASSES)
    axis.set(title="R@5 when asked, by days since last touched", ylabel="%", ylim=(0, 100))
    axis.legend(frameon=False, fontsize=8, loc="lower left")
    axis = axes[1, 2]
    for channel, marker in (("search_memory", "o"), ("recall_memory", "s")):
        for patrols, style in (("after", "-"), ("between", "--")):
            ways = [
                way
                for way in figures["coming back"]["ways"]
                if way["channel"] == channel and (way["patrols"] == patrols or way["cues"] == 1)
            ]
            label = f"{channel}, patrol {patrols}"
            backs = [way["came back"] or 0 for way in ways]
            axis.plot([way["cues"] for way in ways], backs, style, marker=marker, label=label)
    axis.axhline(95, color="#b03030", linewidth=0.8)
    axis.set(title="forgotten memories that came back", xlabel="strong cues", ylabel="%", ylim=(0, 104))
    axis.set_xticks(CUES)
    axis.legend(frameon=False, fontsize=8, loc="lower left")
    figure.savefig(path, dpi=80)
    plt.close(figure)
