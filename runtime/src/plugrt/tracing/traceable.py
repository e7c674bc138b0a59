"""`Traceable`: the base of operations and transformed functions, which other functions may call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar

from plugrt.execution.launches.call_object import CallObject
from plugrt.execution.launches.pipeline import Pipeline
from plugrt.tracing.staged import Staged
from plugrt.tracing.trace import Trace, _state, current_trace

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
        if _state.trace is not None and (trace := current_trace()) is not None:
            return self._call_in_trace(trace, args, kwargs)
        return self._call_read(args, kwargs)

    def _call_in_trace(self, trace: Trace, args: tuple[object, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the function while another one is traced."""
        raise NotImplementedError

    def __reduce__(self) -> str:
        # By name, as functions are: the module must hold this very object under it.
        return str(getattr(self, "__qualname__", repr(self)))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # as functions are
