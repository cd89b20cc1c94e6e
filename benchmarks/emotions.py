"""Does the emotion bonus help emotional queries without harming neutral ones (spec T7)?

    python -m benchmarks.emotions [--record]

One being remembers 120 subjects, six times each: the same person and activity, another event each time, with one to
three emotion labels. It is asked

- *emotional* queries, a subject with one emotion: half of them ask how it was, half only mention the subject. Their
  evidence is the memories with that emotion, which the wording does not reveal.
- *neutral* queries, an event with a person, in other words: half of them ask where it was, half only mention it. Their
  evidence is the memories of the event, whatever the emotion. They are asked without an emotion and, as the worst case,
  with one that none of the evidence has.

All queries go through the pipeline of recall, with and without the emotion, in the profiles with the bonus.
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
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.model import BeingId, Emotion, Scene, Scope
from madeleine.memory.recall.selection import RecallQuery
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store

RESULTS = Path(__file__).parent / "results"
BEING = Scope(BeingId("emotions"), "benchmark")
SEED = 7

PEOPLE = ("Ann", "Bo", "Carla", "Deniz", "Emil", "Farah", "Goran", "Hana", "Ivo", "Jun", "Kaya", "Luis")
ACTIVITIES = (
    "the choir rehearsal", "the ride to the lake", "the driving lesson", "the call with the landlord",
    "the evening at the climbing hall", "the pottery class", "the visit to the clinic", "the chess tournament",
    "the night shift", "the flight home", "the job interview", "the dinner with the neighbours",
    "the garden work", "the swimming course", "the parents' evening", "the band practice", "the trial lesson",
    "the walk with the dog", "the house viewing", "the presentation",
)  # fmt: skip
PHRASES_BY_EMOTION: dict[Emotion, tuple[str, ...]] = {
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
"""Each event, and its paraphrase in queries."""
EMOTIONAL = ("How was {activity} with {person}?", "{activity} with {person}, once more")
NEUTRAL = ("Where was it with {person} that {event}?", "I am with {person}, and {event}")
SUBJECTS = 120
MEMORIES_PER_SUBJECT = 6
MOST_QUERIES = 300


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    query: RecallQuery
    gold: frozenset[int]
    """Positions of the scenes that are the evidence."""


@dataclass(frozen=True, slots=True)
class Experience:
    person: str
    activity: str
    event: str
    emotions: tuple[Emotion, ...]
    day: str

    def scene(self, rng: random.Random) -> NewScene:
        phrase = rng.choice(PHRASES_BY_EMOTION[self.emotions[0]])
        action = f"At {self.activity} with {self.person} {self.event}; {phrase}."
        return NewScene(
            scene=Scene(action=action, actors=("Mara", self.person), when=(self.day,)),
            emotions=self.emotions,
            tool="benchmark",
        )


def experiences(rng: random.Random) -> list[Experience]:
    labels = list(PHRASES_BY_EMOTION)
    subjects = rng.sample([(person, activity) for person in PEOPLE for activity in ACTIVITIES], SUBJECTS)
    return [
        Experience(person, activity, event, tuple(rng.sample(labels, rng.choice((1, 1, 2, 3)))), _day(rng))
        for person, activity in subjects
        for event in rng.sample(list(EVENTS), MEMORIES_PER_SUBJECT)
    ]


def _day(rng: random.Random) -> str:
    return f"2025-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def emotional(memories: Sequence[Experience], rng: random.Random) -> list[LabelledQuery]:
    queries = {
        (memory.person, memory.activity, emotion): RecallQuery(
            text=rng.choice(EMOTIONAL).format(person=memory.person, activity=memory.activity), emotions=(emotion,)
        )
        for memory in memories
        for emotion in memory.emotions
    }
    labelled = []
    for (person, activity, emotion), query in queries.items():
        gold = frozenset(
            at
            for at, memory in enumerate(memories)
            if (memory.person, memory.activity) == (person, activity) and emotion in memory.emotions
        )
        labelled.append(LabelledQuery(query, gold))
    return rng.sample(labelled, min(MOST_QUERIES, len(labelled)))


def neutral(memories: Sequence[Experience], rng: random.Random) -> list[LabelledQuery]:
    labelled = []
    for person, event in dict.fromkeys((memory.person, memory.event) for memory in memories):
        gold = frozenset(at for at, memory in enumerate(memories) if (memory.person, memory.event) == (person, event))
        present = {emotion for at in gold for emotion in memories[at].emotions}
        absent = rng.choice([emotion for emotion in PHRASES_BY_EMOTION if emotion not in present])
        text = rng.choice(NEUTRAL).format(person=person, event=EVENTS[event])
        labelled.append(LabelledQuery(RecallQuery(text=text, emotions=(absent,)), gold))
    return rng.sample(labelled, min(MOST_QUERIES, len(labelled)))


async def measure(
    memory: OpenedMemoryStore, labelled: Sequence[LabelledQuery], ids: Sequence[str], *, with_emotion: bool
) -> list[float]:
    """nDCG@10 of each query."""
    values = []
    for case in labelled:
        query = case.query if with_emotion else RecallQuery(text=case.query.text)
        gold = {ids[at] for at in case.gold}
        ranked = await memory.use_cases.recall.rank(BEING, query)
        ranks = [rank for rank, id_ in enumerate(ranked.ids, 1) if id_ in gold]
        values.append(metrics.ndcg_at_k(ranks, len(gold), at=10))
    return values


async def run(profile: str) -> dict[str, Any]:
    rng = random.Random(SEED)
    memories = experiences(rng)
    queries = {"emotional": emotional(memories, rng), "neutral": neutral(memories, rng)}
    with tempfile.TemporaryDirectory(prefix="madeleine-") as directory:
        settings = Settings.model_validate({"data_dir": Path(directory), "ranking": profile})
        async with open_memory_store(settings) as memory:
            stored = [await memory.use_cases.store(BEING, [experience.scene(rng)]) for experience in memories]
            ids = [answer.memory.id for [answer] in stored]
            await memory.index_keeper.index_marked_memories()
            figures: dict[str, Any] = {"scenes": len(memories), "kept apart": len(set(ids))}
            for name, labelled in queries.items():
                without = await measure(memory, labelled, ids, with_emotion=False)
                with_emotion = await measure(memory, labelled, ids, with_emotion=True)
                gained = [after - before for after, before in zip(with_emotion, without, strict=True)]
                figures[name] = {
                    "questions": len(labelled),
                    "without": round(metrics.mean_percent(without), 2),
                    "with": round(metrics.mean_percent(with_emotion), 2),
                    "gained": round(metrics.mean_percent(gained), 2),
                    "± s.e.": round(metrics.standard_error_percent(gained), 2),
                }
            return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RESULTS.name}/")
    arguments = parser.parse_args()
    figures_by_profile = {profile: asyncio.run(run(profile)) for profile in ("blended", "associative")}
    table = Table("profile", "questions", "without", "with", "gained", title="The emotion bonus, nDCG@10")
    for profile, figures in figures_by_profile.items():
        for name in ("emotional", "neutral"):
            row = figures[name]
            gained = f"{row['gained']:+.1f} ± {row['± s.e.']:.1f}"
            table.add_row(profile, f"{name} ({row['questions']})", f"{row['without']}", f"{row['with']}", gained)
    Console().print(table)
    if arguments.record:
        (RESULTS / "emotions.json").write_text(json.dumps(figures_by_profile, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
