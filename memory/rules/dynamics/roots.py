"""Business or Private without a language model: the nearer of two sets of prototype sentences (ruling 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Root = Literal["Business", "Private"]
ROOTS: tuple[Root, ...] = ("Business", "Private")

PROTOTYPES: Mapping[Root, tuple[str, ...]] = {
    "Business": (
        "We discussed the project deadline and the budget in a meeting at work.",
        "The customer signed the contract and asked for an invoice.",
        "I fixed a bug in the code, reviewed the pull request and deployed the release.",
        "The manager assigned tasks to the team for the next quarter.",
        "I applied for a job, prepared the interview and negotiated the salary.",
        "The company's sales report, strategy and market analysis were presented.",
        "A colleague from another department sent the schedule, the documents and the figures.",
        "The server went down, and we wrote a report on the incident for the users of our product.",
        "I finished the training, moved to a new office and was promoted.",
    ),
    "Private": (
        "We had dinner with the family at home and talked about the children.",
        "My friend and I went for a walk, and I felt happy.",
        "Grandmother's birthday, a wedding, a holiday trip with my partner.",
        "I was ill and tired and stayed in bed with the cat.",
        "I love music, painting, cooking and reading in my free time.",
        "She told me how sad and lonely she had felt since the separation.",
        "I am learning to play an instrument and practise a piece of music every evening.",
        "We cooked soup after an old recipe; he is allergic to nuts and does not eat meat.",
        "The dog has to see the vet, needs medicine and a special diet.",
        "We travelled by train to the sea, went hiking and took photographs.",
    ),
}


def nearest_root(vector: NDArray[np.float32], prototypes: Mapping[Root, NDArray[np.float32]]) -> Root:
    """`prototypes`: float32, (k, dim), unit rows. The root with the nearest prototypes (mean of its three best)."""

    def nearness(root: Root) -> float:
        return float(np.sort(prototypes[root] @ vector)[-3:].mean())

    return max(ROOTS, key=lambda root: (nearness(root), root))
