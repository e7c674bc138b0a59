"""`Compiled`: a program that a backend compiled, with the facts that the SDK read from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from plugrt.interface import CompileOptions, Program, TensorType

_APART = ("device_assignment", "env_overrides", "encoded")

Handle = Any
"""The backend's own object for an array on a device; opaque to plugrt."""

Launch = Callable[..., Sequence[Sequence[Handle]]]
"""Maps ``arguments[parameter][device]`` to ``results[result][device]``.

Where the backend declares donation it has a second parameter (`Backend.donated`).
"""


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A compiled program, the argument of methods of `Backend` such as `cost_analysis`."""

    program: Program
    options: CompileOptions
    launch: Launch
    """What `Backend.compile` or `Backend.deserialize` returned, with any attributes set there."""
    input_types: tuple[TensorType, ...]
    """The parameters, on one device."""
    output_types: tuple[TensorType, ...]
    """The results, on one device."""
    donated: frozenset[int] = frozenset()
    """The parameters whose handles launches may consume."""
    output_memory_kinds: tuple[str, ...] = ()
    """The memory that each result is in."""


def settings_of(options: CompileOptions) -> dict[str, Any]:
    """Returns the options that a compiled program depends on, by name.

    Excludes its devices, XLA's own options, and the serialised proto, which repeats the options.
    """
    names = (field.name for field in fields(CompileOptions))
    return {name: getattr(options, name) for name in names if name not in _APART}
