"""`describe`: a result, an exception or a log record as text that is the same in each process."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

import plugrt
from pjrt.execution.called_functions import Node, Record
from plugrt import Array

_VARYING = re.compile(r"0x[0-9a-f]+|\bid=\d+|\d+\.\d+(e-\d+)? ?(ms|sec|s|seconds)\b|object at \w+")


def normalise(text: str) -> str:
    """Returns a text without addresses and durations."""
    return _VARYING.sub("…", text)


def describe(value: Any) -> str:
    """Returns the visible properties of a value: of an array its bytes, type, place and state."""
    if type(value) is Array:
        return _describe_array(value)
    if isinstance(value, dict):
        items = ", ".join(f"{key!r}: {describe(v)}" for key, v in value.items())
        return f"{type(value).__name__} {{{items}}}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__} [{', '.join(map(describe, value[:]))}]"
    if isinstance(value, Node | Record):
        return f"{type(value).__name__} {describe(vars(value))}"
    if isinstance(value, np.ndarray | np.generic):
        data = np.ascontiguousarray(value).tobytes().hex()
        return f"{type(value).__name__} {value.dtype}{value.shape} {data} {value.flags.writeable}"
    return normalise(f"{type(value).__name__} {value!r}")


def _describe_array(x: Array) -> str:
    stated = f"{x.dtype}{x.shape} weak {x.weak_type} {'committed' if x.committed else 'free'}"
    where = sorted(str(device) for device in x.devices())
    if x.is_deleted():
        return f"Array {stated} {where} deleted"
    with plugrt.transfer_guard("allow"):
        try:
            data = np.ascontiguousarray(np.asarray(x)).tobytes().hex()
        except Exception as error:  # noqa: BLE001  # it is told
            data = describe_error(error)
    return f"Array {stated} {where} {data}"


def describe_error(error: BaseException) -> str:
    """Returns the type and the text of an exception, with its notes and its cause."""
    notes = "".join(f" + {note}" for note in getattr(error, "__notes__", ()))
    text = normalise(f"{type(error).__module__}.{type(error).__qualname__}: {error}{notes}")
    cause = error.__cause__
    return text if cause is None else f"{text} from {describe_error(cause)}"


def outcome_of(function: Callable[[], Any]) -> tuple[str, Any]:
    """Calls it; returns the outcome as text, and the result, None if it raised."""
    try:
        value = function()
        return describe(value), value
    except Exception as error:  # noqa: BLE001  # it is told
        return describe_error(error), None
