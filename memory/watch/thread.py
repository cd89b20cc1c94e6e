"""The memory thread (spec T1 to T6): looks over conversations, and keeps what is worth it. Nobody waits for it."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise

from madeleine.memory.chat import Message, MessageId, UnwatchedSession
from madeleine.memory.errors import (
    EmbeddingUnavailable,
    IndexUnavailable,
    LanguageModelUnavailable,
    StorageError,
    TokenBudgetExceeded,
    UnusableAnswer,
)
from madeleine.memory.language import Spent
from madeleine.memory.metered_model import MeteredModel
from madeleine.memory.model import BeingId, MemoryId, RunId
from madeleine.memory.ports import LanguageModel
from madeleine.memory.rules.storing.quoting import statements_of, unquoted
from madeleine.memory.rules.storing.worth import agreed, should_remember
from madeleine.memory.scope import Scope
from madeleine.memory.watch.extraction import Finding, Line, extract
from madeleine.memory.watch.ports import CostLedger, WatchLedger
from madeleine.memory.watch.recording import recorded
from madeleine.memory.watch.remember import Remember, digest, speakers_of
from madeleine.memory.watch.similar import SimilarMemories, SimilarMemory

logger = logging.getLogger(__name__)

CLIENT = "madeleine thread"
TOOL = "thread"
SNIPPET = 6
"""Messages that are looked at together (spec T2)."""
SESSIONS = 50
"""That one turn looks at, each for one snippet."""
UNUSABLE = 3
"""Answers after which a snippet is given up."""
BUDGET_PERIOD = timedelta(days=1)
BUDGET_PAUSE = timedelta(minutes=10)
"""When a day's tokens are spent: until it is looked whether some of them were spent long enough ago."""
HOPELESS = 10
"""Failures of any kind after which one more that does not pass by itself gives it up, whoever counted the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadConfig:
    """`settle`: how long after a person's last words an answer is awaited before they are looked at. `retry`: after the
    first failure, doubled with each more, up to `retry_most`. `token_budget`: a day, 0 for any number. `records`: keep
    exchanges as they are where there is no model (spec H6)."""

    settle: timedelta = timedelta(seconds=60)
    retry: timedelta = timedelta(seconds=30)
    retry_most: timedelta = timedelta(hours=1)
    token_budget: int = 200_000
    records: bool = False


@dataclass(slots=True)
class Turned:
    """What a turn came to. `more`: snippets wait that it could have looked at."""

    counts: Counter[str] = field(default_factory=Counter)
    more: bool = False


@dataclass(frozen=True, slots=True)
class Snippet:
    """`new` are the messages that nobody has looked at, up to the position `end`; `shown` the last six with them."""

    start: int
    end: int
    new: tuple[Message, ...]
    shown: tuple[Message, ...]


class MemoryThread:
    """The use case. `turn` is one look; whoever owns it calls it again and again, one at a time."""

    def __init__(
        self,
        watch: WatchLedger,
        costs: CostLedger,
        similar: SimilarMemories,
        remember: Remember,
        *,
        now: Callable[[], datetime],
        config: ThreadConfig | None = None,
    ) -> None:
        self._watch = watch
        self._costs = costs
        self._similar = similar
        self._remember = remember
        self._now = now
        self.config = config or ThreadConfig()
        self.news = asyncio.Event()
        """Set when something was said."""
        self._unusable: Counter[tuple[BeingId, str, int]] = Counter()
        self._refusals = 0
        self._not_before: datetime | None = None
        """While the model is away, or the budget reaches for nobody's question, nothing is looked at."""
        self._thrifty_since: datetime | None = None
        """When it was last warned that the budget does not reach: not more than once in the time that it is for."""

    def wake(self) -> None:
        """Something was said. Returns at once."""
        self.news.set()

    async def turn(self, language: LanguageModel | None) -> Turned:
        """Look at one snippet of each session that waits. What fails is tried again later, and keeps no other session
        from being looked at. Raises `StorageError` if the ledger cannot even say what waits."""
        turned = Turned()
        if language is None and not self.config.records:
            return turned
        now = self._now()
        if language is not None and self._not_before is not None and now < self._not_before:
            return turned
        run = RunId(str(uuid.uuid4()))
        for one in await self._watch.unwatched_sessions(now=now, limit=SESSIONS):
            scope = Scope(one.being_id, CLIENT)
            metered = None if language is None else self._metered(language, scope, run)
            try:
                turned.more |= await self._look(scope, one, metered, turned.counts)
            except TokenBudgetExceeded as error:
                # Another session may ask for less.
                await self._wait_for_tokens(scope, one, error)
                turned.counts["waiting"] += 1
            except LanguageModelUnavailable as error:
                await self._failed(scope, one, turned.counts)
                self._rest(error)
                break
            except IndexUnavailable as error:
                logger.warning("a conversation is looked at again later: %s", error)
                await self._failed(scope, one, turned.counts)
            except StorageError as error:
                logger.warning("the memory thread stops for now: %s", error)
                turned.counts["failed"] += 1
                turned.more = False
                break
            except Exception:
                logger.exception("a conversation could not be looked at; it is tried again later")
                await self._failed(scope, one, turned.counts)
        if turned.counts["waiting"] and not turned.counts["asked"]:
            self._not_before = self._now() + BUDGET_PAUSE
        return turned

    def _metered(self, language: LanguageModel, scope: Scope, run: RunId) -> MeteredModel:
        """The budget counts the last 24 hours in the ledger, so that a restart does not begin a new one."""

        async def record(spent: Spent) -> None:
            await self._costs.record_cost(scope, run, spent, at=self._now())

        async def spent_tokens(purpose: str) -> int:
            return await self._costs.tokens_since(purpose, self._now() - BUDGET_PERIOD)

        return MeteredModel(language, record, budget=self.config.token_budget, spent_tokens=spent_tokens)

    async def _look(
        self, scope: Scope, one: UnwatchedSession, language: MeteredModel | None, counts: Counter[str]
    ) -> bool:
        """True if more of the session waits."""
        snippet = await self._snippet(scope, one)
        if snippet is None:
            counts["unsettled"] += 1
            return False
        counts["looked"] += 1
        end = snippet.end
        try:
            end = await self._take_in(scope, one, snippet, language, counts)
        except UnusableAnswer as error:
            if not await self._given_up(scope, one, error, counts):
                return False
        except (LanguageModelUnavailable, EmbeddingUnavailable, IndexUnavailable, StorageError):
            raise  # these pass by themselves
        except Exception as error:
            if one.failures < HOPELESS:
                raise
            self._give_up(error, counts)
        self._unusable.pop((one.being_id, one.session_id, one.watched), None)
        await self._watch.mark_watched(scope, one.session_id, up_to=end)
        return end < one.messages

    async def _take_in(
        self, scope: Scope, one: UnwatchedSession, snippet: Snippet, language: MeteredModel | None, counts: Counter[str]
    ) -> int:
        """The position up to which all is kept that is worth it."""
        if earlier := await self._earlier(scope, one, snippet):
            # It was stored by a turn that did not live to say so.
            end, told = earlier
            await self._remember.link(scope, told)
            counts["repeated"] += len(told)
            return end
        if lines := await self._worth(scope, snippet):
            await self._keep(scope, one, snippet, await self._found(language, lines, counts), counts)
        return snippet.end

    async def _snippet(self, scope: Scope, one: UnwatchedSession) -> Snippet | None:
        """The next up to six new messages, and what stands before them; None while an answer is awaited.

        Where more than six are new they are walked through from the oldest, each in exactly one snippet as a new one.
        A snippet ends with an answer if it can, so that a question is not parted from it.
        """
        start, end = one.watched, min(one.watched + SNIPPET, one.messages)
        read = await self._watch.messages_of(scope, one.session_id, start=max(0, start - SNIPPET + 1), end=end)
        new = [message for message in read if message.position >= start]
        if end == one.messages:
            settled = _settled(new, self._now() - self.config.settle)
            if len(settled) < len(new):
                if not settled:
                    return None
                new, end = settled, settled[-1].position + 1
        elif answers := [message.position for message in new if message.role == "assistant"]:
            end = answers[-1] + 1
            new = [message for message in new if message.position < end]
        shown = tuple(message for message in read if message.position < end)[-SNIPPET:]
        return Snippet(start, end, tuple(new), shown)

    async def _worth(self, scope: Scope, snippet: Snippet) -> list[Line]:
        """The snippet as a model may see it, without what it quotes from memory; empty if it is not worth a look.
        What programs and systems say is nobody's, and not shown. What an agent drew memories from itself is only what
        was said before."""
        drawn = await self._watch.messages_with_memories(scope, [one.id for one in snippet.new])
        said = [
            Line(one, one.text, one.position >= snippet.start and one.id not in drawn)
            for one in snippet.shown
            if one.role in SPOKEN
        ]
        if not _worth_it(said):
            return []
        near = await self._similar.near(scope, [line.text for line in said])
        # It may take some time, and others are to be answered meanwhile.
        lines = await asyncio.to_thread(_without_quotes, said, near, speakers_of(snippet.shown))
        return [line for line in lines if line.text] if _worth_it(lines) else []

    async def _earlier(
        self, scope: Scope, one: UnwatchedSession, snippet: Snippet
    ) -> tuple[int, dict[MemoryId, list[MessageId]]] | None:
        """What an earlier turn has stored of a snippet that began here: where that ended, and of which messages it
        told."""
        ends = range(snippet.start + 1, snippet.start + SNIPPET + 1)
        keys = {key: end for end in ends for key in keys_of(one.session_id, snippet.start, end)}
        known = await self._remember.earlier(scope, list(keys))
        if not known:
            return None
        end = max(keys[key] for key in known)
        told = await self._watch.messages_of(scope, one.session_id, start=snippet.start, end=end)
        ids = [message.id for message in told if message.role in SPOKEN]
        return end, dict.fromkeys(known.values(), ids)

    async def _found(self, language: MeteredModel | None, lines: Sequence[Line], counts: Counter[str]) -> list[Finding]:
        if language is None:
            return recorded(lines)
        try:
            found = await extract(language, lines)
        except UnusableAnswer:
            counts["asked"] += 1
            raise
        counts["asked"] += 1
        self._refusals, self._not_before = 0, None
        for reason in found.dropped:
            counts["dropped"] += 1
            logger.info("of what was extracted from a conversation one thing is not kept: %s", reason)
        return list(found.findings)

    async def _keep(
        self, scope: Scope, one: UnwatchedSession, snippet: Snippet, findings: Sequence[Finding], counts: Counter[str]
    ) -> None:
        # What was forgotten while the model thought about it is not stored after all.
        told = await self._watch.messages_of(
            scope, one.session_id, start=max(0, snippet.end - SNIPPET), end=snippet.end
        )
        there = {message.id for message in told}
        findings = [each for each in findings if all(message.id in there for message in each.sources)]
        if findings:
            keys = keys_of(one.session_id, snippet.start, snippet.end)[: len(findings)]
            for result in await self._remember(scope, findings, session_id=one.session_id, tool=TOOL, keys=keys):
                counts[result.outcome] += 1

    # failures

    async def _given_up(self, scope: Scope, one: UnwatchedSession, error: UnusableAnswer, counts: Counter[str]) -> bool:
        """An answer that cannot be used is asked for again later, some times."""
        place = (one.being_id, one.session_id, one.watched)
        self._unusable[place] += 1
        if self._unusable[place] >= UNUSABLE or one.failures >= HOPELESS:
            self._give_up(error, counts)
            return True
        logger.info("a conversation is looked at again later: %s", error)
        await self._failed(scope, one, counts)
        return False

    def _give_up(self, error: Exception, counts: Counter[str]) -> None:
        why = "no answer about it could be used" if isinstance(error, UnusableAnswer) else "it fails again and again"
        logger.warning("a part of a conversation is left as it is, for %s: %s", why, error)
        counts["given up"] += 1

    async def _failed(self, scope: Scope, one: UnwatchedSession, counts: Counter[str]) -> None:
        counts["failed"] += 1
        try:
            await self._watch.record_watch_failure(
                scope, one.session_id, next_try=self._now() + self._pause(one.failures)
            )
        except StorageError as error:
            logger.warning("that a conversation is to be looked at later could not be written down: %s", error)

    def _pause(self, failures: int) -> timedelta:
        doubled: int = 2 ** min(failures, 20)
        return min(self.config.retry_most, self.config.retry * doubled)

    def _rest(self, error: LanguageModelUnavailable) -> None:
        pause = self._pause(self._refusals)
        self._not_before = self._now() + pause
        self._refusals += 1
        level = logging.WARNING if self._refusals == 1 else logging.INFO
        logger.log(level, "the memory thread rests for %.0f s: %s", pause.total_seconds(), error)

    async def _wait_for_tokens(self, scope: Scope, one: UnwatchedSession, error: TokenBudgetExceeded) -> None:
        now = self._now()
        await self._put_off(scope, one, now + BUDGET_PAUSE)
        first = self._thrifty_since is None or now - self._thrifty_since >= BUDGET_PERIOD
        if first:
            self._thrifty_since = now
        level = logging.WARNING if first else logging.INFO
        budget = self.config.token_budget
        if error.maximum > budget:
            why = f"more than the {budget} that the memory thread may spend in a day"
        else:
            why = f"and of the {budget} of a day {error.spent} are spent"
        logger.log(
            level,
            "a conversation waits, for a question about it needs up to %d tokens, %s (MADELEINE_THREAD_TOKEN_BUDGET)",
            error.maximum,
            why,
        )

    async def _put_off(self, scope: Scope, one: UnwatchedSession, until: datetime) -> None:
        try:
            await self._watch.postpone_watch(scope, one.session_id, next_try=until)
        except StorageError as error:
            logger.warning("that a conversation is to be looked at later could not be written down: %s", error)


