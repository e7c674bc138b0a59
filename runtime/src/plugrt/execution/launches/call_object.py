"""`CallObject`: the base of operations, jitted and pmapped functions, and compiled programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from plugrt.execution.arrays.aval import Aval
from plugrt.execution.launches.flat_calls import FlatCall, static_key
from plugrt.execution.launches.pipeline import Runner
from plugrt.execution.trees import pytrees
from plugrt.frames.traceback_filter import filter_traceback
from plugrt.native.native_core import core
from plugrt.settings.declarations import config
from plugrt.settings.options import Token

_token = config.token


class PythonCalls:
    """Calls in Python alone: replaces `plugrt._core.Calls` without the core."""

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        call: Callable[..., Any] | None = getattr(cls, "_call_in_python", None)
        if call is not None and "__call__" not in vars(cls):
            cls.__call__ = call  # type: ignore[method-assign]  # a frame less than a method here

    def _set_statics(self, numbers: frozenset[int], names: frozenset[str]) -> None:
        """Accepts the static arguments, which only the core needs."""


Calls = PythonCalls
if core is not None and not TYPE_CHECKING:
    # The core looks up the runners of calls with arrays, host values and static arguments.
    Calls = core.Calls
    core.set_call_hooks(filter_traceback, static_key, pytrees.registered, pytrees.order_keys)


class CallObject(Calls):
    """A function or program of arrays: each call is read once, then its runner is looked up.

    The core does this for most calls. It passes those without a runner to `_call_read`, with the
    settings and leaves that it read, and calls that it cannot read to `_call_in_python`.
    """

    _runners: Any
    """The `RunnerCache`: maps the settings, structure and avals of a call to its runner."""

    def _call_in_python(self, *args: Any, **kwargs: Any) -> Any:
        """Calls it with arrays. Raises the errors of `_read` and `_make_runner`."""
        return self._call_read(args, kwargs)

    def _call_read(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        token: Token | None = None,
        *read: Any,
    ) -> Any:
        """Makes a call; the core may have read its settings and arguments already."""
        try:  # costs nothing unless something is raised
            return self._call(args, kwargs or {}, token or _token(), read)
        except Exception as error:  # raised again without plugrt's frames
            filter_traceback(error)
            raise

    def _call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], token: Token, read: Sequence[Any]
    ) -> Any:
        if self._may_be_disabled and token.settings["disable_jit"]:
            return self._run_disabled(args, kwargs)
        call = self._flatten(args, kwargs, read)
        values, avals = self._read(call, token)
        key = (token, call.structure, *avals)
        try:
            run = self._runners.get(key)
        except TypeError:  # metadata without a hash
            key = (token, (call.spec, call.static_key), *avals)
            run = self._runners.get(key)
        return (run or self._make_runner(key, call, avals))(values)

    _may_be_disabled = False
    """Whether it runs operation by operation under ``config.disable_jit``."""

    def _run_disabled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the function operation by operation, under ``config.disable_jit``."""
        raise NotImplementedError

    def _flatten(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], read: Sequence[Any] = ()
    ) -> FlatCall:
        """Returns the leaves of a call, their structure, and its static values."""
        return FlatCall.read(args, kwargs, (), (), read)

    def _read(self, call: FlatCall, token: Token) -> tuple[Sequence[Any], list[Aval]]:
        """Returns the leaves of a call, converted for a launch, and their avals."""
        raise NotImplementedError

    def _make_runner(self, key: Any, call: FlatCall, avals: Sequence[Aval]) -> Runner:
        """Returns a new runner for such calls, and keeps it in ``_runners`` if it is reusable."""
        raise NotImplementedError
