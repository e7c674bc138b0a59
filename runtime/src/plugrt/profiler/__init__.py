"""Traces of what the process and its devices do, and what lies in devices' memory.

The functions are those of ``jax.profiler``; `annotate` is JAX's ``TraceAnnotation``, and decorates.
"""

from __future__ import annotations

from plugrt.profiler.annotations import annotate
from plugrt.profiler.memory_profile import device_memory_profile, save_device_memory_profile
from plugrt.profiler.sessions import start_trace, stop_trace, trace

__all__ = [
    "annotate",
    "device_memory_profile",
    "save_device_memory_profile",
    "start_trace",
    "stop_trace",
    "trace",
]
