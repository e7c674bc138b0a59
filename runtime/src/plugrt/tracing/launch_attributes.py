"""`entry_attributes`: a launch's layouts and memories as attributes of its program."""

from __future__ import annotations

from plugrt.execution.placement import AnyLayout, Launch
from plugrt.execution.plan import Plan
from plugrt.interface import Layout
from plugrt.stablehlo.entry_attributes import LAYOUT, MEMORY, Attributes, EntryAttributes


def entry_attributes(plan: Plan, launch: Launch) -> EntryAttributes | None:
    """Returns the attributes of a program's parameters and results; None where there are none."""
    parameters = [
        _attributes(launch.in_layout(i), launch.in_shardings[i].memory_kind) for i in plan.kept
    ]
    results = [
        _attributes(launch.out_layout(output), launch.out_shardings[output].memory_kind)
        for output, (origin, _) in enumerate(plan.sources)
        if origin == "result"
    ]
    if not any(parameters) and not any(results):
        return None
    return EntryAttributes((*parameters, *[()] * plan.fed), tuple(results))


def _attributes(layout: AnyLayout, memory_kind: str | None) -> Attributes:
    found = []
    if layout is not None:
        found.append((LAYOUT, layout.text if isinstance(layout, Layout) else "auto"))
    if memory_kind is not None:
        found.append((MEMORY, memory_kind))
    return tuple(found)
