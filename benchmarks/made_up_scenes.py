"""Any number of different made-up scenes. Seeded; for speed benchmarks, never for quality."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta

from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.model import Scene

_PEOPLE = (
    "Ada Bruno Chloe Dmitri Elena Farid Greta Hugo Ines Jonas Keiko Liam Mara Nils Olga Pavel Quinn Rosa Samir Tilda "
    "Uma Viktor Wanda Xenia Yusuf Zoe"
).split()
_PLACES = (
    "Lisbon,Kyoto,Bergen,Tartu,Porto,Graz,Malmö,Leeds,Basel,Ghent,Riga,Turin,Cork,Brno,Lyon,the garden,the kitchen,"
    "the office,the lake house,the train station,the library,the market hall,the old theatre,the harbour"
).split(",")
_DEEDS = (
    "repaired the bicycle,baked sourdough bread,lost a chess game,signed the lease,missed the last ferry,"
    "planted tomatoes,sang in the choir,argued about the budget,found an old photograph,finished the quarterly report,"
    "adopted a grey kitten,learned to juggle,broke a favourite mug,booked the summer holiday,cancelled the dentist,"
    "painted the hallway blue,read a letter from an aunt,watched the eclipse,rehearsed the cello suite,sold the car,"
    "wrote a failing test,met the new neighbours,cooked mushroom risotto,fell off a ladder,won the pub quiz"
).split(",")
_REASONS = (
    "because the weather turned,after a long telephone call,instead of going to work,to celebrate the promotion,"
    "although nobody had asked,while the children were asleep,before the guests arrived,for the third time this month,"
    "with money saved since winter,on the advice of a friend,to everyone's surprise,in spite of a bad cold"
).split(",")
_FEELINGS = (
    "I felt calm and a little proud.,I was annoyed all evening.,It made me laugh.,I was afraid it would go wrong.,"
    "I had not been so happy for weeks.,I felt left out."
).split(",")


def texts(count: int, *, seed: int) -> Iterator[str]:
    """Sentences of some 20 words."""
    rng = random.Random(seed)
    pick = rng.choice
    for number in range(count):
        yield (
            f"{pick(_PEOPLE)} and {pick(_PEOPLE)} were at {pick(_PLACES)}: {pick(_PEOPLE)} {pick(_DEEDS)} "
            f"{pick(_REASONS)}, then {pick(_DEEDS)}, and paid {number % 997 + 3} euros."
        )


def questions(count: int, *, seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    for _ in range(count):
        yield f"When was {rng.choice(_PEOPLE)} at {rng.choice(_PLACES)}, and who {rng.choice(_DEEDS)}?"


def scenes(count: int, *, seed: int) -> Iterator[NewScene]:
    rng = random.Random(seed)
    first = date(2024, 1, 1)
    for number, text in enumerate(texts(count, seed=seed)):
        yield NewScene(
            scene=Scene(action=text, when=((first + timedelta(days=number % 700)).isoformat(),)),
            feeling=rng.choice(_FEELINGS) if number % 3 == 0 else "",
            session_id=f"session-{number // 20}",
            tool="benchmark",
        )
