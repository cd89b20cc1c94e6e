"""The pictures of the documentation, drawn by the rules themselves: `python -m website.pictures`, or `make pictures`.

A test compares what stands in `docs/pictures` with what this draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.sax.saxutils import escape

from madeleine.memory.model import TruthStatus
from madeleine.memory.rules.dynamics.importance import (
    MAX_DYING_IMPORTANCE,
    effective_importance,
    patrols_until_status_is_dying,
    session_count_if_revived,
)
from madeleine.memory.rules.dynamics.truth import was_true_at

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
WIDTH, HEIGHT = 720, 260
LEFT, RIGHT, TOP, BOTTOM = 46, 16, 30, 34
INK, SOFT, LINE, ACCENT, GOOD, BAD, PAPER = (
    *("#26211b", "#6a5f52", "#e5ddd0", "#8f4a12"),
    *("#1f6b3a", "#a3231b", "#fbf8f3"),
)
Point = tuple[float, float]


def graph_extraction(title: str, parts: Iterable[str], height: int = HEIGHT) -> str:
    """An SVG that is readable on light and dark pages alike: it has a ground of its own."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
            ' font-family="system-ui, sans-serif" font-size="13">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="{PAPER}"/>',
            *parts,
            "</svg>\n",
        ]
    )


def text(x: float, y: float, said: str, *, anchor: str = "start", fill: str = SOFT, weight: int = 400) -> str:
    look = f'text-anchor="{anchor}" fill="{fill}" font-weight="{weight}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{escape(said)}</text>'


def line(start: Point, end: Point, *, stroke: str = LINE, dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    (x1, y1), (x2, y2) = start, end
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}"{dashed}/>'


def curve(points: Sequence[Point], *, stroke: str = ACCENT, dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{stroke}" stroke-width="2.5"{dashed}/>'


def dot(x: float, y: float, fill: str = GOOD) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{fill}"/>'


def fading() -> str:
    """Two memories of one importance: recalled twice, and never; and one that comes back."""
    importance, patrols, recalled_at = 0.6, 160, (25, 55)

    def across(patrol: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * patrol / patrols

    def up(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / importance)

    def life(recalls: Sequence[int], until: int) -> list[Point]:
        since, points = 0, []
        for patrol in range(until + 1):
            if patrol in recalls:
                points.append((across(patrol), up(effective_importance(importance, patrol - since))))
                since = patrol
            points.append((across(patrol), up(effective_importance(importance, patrol - since))))
        return points

    dying = patrols_until_status_is_dying(importance, 0)
    back_at = dying + 45
    # The clock of a dead memory stands still; to open it counts twice (spec P10).
    revived = session_count_if_revived(importance=importance, session_count=dying, reactivation_count=2)
    assert revived is not None
    after_revival = [
        (across(patrol), up(effective_importance(importance, revived + patrol - back_at)))
        for patrol in range(back_at, patrols + 1)
    ]
    floor = up(MAX_DYING_IMPORTANCE)
    return graph_extraction(
        "Importance by patrol: a memory that is recalled stays; one that is not fades, and comes back if opened",
        [
            *(line((LEFT, up(value)), (WIDTH - RIGHT, up(value))) for value in (0, 0.2, 0.4, 0.6)),
            *(text(LEFT - 8, up(value) + 4, f"{value:.1f}", anchor="end") for value in (0.0, 0.2, 0.4, 0.6)),
            *(text(across(patrol), HEIGHT - 12, str(patrol), anchor="middle") for patrol in range(0, patrols + 1, 20)),
            text(WIDTH - RIGHT, 20, "patrols without a recall count; a recall starts anew", anchor="end"),
            line((LEFT, floor), (WIDTH - RIGHT, floor), stroke=BAD, dash="2 4"),
            text(LEFT + 6, floor - 5, "dying at 0.05", fill=BAD),
            curve(life((), dying), stroke=SOFT),
            curve(life(recalled_at, patrols)),
            *(dot(across(patrol), up(importance)) for patrol in recalled_at),
            text(across(recalled_at[1]) + 9, up(importance) + 14, "recalled", fill=GOOD, weight=600),
            curve([(across(dying), floor), (across(back_at), floor)], stroke=SOFT, dash="3 5"),
            text(across(dying) + 6, floor + 17, "dead: found and opened, not recalled"),
            line((across(back_at), floor), after_revival[0], stroke=GOOD),
            curve(after_revival, stroke=GOOD),
            dot(*after_revival[0]),
            text(after_revival[0][0] + 9, after_revival[0][1] - 6, "opened: it comes back", fill=GOOD, weight=600),
        ],
    )


@dataclass(frozen=True)
class Version:
    """A version of a fact, told on the day on which it became true."""

    text: str
    valid_from: datetime
    valid_until: datetime | None

    @property
    def truth(self) -> TruthStatus:
        return "superseded" if self.valid_until else "current"

    @property
    def happened_at(self) -> datetime:
        return self.valid_from

    created_at = happened_at


def truth() -> str:
    """Three versions of one fact, and what a question as of some dates brings."""
    day = datetime(2024, 1, 1, tzinfo=UTC)

    moves = [day, day + timedelta(days=330), day + timedelta(days=700), None]
    versions = [
        Version(f"Ada lives in {town}.", begin, end)
        for town, begin, end in zip(("Lyon", "Rome", "Bergen"), moves, moves[1:], strict=False)
        if begin
    ]
    last, height, row = 900, 230, 40

    def across(days: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * days / last

    def bar(place: int, version: Version) -> list[str]:
        begin = (version.valid_from - day).days
        end = (version.valid_until - day).days if version.valid_until else last
        fill = SOFT if version.valid_until else GOOD
        y, left, width = TOP + 12 + row * place, across(begin), across(end) - across(begin)
        return [
            f'<rect x="{left:.1f}" y="{y}" width="{width:.1f}" height="24" rx="12" fill="{fill}"/>',
            text(left + 12, y + 17, version.text, fill=PAPER, weight=600),
        ]

    def asked(days: int) -> list[str]:
        moment = day + timedelta(days=days)
        [answer] = [version.text for version in versions if was_true_at(version, moment)]
        x = across(days)
        return [
            line((x, TOP), (x, height - 52), stroke=ACCENT, dash="4 4"),
            text(x, height - 34, f"as_of {moment:%Y-%m}", anchor="middle", fill=ACCENT, weight=600),
            text(x, height - 15, answer, anchor="middle", fill=INK),
        ]

    return graph_extraction(
        "A fact that changed twice: each version is true until its successor; a question as of a date brings that one",
        [part for place, version in enumerate(versions) for part in bar(place, version)]
        + [part for days in (150, 500, 800) for part in asked(days)],
        height,
    )


PICTURES: dict[str, Callable[[], str]] = {"fading.svg": fading, "truth.svg": truth}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")
        print(FOLDER / name)


if __name__ == "__main__":
    main()
