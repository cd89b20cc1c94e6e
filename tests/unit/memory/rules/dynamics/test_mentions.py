"""What else tells of a forgotten memory: names of clusters, reports of patrols, timelines of survivors (ruling 11)."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.model import DatedAction, Scene
from madeleine.memory.rules.dynamics.mentions import (
    FORGOTTEN_TEXT_MARK,
    all_texts_of_memory,
    cluster_name_after_forgetting,
    fold_and_join_texts,
    mentions_forgotten,
    report_without_forgotten_mentions,
    scene_without_timeline_repeats_of_texts,
)
from madeleine.memory.rules.dynamics.naming import cluster_name_from_memories
from tests.doubles import a_memory
from tests.rows import for_each_row

GONE = a_memory(
    "Zoé sold the xylophone to the museum",
    actors=("Zoé Brandauer",),
    when=(DatedAction("2026-02-01", "the auction"), "in spring"),
    setting="Basel",
    dialogue=("Never again",),
    sensory=("smell of varnish",),
    feeling="I was relieved",
    themes=("instruments",),
    lesson="Ask for more",
)
WORDS = fold_and_join_texts(all_texts_of_memory(GONE))


@for_each_row(
    "name",
    [
        "xylophone & museum", "XYLOPHONE", "Zoé sold the xyloph", "brandauer", "instruments", "auction",
        "in spring", "varnish", "never mind", "Basel", "relieved", "ask more",
    ],
)  # fmt: skip
def test_a_name_with_a_word_of_it_tells_of_it(name: str) -> None:
    assert mentions_forgotten(name, WORDS)


@for_each_row("name", ["dinner & wine", "the", "to the", "", "…", "Business"])
def test_a_name_without_one_or_with_common_words_only_does_not(name: str) -> None:
    assert not mentions_forgotten(name, WORDS)


def test_a_text_without_spaces_is_found_by_its_beginning() -> None:
    gone = fold_and_join_texts(["東京でラーメンを食べた"])
    assert mentions_forgotten("東京でラーメン", gone)
    assert not mentions_forgotten("大阪", gone)


@given(
    st.lists(st.sampled_from(["Zoé", "Zoe\u0301", "straße", "ﬁre", "東京で", "ＡＢＣ", "42nd", "İzmir"]), min_size=1)
)
def test_whatever_name_a_cluster_got_from_it_alone_tells_of_it(words: list[str]) -> None:
    """A cluster's name is cut off at a length: half a word is a trace too."""
    action = " ".join(words)
    for length in range(4, 60):
        assert mentions_forgotten(
            cluster_name_from_memories([a_memory(action)], {})[:length], fold_and_join_texts([action])
        )


def test_a_cluster_keeps_a_name_that_those_who_stay_explain() -> None:
    others = [a_memory(f"The xylophone was tuned by {who}") for who in ("Ann", "Bea")]
    assert cluster_name_after_forgetting("xylophone", WORDS, others, "Private") == "xylophone"


def test_a_cluster_gets_a_name_of_those_who_stay() -> None:
    others = [a_memory(f"{who} tuned the harp", themes=("harps",)) for who in ("Ann", "Bea")]
    assert cluster_name_after_forgetting("xylophone & museum", WORDS, others, "Private") == "harps"


def test_a_cluster_without_anybody_left_falls_back() -> None:
    assert cluster_name_after_forgetting("xylophone", WORDS, [], "Private") == "Private"
    assert cluster_name_after_forgetting("dinner", WORDS, [], "Private") == "dinner"


def test_a_report_keeps_ids_counts_and_the_names_of_today() -> None:
    report: dict[str, Any] = {
        "run_id": "r",
        "steps": [{"step": "❶", "name": "assign", "assigned": 3}, {"name": "split", "skipped": "sold the key"}],
        "pending": [
            {"cluster_id": "c1", "cluster": "xylophone & museum", "memories": 11},
            {"cluster_id": "c2", "cluster": "museum visits", "memories": 12},
        ],
        "dry_run": False,
    }
    found = report_without_forgotten_mentions(report, WORDS, {"museum visits"})
    assert found["pending"] == [report["pending"][0] | {"cluster": FORGOTTEN_TEXT_MARK}, report["pending"][1]]
    assert found["steps"] == report["steps"]
    assert (found["run_id"], found["dry_run"]) == ("r", False)


def test_a_survivor_no_longer_retells_what_it_absorbed() -> None:
    """spec P4: consolidation writes an absorbed scene into its survivor's timeline."""
    other = DatedAction("2026-01-01", "the harp was bought")
    told = Scene(action="instruments", when=("2026-01-01", other, DatedAction("2026-02-01", GONE.scene.action)))
    assert scene_without_timeline_repeats_of_texts(told, {GONE.scene.action}).when == ("2026-01-01", other)
