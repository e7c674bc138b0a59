"""`ProfileOptions`: selects the events of the host and the backends that a trace records."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, fields

from plugrt.errors import ArgumentError, ArgumentTypeError

Option = bool | int | str
_NOT_PASSED_ON = ("raise_error_on_start_failure", "session_id")
_OF_SERVERS = ("duration_ms", "repository_path", "start_timestamp_ns")
"""Attributes of ``jax.profiler.ProfileOptions`` that affect only a profiler server."""


@dataclass(kw_only=True, slots=True)
class ProfileOptions:
    """What `start_trace` records; attributes and defaults are ``jax.profiler.ProfileOptions``'s.

    ``host_tracer_level``: 0 records nothing of the host, 1 the annotations of the program, 2
    plugrt's stages and the backend's important events, 3 all events of the backend.
    ``python_tracer_level``: 1 records calls of Python functions, if the backend can; 0 does not.
    ``enable_hlo_proto``: whether backends add the programs that ran.
    ``include_dataset_ops``: whether backends add the steps of input pipelines.
    ``raise_error_on_start_failure``: whether a backend whose profiler does not start is an error,
    and not a warning.
    ``session_id``: the name of the trace's folder; empty means the time.
    ``advanced_configuration``: options of one backend, such as ``tpu_trace_mode``.
    """

    host_tracer_level: int = 2
    python_tracer_level: int = 1
    enable_hlo_proto: bool = True
    include_dataset_ops: bool = True
    raise_error_on_start_failure: bool = False
    session_id: str = ""
    advanced_configuration: dict[str, Option] = field(default_factory=dict)

    def of_backends(self) -> dict[str, object]:
        """Returns the options for a backend's profiler by name."""
        return {k: v for k, v in asdict(self).items() if k not in _NOT_PASSED_ON}


def read_options(given: object) -> ProfileOptions:
    """Returns checked options from plugrt's, or from an object with attributes such as JAX's.

    Raises `ArgumentTypeError` and `ArgumentError`, which name the option.
    """
    if not hasattr(given, "host_tracer_level"):
        raise ArgumentTypeError(
            f"profiler_options is {given!r:.60}; it takes a plugrt.profiler.ProfileOptions, or "
            "jax.profiler's"
        )
    for name in _OF_SERVERS:
        if getattr(given, name, None):
            raise ArgumentError(
                f"profiler_options.{name} is {getattr(given, name)!r:.60}: only a profiler's "
                "server uses it, and plugrt has none. Leave it as it was; start_trace and "
                "stop_trace are the trace's begin and end"
            )
    values = {
        f.name: getattr(given, f.name) for f in fields(ProfileOptions) if hasattr(given, f.name)
    }
    for name, value in values.items():
        _check(name, value)
    return ProfileOptions(**values)


def _check(name: str, value: object) -> None:
    title = f"profiler_options.{name} is {value!r:.60}"
    if name.endswith("_level"):
        levels = range(4) if name.startswith("host") else range(2)
        if isinstance(value, bool) or not isinstance(value, int) or value not in levels:
            raise ArgumentError(f"{title}; it takes {', '.join(map(str, levels))}")
    elif name == "session_id":
        if not isinstance(value, str) or value in (".", "..") or {os.sep, "/", "\0"} & set(value):
            raise ArgumentError(f"{title}; it takes the name of a folder, without a path")
    elif name == "advanced_configuration":
        if not isinstance(value, dict) or not all(
            isinstance(k, str) and isinstance(v, Option) for k, v in value.items()
        ):
            raise ArgumentError(f"{title}; it takes a dict of names and texts, integers or bools")
    elif not isinstance(value, bool):
        raise ArgumentTypeError(f"{title}; it takes True or False")