SPOKEN = ("user", "assistant")


def keys_of(session_id: str, start: int, end: int) -> list[str]:
    """For what comes of the messages at positions in [start, end), whatever it is: should a turn be repeated, the model
    may put it in other words."""
    return [f"{TOOL}-{digest([session_id, start, end, number])}" for number in range(SNIPPET)]


def _without_quotes(
    lines: Sequence[Line], near: Sequence[Sequence[SimilarMemory]], speakers: Sequence[str]
) -> list[Line]:
    told = {one.memory.id: statements_of(one.memory) for known in near for one in known}
    return [
        replace(
            line,
            text=unquoted(
                line.text,
                [each for one in known for each in told[one.memory.id]],
                by_assistant=line.message.role == "assistant",
                speakers=speakers,
            ),
        )
        for line, known in zip(lines, near, strict=True)
    ]


def _settled(new: Sequence[Message], before: datetime) -> list[Message]:
    """Without what was said last and may still be answered: all after the last answer, unless it is old."""
    if not new or new[-1].role == "assistant" or new[-1].stored_at <= before:
        return list(new)
    last = max((at for at, message in enumerate(new) if message.role == "assistant"), default=-1)
    return list(new[: last + 1])


def _worth_it(lines: Sequence[Line]) -> bool:
    new = [line for line in lines if line.new]
    asked = "\n".join(line.text for line in new if line.message.role == "user")
    answered = "\n".join(line.text for line in new if line.message.role == "assistant")
    if should_remember(asked, answered)[0]:
        return True
    return any(
        answer.new and answer.message.role == "user" and question.message.role == "assistant"
        and agreed(question.text, answer.text)
        for question, answer in pairwise(lines)
    )  # fmt: skip
