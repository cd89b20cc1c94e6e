"""Does the emotion bonus help where feelings are asked for, and cost nothing elsewhere (spec T7)?

    python -m benchmarks.emotions [--record]

One being lives through 120 subjects, six times each: the same people and the same doing, something else happening each
time, felt with one to three labels of the taxonomy. Then it is asked

- *emotional* ones, about a subject while one feeling is there: half of them ask how it was, half only speak of it.
  Evidence are the times that were felt so; the wording does not tell which they were.
- *neutral* ones, about something that happened with somebody, in other words than it was told in: half of them ask
  where it was, half only speak of it. Evidence are the times when it happened, whatever was felt. They are asked
  without a feeling, and, to see the worst of it, while one is there that none of the evidence has.

All go through the pipeline of recall, with the feeling and without, in the profiles that know the bonus.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import metrics
from madeleine.memory.ingest.store import NewScene
from madeleine.memory.model import BeingId, Emotion, Scene
from madeleine.memory.recall.ranking import RecallQuery
from madeleine.memory.scope import Scope
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import OpenMemory, open_memory

RESULTS = Path(__file__).parent / "results"
BEING = Scope(BeingId("felt"), "benchmark")
SEED = 7

PEOPLE = ("Ann", "Bo", "Carla", "Deniz", "Emil", "Farah", "Goran", "Hana", "Ivo", "Jun", "Kaya", "Luis")
DOINGS = (
    "the choir rehearsal", "the ride to the lake", "the driving lesson", "the call with the landlord",
    "the evening at the climbing hall", "the pottery class", "the visit to the clinic", "the chess tournament",
    "the night shift", "the flight home", "the job interview", "the dinner with the neighbours",
    "the garden work", "the swimming course", "the parents' evening", "the band practice", "the trial lesson",
    "the walk with the dog", "the house viewing", "the presentation",
)  # fmt: skip
FELT: dict[Emotion, tuple[str, ...]] = {
    "joy": ("everything went as we had hoped", "we laughed the whole way back"),
    "fear": ("my hands would not stop shaking", "I kept looking for the way out"),
    "anger": ("I slammed the door afterwards", "I would not let that pass"),
    "sadness": ("I cried in the car", "I could not speak for a while"),
    "pride": ("I told everybody about it", "I kept the certificate on the wall"),
    "embarrassment": ("I wanted to sink into the floor", "everybody had seen it"),
    "relief": ("a stone fell from my heart", "I slept through for the first time"),
    "disappointment": ("it was not at all what was promised", "I had counted on more"),
    "gratitude": ("I wrote a long letter of thanks", "without that help it would not have worked"),
    "surprise": ("nobody had told me beforehand", "I had not seen that coming"),
}
EVENTS = {
    "a fuse blew": "the electricity failed",
    "somebody had brought plum cake": "there was something baked with fruit",
    "the key broke off": "the lock could not be opened any more",
    "it hailed": "ice fell from the sky",
    "a stranger played the accordion": "an unknown musician performed",
    "the bus did not come": "public transport let us down",
    "a window stood open": "cold air came in",
    "the lights were green all the way": "we never had to stop in traffic",
    "we found a blue scarf": "a piece of clothing turned up that nobody had lost",
    "the coffee ran out": "there was nothing hot left to drink",
    "a cat had come in": "an animal was in the room",
    "the lift was out of order": "we had to climb the stairs",
    "the projector failed": "the pictures could not be shown",
    "there was fresh snow": "everything was white outside",
    "a glass fell": "something was broken on the floor",
    "the parking meter was broken": "we could not pay for the car",
    "an old teacher walked by": "somebody from school turned up",
    "the music was too loud": "one could hardly hear a word",
}
"""What happened, and how it is asked for: in other words."""
EMOTIONAL = ("How was {what} with {who}?", "{what} with {who}, once more")
NEUTRAL = ("Where was it with {who} that {event}?", "I am with {who}, and {event}")
SUBJECTS = 120
TIMES = 6
MOST_QUESTIONS = 300


@dataclass(frozen=True, slots=True)
class Asked:
    query: RecallQuery
    gold: frozenset[int]
    """Positions of the scenes that are the evidence."""


@dataclass(frozen=True, slots=True)
class Lived:
    who: str
    what: str
    event: str
    felt: tuple[Emotion, ...]
    day: str

    def scene(self, chance: random.Random) -> NewScene:
        how = chance.choice(FELT[self.felt[0]])
        action = f"At {self.what} with {self.who} {self.event}; {how}."
        return NewScene(
            scene=Scene(action=action, actors=("Mara", self.who), when=(self.day,)),
            emotions=self.felt,
            tool="benchmark",
        )


def lives(chance: random.Random) -> list[Lived]:
    feelings = list(FELT)
    subjects = chance.sample([(who, what) for who in PEOPLE for what in DOINGS], SUBJECTS)
    return [
        Lived(who, what, event, tuple(chance.sample(feelings, chance.choice((1, 1, 2, 3)))), _day(chance))
        for who, what in subjects
        for event in chance.sample(list(EVENTS), TIMES)
    ]


def _day(chance: random.Random) -> str:
    return f"2025-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"


def emotional(lived: Sequence[Lived], chance: random.Random) -> list[Asked]:
    asked = {
        (one.who, one.what, felt): RecallQuery(
            text=chance.choice(EMOTIONAL).format(who=one.who, what=one.what), emotions=(felt,)
        )
        for one in lived
        for felt in one.felt
    }
    found = [
        Asked(
            query,
            frozenset(at for at, one in enumerate(lived) if (one.who, one.what) == (who, what) and felt in one.felt),
        )
        for (who, what, felt), query in asked.items()
    ]
    return chance.sample(found, min(MOST_QUESTIONS, len(found)))


def neutral(lived: Sequence[Lived], chance: random.Random) -> list[Asked]:
    found = []
    for who, event in dict.fromkeys((one.who, one.event) for one in lived):
        gold = frozenset(at for at, one in enumerate(lived) if (one.who, one.event) == (who, event))
        about = {felt for at in gold for felt in lived[at].felt}
        mood = chance.choice([felt for felt in FELT if felt not in about])
        found.append(
            Asked(RecallQuery(text=chance.choice(NEUTRAL).format(who=who, event=EVENTS[event]), emotions=(mood,)), gold)
        )
    return chance.sample(found, min(MOST_QUESTIONS, len(found)))


async def measure(memory: OpenMemory, asked: Sequence[Asked], ids: Sequence[str], *, with_feeling: bool) -> list[float]:
    """nDCG@10 of each."""
    found = []
    for one in asked:
        query = one.query if with_feeling else RecallQuery(text=one.query.text)
        gold = {ids[at] for at in one.gold}
        ranked = await memory.use.recall.rank(BEING, query)
        ranks = [rank for rank, id_ in enumerate(ranked.ids, 1) if id_ in gold]
        found.append(metrics.ndcg(ranks, len(gold), at=10))
    return found


async def run(profile: str) -> dict[str, Any]:
    chance = random.Random(SEED)
    lived = lives(chance)
    questions = {"emotional": emotional(lived, chance), "neutral": neutral(lived, chance)}
    with tempfile.TemporaryDirectory(prefix="madeleine-") as directory:
        settings = Settings.model_validate({"data_dir": Path(directory), "ranking": profile})
        async with open_memory(settings) as memory:
            stored = [await memory.use.store(BEING, [one.scene(chance)]) for one in lived]
            ids = [one.memory.id for [one] in stored]
            await memory.keeper.catch_up()
            figures: dict[str, Any] = {"scenes": len(lived), "kept apart": len(set(ids))}
            for name, asked in questions.items():
                without = await measure(memory, asked, ids, with_feeling=False)
                felt = await measure(memory, asked, ids, with_feeling=True)
                gained = [one - other for one, other in zip(felt, without, strict=True)]
                figures[name] = {
                    "questions": len(asked),
                    "without": round(metrics.mean_percent(without), 2),
                    "with": round(metrics.mean_percent(felt), 2),
                    "gained": round(metrics.mean_percent(gained), 2),
                    "± s.e.": round(metrics.standard_error_percent(gained), 2),
                }
            return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RESULTS.name}/")
    arguments = parser.parse_args()
    found = {profile: asyncio.run(run(profile)) for profile in ("blended", "associative")}
    table = Table("profile", "questions", "without", "with", "gained", title="The emotion bonus, nDCG@10")
    for profile, figures in found.items():
        for name in ("emotional", "neutral"):
            one = figures[name]
            gained = f"{one['gained']:+.1f} ± {one['± s.e.']:.1f}"
            table.add_row(profile, f"{name} ({one['questions']})", f"{one['without']}", f"{one['with']}", gained)
    Console().print(table)
    if arguments.record:
        (RESULTS / "emotions.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
