"""`explain_miss`: why a function is traced again, although it was traced before."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from plugrt.base.bounded_cache import BoundedCache
from plugrt.execution.arrays.arguments import TracedType
from plugrt.frames.traceback_filter import user_frame
from plugrt.interface import TensorType
from plugrt.monitoring.stage_events import logger
from plugrt.settings.declarations import config
from plugrt.settings.options import Token

_REDEFINED = (
    "; but another function defined on the same line was: each time that line runs it defines "
    "a new one, which has no trace yet. Fix: define and jit the function once, outside of the "
    "repeated code"
)
_unseen: BoundedCache[str, weakref.ref[object]] = BoundedCache(1024)
"""The last function not traced before, for each line that defines functions."""
Key = tuple[Any, ...]
"""The key of a trace: settings, structure of the call with static values, and types."""


def explain_miss(function: object, key: Key, known: Iterable[Key], names: Sequence[str]) -> None:
    """Logs the differences of ``key`` from the closest of the ``known`` keys, and the call's place.

    ``names`` are the flat arguments' names. The level is WARNING, as for all messages of
    ``config.explain_cache_misses``.
    """
    frame = user_frame()
    where = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "an unknown line"
    of = _define(function)
    candidates = [_differences(key, other, names) for other in known]
    if not candidates:
        again = _REDEFINED if _is_redefined(function, of) else ""
        logger.warning("TRACING CACHE MISS at %s: never seen function %s%s", where, of, again)
        return
    reasons = min(candidates, key=len)
    lines = "".join(f"\n  * {reason}" for reason in reasons)
    logger.warning(
        "TRACING CACHE MISS at %s: %s was traced before, for calls that differ. From the closest:"
        "%s",
        where,
        of,
        lines or "\n  * nothing: the cached trace was cleared or evicted",
    )


def _is_redefined(function: object, of: str) -> bool:
    """Whether another function of the same name and line was not traced before, either."""
    inner = _unwrap(function)
    if not hasattr(inner, "__code__"):
        return False
    before = _unseen.pop(of, None)
    _unseen.keep(of, weakref.ref(inner))
    return before is not None and before() is not inner


def _unwrap(function: Any) -> object:
    return inspect.unwrap(getattr(function, "func", function))


def _define(function: object) -> str:
    """Returns the function's name, and where it is defined."""
    inner = _unwrap(function)
    name = getattr(inner, "__name__", repr(inner))
    code = getattr(inner, "__code__", None)
    return f"{name} defined at {code.co_filename}:{code.co_firstlineno}" if code else str(name)


def _differences(key: Key, other: Key, names: Sequence[str]) -> list[str]:
    token, head, *types = key
    token_before, head_before, *types_before = other
    found = _settings(token, token_before)
    spec, statics, *rest = head
    spec_before, statics_before, *rest_before = head_before
    if spec != spec_before:
        found.append(f"different input pytree: now {spec}, before {spec_before}")
    found += _statics(dict(statics), dict(statics_before))
    if rest != rest_before:
        found.append("the trace that it is called within: its axes, or whether there is one")
    if len(types) != len(types_before):
        found.append(f"now {len(types)} arrays, before {len(types_before)}")
        return found
    for name, now, before in zip(names, types, types_before, strict=True):
        if now != before:
            found.append(f"at {name}: now {_show(now)}, before {_show(before)}")
    return found


def _settings(token: Token, before: Token) -> list[str]:
    """Returns which settings that affect tracing differ."""
    traced = [f"config.{o.name}" for o in config.declared().values() if o.traced]
    [now], [then] = token.values, before.values
    return [
        f"{name}: now {value!r}, before {other!r}"
        for name, value, other in zip([*traced, "the mesh in the context"], now, then, strict=True)
        if value != other
    ]


def _statics(now: dict[object, object], before: dict[object, object]) -> list[str]:
    return [
        f"static argument {where!r}: now {_value(now, where)}, before {_value(before, where)}"
        for where in {**now, **before}
        if now.get(where) != before.get(where)
    ]


def _value(statics: dict[object, object], where: object) -> str:
    if where not in statics:
        return "left out"
    match statics[where]:
        case (type() as kind, value):  # the form of `static_key` for most values
            return f"{value!r:.60} of type {kind.__name__}"
        case key:
            return f"{key!r:.60}"


def _show(kind: TracedType) -> str:
    shape, dtype, weak, sharding = kind
    divided = f" divided as {sharding.spec!r}" if sharding else ""
    return f"{TensorType(shape, dtype)}{' (a Python scalar)' if weak else ''}{divided}"


Stager = Callable[[Sequence[TracedType]], Any]


def explaining(
    trace: Stager, function: object, head: object, known: Iterable[Key], names: Sequence[str]
) -> Stager:
    """Returns ``trace``, wrapped to log why it is called; see ``config.explain_cache_misses``."""

    def trace_explained(types: Sequence[TracedType]) -> Any:
        key = (config.token().trace, head, *types)
        explain_miss(function, key, list(known), names)
        return trace(types)

    return trace_explained
