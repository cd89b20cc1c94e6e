"""The error family (spec O3). Each kind carries its values, and its message ends with the next step for the person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class MadeleineError(Exception):
    """Root of all errors that Madeleine raises."""


class InvalidInput(MadeleineError):
    """An argument that cannot be used; nothing was changed."""


class KeyConflict(MadeleineError):
    """An idempotency key was used before, for another text."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"The key {key!r} was used before for a different text. Nothing was stored: use a new key for new content."
        )
        self.key = key


class SourcesForgotten(MadeleineError):
    """Messages that a memory was to be drawn from were forgotten meanwhile; nothing was stored. `ids`: of these."""

    def __init__(self, ids: Iterable[str]) -> None:
        super().__init__("Nothing was stored: messages that it was to be drawn from were forgotten meanwhile.")
        self.ids = frozenset(ids)


class CoreBlockEditConflict(InvalidInput):
    """A core block is not at the version that was edited. `diff`: what was changed since, as a unified diff."""

    def __init__(self, message: str, *, name: str, diff: str) -> None:
        super().__init__(message)
        self.name = name
        self.diff = diff


class NotCurrent(InvalidInput):
    """A memory to supersede or to retract is not current any more. `current`: id of its current version, or ""."""

    def __init__(self, message: str, *, current: str = "") -> None:
        super().__init__(message)
        self.current = current


class CannotUndo(MadeleineError):
    """A patrol, or a change of what is true, cannot be undone; nothing was changed."""


class NotPermitted(MadeleineError):
    """The caller is read-only, or its role lacks a permission."""

    def __init__(self, tool: str, *, permission: str = "", role: str = "") -> None:
        super().__init__(
            f"{tool} needs the permission to {permission}, which the role {role!r} of this connection does not have. "
            "Nothing was done: ask for it from a person, or for a token of the role senior or human."
            if permission
            else f"{tool} changes the memory; this connection is read-only, by its token or by MADELEINE_READ_ONLY. "
            "Nothing was done: ask for a token with write access, or for a server without that setting."
        )
        self.tool = tool


class MachineLearningModelError(MadeleineError):
    """A model failed. Carries its name and the reason."""

    template = "The model {model} failed: {reason}"

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(self.template.format(model=model, reason=reason))
        self.model = model
        self.reason = reason


class EmbeddingUnavailable(MachineLearningModelError):
    """The embedding model is unavailable; memories are found by words until it is back."""

    template = "The embedding model {model} is not available: {reason}"


class RerankerUnavailable(MachineLearningModelError):
    """The re-ranking model is unavailable or too slow; recall keeps its order."""

    template = "The re-ranking model {model} is not available: {reason}"


class LanguageModelUnavailable(MachineLearningModelError):
    """The language model did not answer, or refused the key; the patrol continues without it."""

    template = "The language model {model} is not available: {reason}"


class TokenBudgetTooSmallForNextCall(LanguageModelUnavailable):
    """The next call might cost more than the budget leaves; it was not made. Values are in tokens."""

    template = "The language model was not asked: {reason}"

    def __init__(self, maximum: int, spent: int, budget: int) -> None:
        reason = f"the budget of {budget:,} tokens is spent, or too small for the next call: raise it, or wait"
        super().__init__("", reason)
        self.maximum = maximum
        self.spent = spent


class UnusableAnswer(MachineLearningModelError):
    """The language model's answer cannot be used; nothing was changed by it."""

    template = "The answer of the language model {model} cannot be used: {reason}"


class StorageError(MadeleineError):
    """The ledger could not read or write; what was acknowledged before is safe."""


class StorageBusy(StorageError):
    """Another process owns the data directory."""


class LedgerLost(StorageError):
    """The ledger's file is gone, empty, or not the one that was opened; nothing was acknowledged."""


class StorageFull(StorageError):
    """The disk is full; nothing was stored."""


class IndexUnavailable(MadeleineError):
    """The index cannot answer; it is derived from the ledger and can be rebuilt."""


class IndexDiskFull(IndexUnavailable):
    """There is no room to write the index; it goes on answering, and the ledger's marks remember what it lacks."""


class IndexNeedsRebuild(IndexUnavailable):
    """Files of the index are missing, damaged, or made by another model or schema; it must be rebuilt."""


class ServerError(MadeleineError):
    """A call failed inside the server, or for a reason of a kind that this version does not know."""


class ServerUnavailable(MadeleineError):
    """The memory's host or server cannot be reached; nothing was done."""


class AuthenticationFailed(ServerUnavailable):
    """The server does not accept the token, or needs one."""


class ConnectionLost(ServerUnavailable):
    """The server went away, or did not answer in time; whether the call was carried out is not known."""


ERROR_META_KEY = "madeleine/error"
"""Key of `error_as_json` in the `_meta` of a tool's answer."""
_ERROR_CLASS_BY_NAME: dict[str, type[MadeleineError]] = {
    kind.__name__: kind for kind in globals().values() if isinstance(kind, type) and issubclass(kind, MadeleineError)
}


def error_as_json(error: MadeleineError) -> dict[str, str]:
    """The nearest kind of this module, and the text values that the error carries."""
    kind = next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == __name__)
    return {"kind": kind} | {name: value for name, value in vars(error).items() if isinstance(value, str)}


def error_from_json(values: object, message: str) -> MadeleineError:
    """The error that `error_as_json` described, with this message; a `ServerError` if it was not described, or is of
    another version's kind."""
    described = dict(values) if isinstance(values, Mapping) else {}
    kind = _ERROR_CLASS_BY_NAME.get(str(described.pop("kind", "")))
    if kind is None:
        return ServerError(message)
    error = kind.__new__(kind)  # past the kind's own wording
    error.args = (message,)
    vars(error).update(described)
    return error
