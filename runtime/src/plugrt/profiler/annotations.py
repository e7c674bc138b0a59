"""`annotate` and its JAX names: names a block or a function in traces."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any, ParamSpec, Self, TypeVar

from plugrt import monitoring
from plugrt.errors import ArgumentError, ArgumentTypeError, FailedPrecondition

P = ParamSpec("P")
R = TypeVar("R")
_TAKEN = ("event", "duration", "fun_name")
"""Further arguments of duration listeners, which details must not repeat."""


class annotate(ContextDecorator):  # lowercase: it is used like a function
    """A ``with`` block, or a decorated function, that traces show under this name.

    ``details`` are shown with it. Without a trace its only cost is a check for listeners. As
    ``jax.profiler.TraceAnnotation``. Raises `ArgumentTypeError` for a name that is not a string,
    `ArgumentError` for details named ``event``, ``duration`` or ``fun_name``, which listeners get,
    and `FailedPrecondition` at the exit of a block that was not entered.

    >>> with plugrt.profiler.annotate("step", number=3):
    ...     total = xp.sum(xp.ones(4))
    """

    def __init__(self, name: str, /, **details: str | float) -> None:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"annotate takes a name; got {name!r:.60}")
        _check_details(name, details)
        self._name = name
        self._details: dict[str, Any] = details
        self._open: list[tuple[float, dict[str, Any]]] = []

    def _recreate_cm(self) -> Self:  # ContextDecorator calls this at each call
        return type(self)(self._name, **self._details)

    def __enter__(self) -> Self:
        self._open.append((time.perf_counter(), self._details))
        return self

    def __exit__(self, *_: object) -> None:
        if not self._open:
            raise FailedPrecondition(f"the block of annotate({self._name!r:.60}) was not entered")
        start, details = self._open.pop()
        seconds = time.perf_counter() - start
        monitoring.record_event_duration_secs(
            monitoring.ANNOTATION, seconds, fun_name=self._name, **details
        )

    def set_metadata(self, **details: str | float) -> None:
        """Adds details within the block; before it, to the next blocks.

        Raises `ArgumentError` for the names that `annotate` refuses.
        """
        _check_details(self._name, details)
        if self._open:
            start, before = self._open[-1]
            self._open[-1] = start, {**before, **details}
        else:
            self._details = {**self._details, **details}

    @staticmethod
    def is_enabled() -> bool:
        """Whether anyone records: a trace, a timeline, or a listener for durations."""
        return bool(monitoring.get_event_duration_listeners())


def _check_details(name: str, details: dict[str, Any]) -> None:
    if taken := [key for key in details if key in _TAKEN]:
        raise ArgumentError(
            f"annotate({name!r}) got details named {', '.join(taken)}, which are names of other "
            "arguments of plugrt.monitoring's listeners; call them otherwise"
        )


TraceAnnotation = annotate


class StepTraceAnnotation(annotate):
    """`annotate` for one step of a training loop: ``StepTraceAnnotation("train", step_num=n)``.

    The event has the detail ``_r=1`` beside the others, which marks the root of a step for xprof.
    As ``jax.profiler.StepTraceAnnotation``. Raises what `annotate` raises.
    """

    def __init__(self, name: str, **details: str | float) -> None:
        super().__init__(name, **{"_r": 1, **details})


def annotate_function(
    func: Callable[P, R], name: str | None = None, **details: str | float
) -> Callable[P, R]:
    """Returns a function whose calls traces show, under its own name unless another is given.

    As ``jax.profiler.annotate_function``. Raises `ArgumentTypeError` if the argument is not
    callable.

    >>> @plugrt.profiler.annotate_function
    ... def step(x):
    ...     return x + 1
    >>> step(1)
    2
    """
    if not callable(func):
        raise ArgumentTypeError(f"annotate_function takes a function; got {func!r:.60}")
    if name is None:
        name = str(getattr(func, "__qualname__", None) or type(func).__qualname__)
    return annotate(name, **details)(func)
