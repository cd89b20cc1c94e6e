"""Models that are loaded when first needed, each in a thread of its own that nobody has to wait for at the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from madeleine.memory.errors import EmbeddingUnavailable, RerankerUnavailable

if TYPE_CHECKING:
    from onnxruntime import SessionOptions  # type: ignore[import-untyped]

LoadedModelT = TypeVar("LoadedModelT")
EngineT = TypeVar("EngineT")
UnavailableModelErrorT = TypeVar("UnavailableModelErrorT", EmbeddingUnavailable, RerankerUnavailable)

MODEL_LOAD_RETRY_PAUSE_SECONDS = 60.0
"""After a failure to load, the next try comes no sooner: each may wait for a network."""


class ModelLoader(Generic[LoadedModelT, UnavailableModelErrorT]):
    """The loading of one model: at most one attempt is under way, and a failed one is repeated after a pause."""

    def __init__(
        self,
        name: str,
        load: Callable[[], LoadedModelT],
        unavailable: type[UnavailableModelErrorT],
        *,
        logger: logging.Logger,
    ) -> None:
        """`load` may take long; it raises `unavailable`."""
        self._name = name
        self._load = load
        self._unavailable: type[UnavailableModelErrorT] = unavailable
        self._logger = logger
        self._attempt: asyncio.Future[LoadedModelT] | None = None
        self._failed_at = 0.0
        self.began = 0.0
        """When the last attempt began, in seconds of the monotonic clock."""
        self.loaded: LoadedModelT | None = None
        self.failure: UnavailableModelErrorT | None = None
        """Why the model could not be had at the last attempt, or None."""

    def current_or_new_attempt(self) -> asyncio.Future[LoadedModelT]:
        """The one that is under way or has succeeded, or a new one; to be shielded from those who wait for it. Raises
        the last failure while it is too early for a new one."""
        if self._attempt and (not self._attempt.done() or self.loaded is not None):
            return self._attempt
        if self.failure and time.monotonic() - self._failed_at < MODEL_LOAD_RETRY_PAUSE_SECONDS:
            raise self.failure.with_traceback(None)  # it would hold what each caller had in hand
        loop = asyncio.get_running_loop()
        self._attempt = loop.create_future()
        self.began = time.monotonic()
        threading.Thread(
            target=self._load_in_thread, args=(loop, self._attempt), name="loading a model", daemon=True
        ).start()
        return self._attempt

    async def wait_for_running_attempt(self, seconds: float) -> None:
        """Wait at most so long for an attempt that is under way."""
        if self._attempt and not self._attempt.done():
            await asyncio.wait({self._attempt}, timeout=seconds)

    def _load_in_thread(self, loop: asyncio.AbstractEventLoop, attempt: asyncio.Future[LoadedModelT]) -> None:
        model, error = None, None
        try:
            model = self._load()
        except self._unavailable as unavailable:
            error = unavailable
        except Exception as unforeseen:  # a thread of ours: nobody else would say that it died
            self._logger.exception("loading %s failed", self._name)
            error = self._unavailable(self._name, f"it does not load: {unforeseen}")
        with contextlib.suppress(RuntimeError):  # the loop may have been closed meanwhile
            loop.call_soon_threadsafe(self._record_load_outcome, attempt, model, error)

    def _record_load_outcome(
        self, attempt: asyncio.Future[LoadedModelT], model: LoadedModelT | None, error: UnavailableModelErrorT | None
    ) -> None:
        self.loaded, self.failure, self._failed_at = model, error, time.monotonic()
        if attempt.cancelled():
            return
        if model is not None:
            attempt.set_result(model)
        elif error is not None:
            self._logger.warning("%s", error)
            attempt.set_exception(error)
            attempt.exception()  # whoever waits is told; nobody has to


@contextlib.contextmanager
def model_load_errors_translated(name: str, unavailable: type[UnavailableModelErrorT], remedy: str) -> Iterator[None]:
    """Translates to `unavailable`."""
    try:
        yield
    except unavailable:
        raise
    except Exception as error:  # fastembed, the hub, onnxruntime and tokenizers raise errors of no common kind
        reason = " ".join(str(error).split())[:300]
        raise unavailable(name, f"it could not be loaded ({reason}); {remedy}") from error


def onnx_session_options() -> SessionOptions:
    """For one thread: with two, a second busy core makes every run slower. Without plans of memory: see
    `load_fastembed_model`."""
    from onnxruntime import SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_mem_pattern = False
    return options


def register_fastembed_model(engine: Any, alias: str, **description: Any) -> None:
    """Make a model known to fastembed, unless it is."""
    if not any(str(known["model"]).lower() == alias.lower() for known in engine.list_supported_models()):
        engine.add_custom_model(alias, **description)


def load_fastembed_model(engine: Callable[..., EngineT], name: str, **options: Any) -> EngineT:
    """One of fastembed's `TextEmbedding` and `TextCrossEncoder`, its model loaded, for one thread: with two, a second
    busy core makes every run slower.

    For each shape of its input ONNX Runtime keeps for ever a plan of where in memory everything goes ("memory
    pattern"), and asks its arena for one block as large as the whole plan, which seldom fits what is free. Texts come
    in hundreds of shapes, so the process grew with each new one: embedding 1,700 texts took 170 MB to 188, and without
    plans 172 to 175, in the same time. fastembed passes on no option for it, but asks the model for more options of the
    session before it makes one; so it is there that this one is set.
    """
    from fastembed.common.onnx_model import OnnxModel

    lazy = engine(name, threads=1, lazy_load=True, **options)
    model: Any = lazy.model  # type: ignore[attr-defined]
    if not isinstance(model, OnnxModel):  # a table of vectors, without a session
        model.load_model()
        return lazy
    more_options = model.add_extra_session_options

    def without_plans(options: Any, extra: dict[str, Any]) -> None:
        more_options(options, extra)
        options.enable_mem_pattern = False

    model.add_extra_session_options = without_plans  # type: ignore[assignment]
    model.load_onnx_model()
    return lazy
