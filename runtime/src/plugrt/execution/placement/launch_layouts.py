"""Layouts of a launch: the arguments' layouts, the requested ones, and the compiled ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from plugrt.errors import InvalidReply, Unimplemented
from plugrt.execution.arrays.arguments import ParameterType
from plugrt.execution.arrays.aval import Aval, is_placed
from plugrt.execution.compilation.buffer_copy import other_layout, require_layouts
from plugrt.execution.placement.chosen_shardings import is_chosen, known_part
from plugrt.execution.placement.launch_shardings import require_shape
from plugrt.execution.placement.placement import AnyLayout, Launch
from plugrt.execution.placement.plan import Plan
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.interface import Executable, Layout, LoadedExecutable, TensorType
from plugrt.interface.memory_layout import AutoLayout


def keep_layouts(launch: Launch, plan: Plan, avals: Sequence[Aval]) -> Launch:
    """Returns the launch with the own layouts of arguments that need not be moved.

    Results that are arguments keep their layouts.
    """
    found = tuple(
        aval.layout if aval.layout and _lies_so(aval, target) else None
        for aval, target in zip(avals, launch.in_shardings, strict=True)
    )
    if not any(found):
        return launch
    passed = tuple(found[i] if origin == "argument" else None for origin, i in plan.sources)
    return replace(launch, in_layouts=found, out_layouts=passed)


def _lies_so(aval: Aval, target: Sharding) -> bool:
    return is_placed(aval) and aval.sharding.is_equivalent_to(target, aval.ndim)


def part_type(sharding: Sharding, whole: TensorType) -> TensorType:
    """Returns the type of an array's part on one device; layouts refer to parts.

    If the compiler chooses the sharding, the part is not known: returns the whole array's type.
    """
    if is_chosen(sharding):
        return whole
    return TensorType(sharding.shard_shape(whole.shape), whole.dtype)


def make_concrete(
    layout: AnyLayout, launch: Launch, sharding: Sharding, whole: TensorType
) -> AnyLayout:
    """Converts a requested layout to the form of launches: None for the default.

    Raises `InvalidArgument` for a layout of another rank, and `Unimplemented` for a layout that the
    backend lacks, and for all but AUTO if no devices are known.
    """
    if isinstance(layout, AutoLayout):
        for device in launch.devices[:1]:
            require_layouts(device, f"a layout of {whole} that the compiler chooses")
        return layout
    if layout is None:
        return None
    if not launch.devices:
        raise Unimplemented(
            f"{layout!r} of {whole} over a mesh without devices (AbstractMesh): layouts belong to "
            "devices. Name a Mesh, or pass an array that is committed to devices"
        )
    return other_layout(launch.devices[0], part_type(sharding, whole), layout)


def lay_out_results(
    launch: Launch, asked: Sequence[AnyLayout], output_types: Sequence[TensorType]
) -> Launch:
    """Returns the launch with the requested layouts of its results.

    Raises `ShapeError` for a sharding that does not divide a result; other errors as for
    `make_concrete`.
    """
    if not any(asked):
        return replace(launch, out_layouts=())
    given = []
    for i, (sharding, whole) in enumerate(zip(launch.out_shardings, output_types, strict=True)):
        if known := known_part(sharding):
            require_shape(known, whole.shape, partial("result {}".format, i))
        given.append(make_concrete(asked[i], launch, sharding, whole))
    return replace(launch, out_layouts=tuple(given) if any(given) else ())


def settle_layouts(
    launch: Launch,
    plan: Plan,
    types: Sequence[ParameterType],
    output_types: Sequence[TensorType],
    loaded: LoadedExecutable | None,
) -> Launch:
    """Returns a launch, whose shardings are known, with the layouts of its program.

    Reads back the layouts that the compiler chose. Raises `InvalidReply` if the compiler gave
    another layout than requested.
    """
    if loaded is None or not launch.names_layouts:
        return launch
    settle = _Settling(launch, plan)
    ins = [launch.in_layout(i) for i in range(len(types))]
    outs = [launch.out_layout(i) for i in range(len(output_types))]
    parameters, results = settle.read(loaded.executable)
    for layout, i in zip(parameters, plan.kept, strict=False):
        part = part_type(launch.in_shardings[i], TensorType(*types[i][:2]))
        ins[i] = settle(part, ins[i], layout, partial(plan.describe, i))
    for output, (origin, i) in enumerate(plan.sources):
        if origin == "result":
            part = part_type(launch.out_shardings[output], output_types[output])
            describe = partial("result {}".format, output)
            outs[output] = settle(part, outs[output], results[i], describe)
    return replace(launch, in_layouts=tuple(ins), out_layouts=tuple(outs))


def read_layouts(
    launch: Launch,
    plan: Plan,
    types: Sequence[ParameterType],
    output_types: Sequence[TensorType],
    loaded: LoadedExecutable,
) -> Launch:
    """Returns the launch of a loaded or saved program with the layouts that it states."""
    unsaid = replace(
        launch, in_layouts=(None,) * len(types), out_layouts=(None,) * len(plan.sources)
    )
    return settle_layouts(unsaid, plan, types, output_types, loaded)


def require_chosen(layout: AnyLayout) -> Layout | None:
    """Returns a layout of a compiled program's launch; raises if it is still AUTO."""
    if isinstance(layout, AutoLayout):
        raise AssertionError("the compiler's choice was not read back")
    return layout


class _Settling:
    """Compares the requested layouts with the layouts of the compiled program."""

    def __init__(self, launch: Launch, plan: Plan) -> None:
        self._client, self._name = launch.client, plan.name

    def read(self, executable: Executable) -> tuple[Sequence[Layout], Sequence[Layout]]:
        """Returns the layouts of the parameters and of the results."""
        try:
            return executable.parameter_layouts(), executable.output_layouts()
        except Unimplemented as error:
            raise Unimplemented(
                f"{self._name!r} with layouts: {self._client.backend_name} does not state those "
                f"that it compiled: {error.message}"
            ) from error

    def __call__(
        self,
        tensor_type: TensorType,
        asked: AnyLayout,
        found: Layout,
        describe: Callable[[], str],
    ) -> Layout | None:
        if isinstance(asked, Layout) and not asked.is_met_by(found):
            raise InvalidReply(
                f"{self._client.backend_name} compiled {describe()} of {self._name!r} as "
                f"{found.text}; {asked.text} was requested"
            )
        default = self._client.default_layout(tensor_type)
        return None if default.is_met_by(found) else found
