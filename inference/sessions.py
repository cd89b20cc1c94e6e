"""How a model of fastembed is loaded into ONNX Runtime, whichever kind it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

E = TypeVar("E")


def loaded(engine: Callable[..., E], name: str, **options: Any) -> E:
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
