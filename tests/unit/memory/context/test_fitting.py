"""spec H5: the limit holds by the model's own tokenizer, whatever it counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.context.prompt import FittedPrompt, RenderedPromptBlockEntry, fit_prompt
from madeleine.memory.rules.prompting import (
    ASSISTANT_REPLY_AFTER_MEMORY_SNAPSHOT,
    PROMPT_PART_NAMES,
    STORED_TEXT_IS_DATA_NOTICE,
    PromptPartName,
)
from tests.doubles import WordEmbedder


class Counter(WordEmbedder):
    """Counts as it is told."""

    def __init__(self, count: Callable[[str], int]) -> None:
        super().__init__()
        self._count = count
        self.counted = 0

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        self.counted += 1
        return [self._count(text) for text in texts]


TOKENIZERS: dict[str, Callable[[str], int]] = {
    "words": lambda text: len(text.split()),
    "signs": len,
    "bytes": lambda text: len(text.encode()),
    "two for each text": lambda text: len(text.split()) + 2 * bool(text),
    "more for longer texts": lambda text: len(text.split()) ** 2 // 10,
    "fewer for longer texts": lambda text: int(len(text) ** 0.5),
}
WORDS = st.text(alphabet="ab é日", min_size=1, max_size=30)


@st.composite
def pieces(draw: st.DrawFn) -> list[RenderedPromptBlockEntry]:
    found: list[RenderedPromptBlockEntry] = []
    for part in PROMPT_PART_NAMES:
        for n, text in enumerate(draw(st.lists(WORDS, max_size=3))):
            longer = f"- {text} {draw(WORDS)}" if part == "diary" else ""
            found.append(
                RenderedPromptBlockEntry(part=part, id=f"{part}{n}", text=f"- {text}", rank=n, full_text=longer)
            )
    return found


def handed_out(fit: FittedPrompt) -> list[str]:
    texts = fit.texts
    return [
        text
        for text in (
            texts.system_prompt,
            texts.snapshot,
            ASSISTANT_REPLY_AFTER_MEMORY_SNAPSHOT if texts.snapshot else "",
            texts.turn,
        )
        if text
    ]


@pytest.mark.parametrize("name", TOKENIZERS)
@given(some=pieces(), limit=st.integers(1, 400), with_notice=st.booleans())
async def test_the_limit_is_never_exceeded_by_any_tokenizer(
    name: str, some: list[RenderedPromptBlockEntry], limit: int, with_notice: bool
) -> None:
    count = TOKENIZERS[name]
    fit = await fit_prompt(some, Counter(count), limit=limit, with_notice=with_notice)
    assert count(fit.texts.prompt) <= limit
    assert fit.tokens["total"] <= limit
    if name in ("words", "signs", "bytes"):  # what is added up, message by message
        assert sum(map(count, handed_out(fit))) <= limit


@given(some=pieces(), with_notice=st.booleans())
async def test_with_room_enough_all_of_it_is_there_and_nothing_is_counted_twice(
    some: list[RenderedPromptBlockEntry], with_notice: bool
) -> None:
    counter = Counter(TOKENIZERS["words"])
    fit = await fit_prompt(some, counter, limit=100_000, with_notice=with_notice)
    assert fit.selection.keys() == set(range(len(some)))
    assert (STORED_TEXT_IS_DATA_NOTICE in fit.texts.prompt) == with_notice
    assert counter.counted == 1
    assert all((one.full_text or one.text) in fit.texts.prompt for one in some)


async def test_where_not_even_the_notice_fits_there_is_nothing() -> None:
    part: PromptPartName = "soul"
    fit = await fit_prompt(
        [RenderedPromptBlockEntry(part=part, id="voice", text="# Voice\ncalm", rank=0)],
        Counter(TOKENIZERS["words"]),
        limit=1,
        with_notice=True,
    )
    assert fit.texts.prompt == ""
    assert fit.tokens == {"total": 0}
