"""spec L2: what an answer says, which is what its budget is spent on."""

from __future__ import annotations

import re
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.model import DatedAction, Memory
from madeleine.memory.rules.prompting import (
    MEMORY_BLOCK_RENDERER,
    RECALL_LIST_RENDERER,
    RecallTextRenderer,
    all_text_recall_may_return,
    make_fragments_renderer,
)
from tests.doubles import a_memory

TEXTS = st.text(st.sampled_from("ab <>/&'\n港memoryrecall"), max_size=20)
MEMORIES = st.lists(
    st.builds(
        a_memory,
        st.text(st.sampled_from("ab <>/"), min_size=1, max_size=20),
        feeling=TEXTS,
        lesson=TEXTS,
        when=st.lists(st.builds(DatedAction, st.just("2026-01-02"), TEXTS), max_size=3).map(tuple),
    ),
    max_size=5,
)
FORMATS = st.sampled_from([RECALL_LIST_RENDERER, MEMORY_BLOCK_RENDERER, make_fragments_renderer(Random(1))])


def tokens(text: str) -> int:
    """Words and signs one by one."""
    return len(re.findall(r"\w+|[^\w\s]", text))


FED = a_memory("We ate.", feeling="warm", lesson="cook more", when=("2026-02-01", DatedAction("2026-02-02", "rest")))
TIRED = a_memory("We slept.", category="semantic")


def test_a_list_renders_text_feeling_lesson_and_timeline() -> None:
    assert RECALL_LIST_RENDERER.render([FED, TIRED]) == "We ate.\nwarm\ncook more\n2026-02-02: rest\nWe slept."


def test_a_prompt_says_a_line_each_between_its_tags() -> None:
    assert (
        MEMORY_BLOCK_RENDERER.render([FED, TIRED])
        == "<memory>\n[SEMANTIC] We slept.\n[EPISODIC] 2026-02-01: We ate.\n</memory>"
    )


def test_fragments_are_shuffled_in_their_tag_and_what_is_counted_is_what_is_said() -> None:
    said = make_fragments_renderer(Random(3)).render([FED, TIRED])
    assert sorted(said.removeprefix("<recall>").removesuffix("</recall>").split(" / ")) == [
        "We ate.",
        "We slept.",
        "warm",
    ]


def test_no_memories_render_as_empty_text() -> None:
    assert [
        renderer.render([])
        for renderer in (RECALL_LIST_RENDERER, MEMORY_BLOCK_RENDERER, make_fragments_renderer(Random(1)))
    ] == ["", "", ""]


@given(MEMORIES, FORMATS)
def test_tags_and_entries_have_at_least_the_tokens_of_the_whole(
    memories: list[Memory], renderer: RecallTextRenderer
) -> None:
    """But for a sign that only the neighbour's words make a tag, and that is then written out in 3 tokens for 1."""
    whole = renderer.render(memories)
    parts = tokens(renderer.empty_tags) + sum(tokens(renderer.render_entry(memory)) for memory in memories)
    seams = 2 * whole.count("&lt;")
    assert tokens(whole) <= parts + seams


@given(MEMORIES, FORMATS)
def test_the_indexed_token_count_is_an_upper_bound_for_every_format(
    memories: list[Memory], renderer: RecallTextRenderer
) -> None:
    for memory in memories:
        assert tokens(renderer.render_entry(memory)) <= tokens(all_text_recall_may_return(memory)) + 2
