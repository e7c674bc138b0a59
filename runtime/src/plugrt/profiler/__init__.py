"""Traces of the process and its devices, and profiles of device memory.

The names are the same as in ``jax.profiler``; `annotate` is `TraceAnnotation` that is also a
decorator. A name that plugrt lacks raises an error with the replacement.
"""

from __future__ import annotations

from typing import NoReturn

from plugrt.profiler.annotations import (
    StepTraceAnnotation,
    TraceAnnotation,
    annotate,
    annotate_function,
)
from plugrt.profiler.memory_profile import device_memory_profile, save_device_memory_profile
from plugrt.profiler.profile_options import ProfileOptions
from plugrt.profiler.sessions import start_trace, stop_trace, trace

__all__ = [
    "ProfileOptions",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate",
    "annotate_function",
    "device_memory_profile",
    "save_device_memory_profile",
    "start_trace",
    "stop_trace",
    "trace",
]

_SERVER = (
    "a trace is recorded by the process itself, with the events of its backends, which a server of "
    "one library would not have: call start_trace and stop_trace, from a thread or a signal handler"
)
_READER = "xprof and jax.profiler.ProfileData read the file that stop_trace returns"
_INSTEAD = {
    **dict.fromkeys(("start_server", "stop_server", "register_subprocess"), _SERVER),
    **dict.fromkeys(("ProfileData", "ProfileEvent", "ProfileLine", "ProfilePlane"), _READER),
    "ProfileSession": "start_trace begins one, and stop_trace ends it and writes the file",
    "export_profile_data": "stop_trace writes the file, and returns its path",
}


def __getattr__(name: str) -> NoReturn:
    text = f"module {__name__!r} has no attribute {name!r}"
    instead = _INSTEAD.get(name)
    raise AttributeError(text if instead is None else f"{text}: {instead}", name=name)
