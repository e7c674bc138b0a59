"""How the arguments of a loaded program must lie in memory, and how its results do."""

from __future__ import annotations

from plugrt.execution.launches.loaded_program import LoadedProgram
from plugrt.execution.placement.launch_layouts import require_chosen
from plugrt.execution.placement.placement import AnyLayout, Launch
from plugrt.execution.shardings.format import Format
from plugrt.interface import Layout, TensorType


def argument_formats(program: LoadedProgram) -> list[Format]:
    """Returns how each flat argument must lie; without a layout those that are not needed."""
    launch, needed = program.launch, set(program.plan.needed)
    return [
        Format(_spell_out(launch, launch.in_layout(i), TensorType(*types[:2])), sharding)
        if i in needed
        else Format(None, sharding)
        for i, (types, sharding) in enumerate(zip(program.types, launch.in_shardings, strict=True))
    ]


def result_formats(program: LoadedProgram) -> list[Format]:
    """Returns how each flat result lies."""
    return [
        Format(_spell_out(program.launch, s.layout, s.tensor_type), s.sharding)
        for s in program.outputs
    ]


def _spell_out(launch: Launch, layout: AnyLayout, tensor_type: TensorType) -> Layout | None:
    """Returns a layout, also the default one; None where the backend has none to name."""
    if not launch.client.capabilities.layouts:
        return None
    return require_chosen(layout) or launch.client.default_layout(tensor_type)
