"""`CallBase`: how a jitted function finds the runner of a call, in Python or in the core."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from plugrt.execution.arrays.array import Array
from plugrt.execution.trees import tree
from plugrt.frames.traceback_filter import filter_traceback
from plugrt.native.native_core import core
from plugrt.settings.declarations import config
from plugrt.tracing.static_args import static_key
from plugrt.tracing.trace import _state, current_trace

_token = config.token


def _filter_outside_traces(error: Exception) -> None:
    if current_trace() is None:
        filter_traceback(error)


class PythonCalls:
    """Calls with arrays alone find their runner by one look-up; others go through ``_general``."""

    _find: Callable[[Any], Any]
    _general: Callable[[tuple[Any, ...], dict[str, Any]], Any]
    _runners: dict[Any, Any]

    def _set_statics(self, numbers: frozenset[int], names: frozenset[str]) -> None:
        """Takes which arguments are static, for the core."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:  # costs nothing unless something is raised
            if kwargs or _state.trace is not None:
                return self._general(args, kwargs)
            try:
                if len(args) == 2:  # the usual number, unrolled: a tenth less
                    first, second = args
                    run = self._find((_token(), first._signature, second._signature))
                elif len(args) == 1:
                    [first] = args
                    if type(first) is dict:  # the usual container: `_find_short_call`, unrolled
                        first = {**first}
                        leaves = [*first.values()]
                        run = None
                        if leaves and type(leaves[0]) is type(leaves[-1]) is Array:
                            avals = [x._signature for x in leaves]
                            run = self._find((_token(), ((*first,),), (), *avals))
                            args = args if run is None else tuple(leaves)
                    else:  # asked so, what is no array raises nothing
                        run = self._find((_token(), getattr(first, "_signature", None)))
                else:
                    run = self._find((_token(), *[x._signature for x in args]))
            except AttributeError:  # not all are arrays
                run = None
            return self._general(args, kwargs) if run is None else run(args)
        except Exception as error:
            _filter_outside_traces(error)
            raise


CallBase = PythonCalls
if core is not None and not TYPE_CHECKING:

    class CoreCalls(core.Calls):
        """The core's calls; those that it leaves to Python are `PythonCalls`'."""

        _call_in_python = PythonCalls.__call__

    CallBase = CoreCalls
    core.set_call_hooks(_state, _filter_outside_traces, static_key, tree.registered)
"""The first base of `plugrt.transforms.cached_function.CachedFunction`: the core's looks up the
runners of calls with arrays, host values and static ones, and leaves others to `PythonCalls`."""
