"""Shape, dtype, sharding and memory of the results of a launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import Protocol

from plugrt.errors import Internal, NotFound, Unimplemented
from plugrt.execution.arrays.aval import ArrayAval, intern_aval
from plugrt.execution.placement.placement import Launch
from plugrt.execution.placement.plan import Plan
from plugrt.interface import Layout, LoadedExecutable, TensorType


class TracedResults(Protocol):
    """The facts about a traced function's flat results."""

    @property
    def output_types(self) -> Sequence[TensorType]: ...
    @property
    def weak_outputs(self) -> Sequence[bool]: ...


def result_avals(traced: TracedResults, launch: Launch) -> list[ArrayAval]:
    """Returns the aval of each flat result, a whole array over all devices.

    Before compilation the layouts that the compiler chooses are unknown, and are None.
    """
    return [
        intern_aval(
            sharding.whole_shape(t.shape) if launch.of_parts else t.shape,
            t.dtype,
            sharding,
            launch.committed,
            weak,
            layout if isinstance(layout, Layout) else None,
        )
        for t, sharding, weak, layout in zip(
            traced.output_types,
            launch.out_shardings,
            traced.weak_outputs,
            launch.out_layouts or repeat(None, len(traced.output_types)),
            strict=True,
        )
    ]


@contextmanager
def explain_refusal(plan: Plan, launch: Launch) -> Iterator[None]:
    """Raises `Unimplemented` if a library does not know the custom call that places a result.

    XLA's CPU library of 2025 does not: it reports `NotFound`, and its partitioner reports, as
    `Unimplemented` or `Internal`, that a call with a side effect cannot be partitioned.
    """
    try:
        yield
    except (NotFound, Unimplemented, Internal) as error:
        asked = _find_asked(plan, launch)
        if not asked:
            raise
        # Imported here: programs that request no memory are compiled without jaxlib, too.
        from plugrt.stablehlo.entry_attributes import PLACE

        if PLACE not in error.message:
            raise
        raise _refusal(plan, launch, *asked[0], "moves no results to memories") from error


def check_memories(plan: Plan, launch: Launch, loaded: LoadedExecutable) -> None:
    """Raises `Unimplemented` if a result is not in the requested memory."""
    asked = _find_asked(plan, launch)
    if not asked:
        return
    try:
        found = list(loaded.executable.output_memory_kinds)
    except Unimplemented:
        found = []
    for i, kind in asked:
        if i >= len(found) or found[i] != kind:
            gave = f"compiled it for {found[i]!r}" if found else "does not state any"
            raise _refusal(plan, launch, i, kind, gave)


def _find_asked(plan: Plan, launch: Launch) -> list[tuple[int, str]]:
    return [
        (i, sharding.memory_kind)
        for (origin, i), sharding in zip(plan.sources, launch.out_shardings, strict=True)
        if origin == "result" and sharding.memory_kind is not None
    ]


def _refusal(plan: Plan, launch: Launch, i: int, kind: str, gave: str) -> Unimplemented:
    return Unimplemented(
        f"result {i} of {plan.name!r} is to be in the memory {kind!r}; "
        f"{launch.client.backend_name} {gave}. device_put the result there instead"
    )
