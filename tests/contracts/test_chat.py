from __future__ import annotations

from collections.abc import Sequence

import pytest

from madeleine.memory.chat import MessageId
from madeleine.memory.model import Scope
from madeleine.storage.sql.conversations.chat import ConversationRepository
from madeleine.storage.sql.erasing.memories import ErasureRepository
from madeleine.storage.sql.ledger import LedgerRepositories
from tests.contracts.ledger.chat_contract import AnyChat, ChatContract
from tests.doubles import ADA, NOW
from tests.doubles_chat import FakeChat


class TestFakeChat(ChatContract):
    @pytest.fixture
    def chat(self) -> AnyChat:
        return FakeChat()

    async def erase(self, chat: AnyChat, ids: Sequence[MessageId], scope: Scope = ADA) -> None:
        assert isinstance(chat, FakeChat)
        chat.erase(scope, ids)


class TestSqlChat(ChatContract):
    @pytest.fixture
    def chat(self, sql_ledger: LedgerRepositories) -> AnyChat:
        return sql_ledger.conversations

    async def erase(self, chat: AnyChat, ids: Sequence[MessageId], scope: Scope = ADA) -> None:
        assert isinstance(chat, ConversationRepository)
        await ErasureRepository(chat._database).forget(scope, ids, at=NOW)
