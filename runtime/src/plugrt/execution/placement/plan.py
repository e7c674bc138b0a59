"""`Plan`: maps the arguments and outputs of a call to an executable's."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy.typing as npt

from plugrt.execution.arrays.sharers import Life
from plugrt.interface import Client

Source = tuple[Literal["result", "argument", "constant", "literal"], int]
"""The source of an output: the executable, an argument, a constant, or the host."""


@dataclass(frozen=True)
class Plan:
    """Maps the flat arguments and outputs of a call to an executable's.

    ``constants`` are each an `Array` or a `HostConstant` that the function captured and needs (or a
    tracer, if it was traced within another trace). The executable's parameters are the arguments
    numbered in ``kept`` (unused ones are not passed), followed by the first ``fed`` of the
    constants. ``donated`` numbers the arguments whose memory the executable consumes, ``unpaired``
    the donated ones whose size equals no whole result's; their parts over several devices may match
    one. ``literals`` are outputs with known values: each call puts them again, so that no two
    results share memory. With ``acts`` the program has side effects and is always executed.
    ``reads`` are the `Life` objects of arrays whose values were read during tracing.
    """

    name: str
    kept: tuple[int, ...]
    sources: tuple[Source, ...]
    constants: tuple[Any, ...] = ()
    fed: int = 0
    literals: tuple[npt.NDArray[Any], ...] = ()
    donated: tuple[int, ...] = ()
    unpaired: tuple[int, ...] = ()
    argument_names: tuple[str, ...] = field(default=())
    acts: bool = False
    reads: tuple[Life, ...] = ()

    @cached_property
    def is_trivial(self) -> bool:
        """Whether there is nothing to execute: no computed output and no side effect."""
        return not self.acts and ("result", 0) not in self.sources

    @cached_property
    def passed(self) -> tuple[int, ...]:
        """The arguments that are results as well."""
        return tuple({i: None for origin, i in self.sources if origin == "argument"})

    @cached_property
    def needed(self) -> tuple[int, ...]:
        """The arguments that must be on the devices: those kept, then those passed through."""
        return tuple(dict.fromkeys((*self.kept, *self.passed)))

    def describe(self, i: int) -> str:
        """Returns a name for argument ``i`` in messages."""
        names = self.argument_names
        return f"argument {names[i] if i < len(names) and names[i] else i}"


def is_tuple_program(client: Client, count: int) -> bool:
    """Whether a program with ``count`` parameters is compiled with one tuple parameter, as in JAX.

    A backend states the limit by the capability ``tuple_arguments_above``, or by an attribute of
    that name, a non-negative integer. Calls pass their arguments one by one in either case.
    """
    bound = client.capabilities.tuple_arguments_above
    if bound is None:
        stated = client.attributes.get("tuple_arguments_above")
        bound = stated if type(stated) is int and stated >= 0 else None
    return bound is not None and count > bound
