"""`Traceable`: the base of operations and transformed functions, which other functions may call."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar

from plugrt.execution.arrays.sharers import trace_state
from plugrt.execution.launches.call_object import CallObject
from plugrt.execution.launches.pipeline import Pipeline
from plugrt.tracing.staged import Staged
from plugrt.tracing.trace import Trace, current_trace

P = ParamSpec("P")
R = TypeVar("R")


class Traceable(CallObject, Generic[P, R]):
    """A function of arrays that is traced, compiled and launched, or part of another's trace."""

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    def _keep_in(
        self, pipeline: Pipeline[Staged], numbers: frozenset[int], names: frozenset[str]
    ) -> None:
        """Sets where traces and runners are kept, and which arguments are static."""
        self._pipeline = pipeline
        self._runners = pipeline.calls
        self._statics = numbers, names
        self._set_statics(numbers, names)

    def _call_in_python(self, *args: Any, **kwargs: Any) -> Any:
        if trace_state.trace is not None and (trace := current_trace()) is not None:
            return self._call_in_trace(trace, args, kwargs)
        return self._call_read(args, kwargs)

    def _call_in_trace(self, trace: Trace, args: tuple[object, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the function while another one is traced."""
        raise NotImplementedError

    def __reduce__(self) -> str:
        # Pickles by name, as functions do: the module must have this object under the name.
        return str(getattr(self, "__qualname__", repr(self)))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # as functions are


_OUT_SHARDING = inspect.Parameter(
    "out_sharding", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="OutSharding"
)


def public_signature(body: Callable[..., object], shards: bool = False) -> inspect.Signature:
    """Returns the signature of an operation with this body.

    A body's parameters are tracers; callers pass whatever `plugrt.typing.ArrayLike` has (for a
    random ``key`` a `plugrt.typing.KeyArray`, no scalar), and get `plugrt.Array`. ``help``,
    ``inspect.signature`` and the stubs of the public namespaces (written by
    ``docs/generate/stubs.py``) read it. With ``shards`` it has ``out_sharding=None``.
    """
    signature = inspect.signature(body)
    added = [_OUT_SHARDING] if shards else []
    return signature.replace(
        parameters=[
            p.replace(
                annotation=_with(p.annotation, "KeyArray" if p.name == "key" else "ArrayLike")
            )
            for p in (*signature.parameters.values(), *added)
        ],
        return_annotation=_with(signature.return_annotation, "Array"),
    )


def _with(annotation: object, name: str) -> object:
    """Returns an annotation, a string as the body's module has it, with tracers called ``name``."""
    return re.sub(r"\bTracer\b", name, annotation) if isinstance(annotation, str) else annotation


def name_operation(
    body: Callable[..., object], module: str, name: str, summary: str, details: str
) -> None:
    """Gives an operation's body its name, and a docstring as if it had been written out."""
    body.__name__ = body.__qualname__ = name
    body.__module__ = module
    text = f"{details} As ``jax.lax.{name}``."
    filled = textwrap.fill(text, 96, break_long_words=False, break_on_hyphens=False)
    body.__doc__ = f"{summary}\n\n{textwrap.indent(filled, '    ')}\n"
