"""The memory thread (spec T1 to T6): reads conversations in the background, and stores what is worth remembering."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, timedelta

from madeleine.memory.chat import SessionWithUnreadMessages
from madeleine.memory.errors import (
    EmbeddingUnavailable,
    IndexUnavailable,
    LanguageModelUnavailable,
    SourcesForgotten,
    StorageError,
    TokenBudgetTooSmallForNextCall,
    UnusableAnswer,
)
from madeleine.memory.language_model import LanguageModel, MeteredModel, ModelCallCost
from madeleine.memory.model import BeingId, RunId, Scope
from madeleine.memory.retention.levels import MemoryLevelsOfBeings
from madeleine.memory.watch.extraction import ExtractedMemoryWithMessages, SnippetMessage, extract_memories
from madeleine.memory.watch.ports import MemoryExtractionLedger, TokenSpendingLedger
from madeleine.memory.watch.remember import RememberExtractedMemories, json_digest, speakers_of_messages
from madeleine.memory.watch.snippets import (
    MAX_SNIPPET_MESSAGES,
    ConversationSnippet,
    has_signs_of_something_to_remember,
    memories_from_exchanges,
    messages_without_quotes_from_memories,
    next_conversation_snippet,
)

logger = logging.getLogger(__name__)

CLIENT_NAME_OF_EXTRACTED_MEMORIES = "madeleine thread"
EXTRACTOR_PROVENANCE_TOOL = "thread"
MAX_SESSIONS_PER_POLL = 50
"""Sessions of one poll, each with one snippet."""
MAX_UNUSABLE_ANSWERS_PER_SNIPPET = 3
"""After so many a snippet is abandoned."""
MEMORY_EXTRACTOR_TOKEN_BUDGET_PERIOD = timedelta(days=1)
SPENT_TOKEN_BUDGET_PAUSE = timedelta(minutes=10)
"""When a day's tokens are spent: until it is checked whether some of them were spent long enough ago."""
MAX_SNIPPET_READING_FAILURES = 10
"""Failures of any kind, before a restart too. After these, one more that does not pass by itself abandons the
snippet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryExtractionConfig:
    """`settle_time`: how long an answer to a person's last message is awaited before that message is read.
    `retry_delay`: pause after the first failure, doubled with each more, up to `max_retry_delay`. `token_budget`: a
    day, 0 for unlimited. `records_exchanges`: without a model, store exchanges word for word (spec H6).
    `put_off_time`: how long messages without a sign of anything to remember wait to be read with what follows."""

    settle_time: timedelta = timedelta(seconds=60)
    retry_delay: timedelta = timedelta(seconds=30)
    max_retry_delay: timedelta = timedelta(hours=1)
    token_budget: int = 200_000
    records_exchanges: bool = False
    put_off_time: timedelta = timedelta(hours=1)


@dataclass(slots=True)
class MemoryExtractionPollResult:
    """`has_more`: there are snippets that could be read now."""

    counts: Counter[str] = field(default_factory=Counter)
    has_more: bool = False


@dataclass(eq=False)
class ConversationMemoryExtractor:
    """The use case. Its owner calls `poll` again and again, one call at a time."""

    ledger: MemoryExtractionLedger
    costs: TokenSpendingLedger
    remember: RememberExtractedMemories
    _: KW_ONLY
    now: Callable[[], datetime]
    config: MemoryExtractionConfig = MemoryExtractionConfig()
    levels: MemoryLevelsOfBeings = field(default_factory=MemoryLevelsOfBeings)
    new_messages_event: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _counts: Counter[str] = field(default_factory=Counter, init=False)
    """Counts of the current poll."""
    _unusable_answers: Counter[tuple[BeingId, str, int]] = field(default_factory=Counter, init=False)
    _refusals: int = field(default=0, init=False)
    _paused_until: datetime | None = field(default=None, init=False)
    """While the model is unavailable, or no call fits the budget."""
    _budget_warned_at: datetime | None = field(default=None, init=False)

    def notify_of_new_messages(self) -> None:
        """Tell of new messages. Returns at once."""
        self.new_messages_event.set()

    async def poll(self, language: LanguageModel | None) -> MemoryExtractionPollResult:
        """Read one snippet of each session that has unread messages. A session that fails is retried at a later poll,
        and does not keep the others from being read. Raises `StorageError` if the sessions cannot be listed."""
        result = MemoryExtractionPollResult()
        if language is None and not self.config.records_exchanges:
            return result
        now = self.now()
        if language is not None and self._paused_until and now < self._paused_until:
            return result
        run = RunId(str(uuid.uuid4()))
        self._counts = result.counts
        for session in await self.ledger.sessions_with_unread_messages(now=now, limit=MAX_SESSIONS_PER_POLL):
            of_session = Scope(session.being_id, CLIENT_NAME_OF_EXTRACTED_MEMORIES, project=session.project or "")
            scope = self.levels.apply_to_unattended_scope(of_session)
            metered = None if language is None else self._build_metered_model(language, scope, run)
            try:
                result.has_more |= await self._read_next_snippet_of_session(scope, session, metered)
            except TokenBudgetTooSmallForNextCall as error:
                await self._postpone_session_for_token_budget(scope, session, error)  # another session may need less
            except LanguageModelUnavailable as error:
                await self._record_failure_and_retry_later(scope, session)
                self._pause_model_calls(error)
                break
            except IndexUnavailable as error:
                logger.warning("reading unwatched messages failed; retrying later: %s", error)
                await self._record_failure_and_retry_later(scope, session)
            except StorageError as error:
                logger.warning("the memory thread stops until the next poll: %s", error)
                result.counts["failed"] += 1
                result.has_more = False
                break
            except Exception:
                logger.exception("reading unwatched messages failed; retrying later")
                await self._record_failure_and_retry_later(scope, session)
        if result.counts["waiting"] and not result.counts["asked"]:
            self._paused_until = self.now() + SPENT_TOKEN_BUDGET_PAUSE
        return result

    def _build_metered_model(self, language: LanguageModel, scope: Scope, run: RunId) -> MeteredModel:
        """The budget counts the last 24 hours in the ledger, so that a restart does not begin a new one."""

        def record(spent: ModelCallCost) -> Awaitable[None]:
            return self.costs.record_cost(scope, run, spent, at=self.now())

        def spent_tokens(purpose: str) -> Awaitable[int]:
            return self.costs.tokens_spent_since(purpose, self.now() - MEMORY_EXTRACTOR_TOKEN_BUDGET_PERIOD)

        return MeteredModel(language, record, budget=self.config.token_budget, spent_tokens=spent_tokens)

    async def _read_next_snippet_of_session(
        self, scope: Scope, session: SessionWithUnreadMessages, language: MeteredModel | None
    ) -> bool:
        """True if the session has more to read."""
        session_id, most = session.session_id, MAX_SNIPPET_MESSAGES
        earlier, unread = await self.ledger.earlier_and_unread_spoken_messages(
            scope, session_id, start=session.watched, before=most - 1, unread=most + 1
        )
        if not unread:
            await self.ledger.mark_messages_read_up_to_position(scope, session_id, up_to=session.messages)
            return False
        snippet = next_conversation_snippet(session, earlier, unread, self.now() - self.config.settle_time)
        if snippet is None:
            self._counts["unanswered"] += 1
            return False
        self._counts["read"] += 1
        end, abandoned = snippet.end, 0
        # What has been put off is shown as soon as its time has come, or as more is said than is shown at once.
        must_show = language is not None and (snippet.more_follows or session.put_off >= session.messages)
        try:
            remembered_up_to = await self._remember_snippet(scope, session_id, snippet, language, must_show=must_show)
            if remembered_up_to is None:
                await self._postpone_snippet(scope, session, snippet, last=unread[-1].position)
                return False
            end = remembered_up_to
        except UnusableAnswer as error:
            place = (session.being_id, session.session_id, session.watched)
            self._unusable_answers[place] += 1
            if (
                self._unusable_answers[place] < MAX_UNUSABLE_ANSWERS_PER_SNIPPET
                and session.failures < MAX_SNIPPET_READING_FAILURES
            ):
                logger.info("reading unwatched messages failed; retrying later: %s", error)
                await self._record_failure_and_retry_later(scope, session)
                return False
            logger.warning("unwatched messages are skipped, as no answer about them was usable: %s", error)
            abandoned = len(snippet.new_messages)
        except (LanguageModelUnavailable, EmbeddingUnavailable, IndexUnavailable, StorageError):
            raise  # these pass by themselves
        except Exception as error:
            if session.failures < MAX_SNIPPET_READING_FAILURES:
                raise
            logger.warning("unwatched messages are skipped, as reading them failed too often: %s", error)
            abandoned = len(snippet.new_messages)
        self._unusable_answers.pop((session.being_id, session.session_id, session.watched), None)
        if abandoned:
            self._counts["abandoned"] += 1
        await self.ledger.mark_messages_read_up_to_position(scope, session_id, up_to=end, abandoned=abandoned)
        return end < session.messages

    async def _postpone_snippet(
        self, scope: Scope, session: SessionWithUnreadMessages, snippet: ConversationSnippet, *, last: int
    ) -> None:
        """`last`: position of the session's last spoken message. What programs say behind it is put off with it."""
        self._counts["put off"] += len(snippet.new_messages)
        up_to = session.messages if last < snippet.end else snippet.end
        until = self.now() + self.config.put_off_time
        await self.ledger.postpone_unread_messages(scope, session.session_id, up_to=up_to, until=until)

    async def _remember_snippet(
        self,
        scope: Scope,
        session_id: str,
        snippet: ConversationSnippet,
        language: MeteredModel | None,
        *,
        must_show: bool,
    ) -> int | None:
        """The position up to which everything worth remembering is stored; None if the new messages are put off."""
        if end := await self._end_of_stored_snippet(scope, session_id, snippet):
            return end
        lines = await self._snippet_messages_for_model(scope, snippet, must_show=must_show)
        if lines is None:
            return None if language is not None else snippet.end
        if any(line.new for line in lines):
            findings = (
                memories_from_exchanges(lines)
                if language is None
                else await self._extract_memories_with_model(language, lines)
            )
            await self._store_extracted_memories(scope, session_id, snippet, findings)
        return snippet.end

    async def _end_of_stored_snippet(self, scope: Scope, session_id: str, snippet: ConversationSnippet) -> int:
        """The end of a snippet with this start whose memories a killed poll has stored; 0 if there is none. It may
        have ended before or behind this one."""
        first, last = snippet.start + 1, max(snippet.end, snippet.start + MAX_SNIPPET_MESSAGES)
        keys = {
            key: end
            for end in range(first, last + 1)
            for key in idempotency_keys_for_message_range(session_id, snippet.start, end)
        }
        stored = await self.remember.ledger.idempotency_key_outcomes(scope, list(keys))
        self._counts.update("repeated" for _ in stored)
        return max((keys[key] for key in stored), default=0)

    async def _snippet_messages_for_model(
        self, scope: Scope, snippet: ConversationSnippet, *, must_show: bool
    ) -> list[SnippetMessage] | None:
        """The snippet as a model may see it: without messages of programs and systems, and without quotes from memory.
        None if its words tell of nothing to remember, and it need not be shown yet. Messages that an agent has made
        memories of count as read."""
        remembered = await self.ledger.ids_of_messages_with_memories(
            scope, [message.id for message in snippet.new_messages]
        )
        lines = [
            SnippetMessage(message, message.text, message.position >= snippet.start and message.id not in remembered)
            for message in snippet.shown
        ]
        if not (must_show or has_signs_of_something_to_remember(lines)):
            return None if any(line.new for line in lines) else []
        similar = await self.remember.similar.search(scope, [line.text for line in lines])
        # In a thread: it may take some time, and the event loop has other calls to answer.
        lines = await asyncio.to_thread(
            messages_without_quotes_from_memories, lines, similar, speakers_of_messages(snippet.shown)
        )
        lines = [line for line in lines if line.text.strip()]
        is_put_off = any(line.new for line in lines) and not (must_show or has_signs_of_something_to_remember(lines))
        return None if is_put_off else lines

    async def _extract_memories_with_model(
        self, language: MeteredModel, lines: Sequence[SnippetMessage]
    ) -> Sequence[ExtractedMemoryWithMessages]:
        try:
            extraction = await extract_memories(language, lines)
        except UnusableAnswer:
            self._counts["asked"] += 1
            raise
        self._counts["asked"] += 1
        self._refusals, self._paused_until = 0, None
        for reason in extraction.dropped:
            self._counts["dropped"] += 1
            logger.info("an extracted memory is dropped: %s", reason)
        return extraction.memories

    async def _store_extracted_memories(
        self,
        scope: Scope,
        session_id: str,
        snippet: ConversationSnippet,
        findings: Sequence[ExtractedMemoryWithMessages],
    ) -> None:
        """Messages that were forgotten while the model read them, or are until the commit, leave no memory."""
        while findings:
            keys = idempotency_keys_for_message_range(session_id, snippet.start, snippet.end)[: len(findings)]
            try:
                results = await self.remember(scope, findings, session_id, tool=EXTRACTOR_PROVENANCE_TOOL, keys=keys)
            except SourcesForgotten as error:
                findings = [one for one in findings if error.ids.isdisjoint(source.id for source in one.sources)]
                continue
            self._counts.update(result.outcome for result in results)
            return

    # --- failures ---------------------------------------------------------------------------------------------

    async def _record_failure_and_retry_later(self, scope: Scope, session: SessionWithUnreadMessages) -> None:
        self._counts["failed"] += 1
        await self._retry_session_later(scope, session, self._backoff_delay(session.failures), failed=True)

    async def _retry_session_later(
        self, scope: Scope, session: SessionWithUnreadMessages, pause: timedelta, *, failed: bool
    ) -> None:
        next_try = self.now() + pause
        try:
            await self.ledger.retry_session_later(scope, session.session_id, next_try=next_try, failed=failed)
        except StorageError as error:
            logger.warning("the next try could not be recorded: %s", error)

    def _backoff_delay(self, failures: int) -> timedelta:
        doubled: int = 2 ** min(failures, 20)
        return min(self.config.max_retry_delay, self.config.retry_delay * doubled)

    def _pause_model_calls(self, error: LanguageModelUnavailable) -> None:
        pause = self._backoff_delay(self._refusals)
        self._paused_until = self.now() + pause
        self._refusals += 1
        level = logging.WARNING if self._refusals == 1 else logging.INFO
        logger.log(level, "the memory thread pauses for %.0f s: %s", pause.total_seconds(), error)

    async def _postpone_session_for_token_budget(
        self, scope: Scope, session: SessionWithUnreadMessages, error: TokenBudgetTooSmallForNextCall
    ) -> None:
        self._counts["waiting"] += 1
        await self._retry_session_later(scope, session, SPENT_TOKEN_BUDGET_PAUSE, failed=False)
        now = self.now()
        # A warning not more than once in the period of the budget.
        first = self._budget_warned_at is None or now - self._budget_warned_at >= MEMORY_EXTRACTOR_TOKEN_BUDGET_PERIOD
        if first:
            self._budget_warned_at = now
        budget = self.config.token_budget
        spent = f"{error.spent} of the daily budget of {budget} are spent"
        logger.log(
            logging.WARNING if first else logging.INFO,
            "unwatched messages wait: a call about them needs up to %d tokens, and %s (MADELEINE_THREAD_TOKEN_BUDGET)",
            error.maximum,
            f"the daily budget is {budget}" if error.maximum > budget else spent,
        )


def idempotency_keys_for_message_range(session_id: str, start: int, end: int) -> list[str]:
    """Idempotency keys for the memories of the messages at positions in [start, end). Not made of their text: should a
    poll be repeated, the model may choose other words."""
    return [
        f"{EXTRACTOR_PROVENANCE_TOOL}-{json_digest([session_id, start, end, number])}"
        for number in range(MAX_SNIPPET_MESSAGES)
    ]
