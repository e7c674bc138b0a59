"""`FormatPrefix`: ``in_shardings`` and ``out_shardings`` of `jit`, with layouts and memories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from plugrt.errors import ArgumentTypeError, InvalidArgument, StructureError
from plugrt.execution.arrays.arguments import TracedType
from plugrt.execution.arrays.aval import Aval, is_placed
from plugrt.execution.launches.flat_calls import FlatCall
from plugrt.execution.placement.launch_layouts import lay_out_results, make_concrete, part_type
from plugrt.execution.placement.launch_shardings import AskedShardings
from plugrt.execution.placement.placement import AnyLayout, Launch
from plugrt.execution.placement.specs_in_context import name_in_context
from plugrt.execution.shardings import mesh_context
from plugrt.execution.shardings.format import Format
from plugrt.execution.shardings.named_sharding import NamedSharding, explicit_part
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.sharding_base import Sharding, SingleDeviceSharding
from plugrt.execution.shardings.tiled_sharding import TiledSharding
from plugrt.execution.trees import pytrees
from plugrt.execution.trees.tree_prefixes import spread_prefix
from plugrt.interface import Device, Layout
from plugrt.interface.memory_layout import AutoLayout
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.staged import Staged
from plugrt.tracing.trace import current_trace
from plugrt.tracing.tracer import Tracer
from plugrt.transforms.stated_places import stated_layout


class FormatPrefix:
    """A pytree prefix of shardings, specs, Formats and None, for arguments or results."""

    __slots__ = ("_leaves", "_none_is_whole", "_prefix", "_what", "key")

    def __init__(self, prefix: Any, what: str, none_is_whole: bool = False) -> None:
        """In a mesh None is ``PartitionSpec()`` if ``none_is_whole``.

        Raises `ArgumentTypeError` for other leaves, and `InvalidArgument` for a layout alone and
        for ``in_shardings`` that are partial.
        """
        found, spec = pytrees.flatten_with_none(prefix)
        self._what, self._prefix = what, pytrees.unflatten(spec, found)
        self._none_is_whole = none_is_whole
        self._leaves = [_read(leaf, what) for leaf in found]
        self.key = (tuple(self._leaves), spec)
        """Equal for equal prefixes."""
        for sharding in self.shardings if what == "in_shardings" else ():
            if isinstance(sharding, NamedSharding):
                sharding.require_whole()

    @property
    def shardings(self) -> list[Sharding]:
        """The shardings among the leaves."""
        return [s for s in map(_sharding_of, self._leaves) if s]

    def in_context(self) -> FormatPrefix:
        """Returns the prefix with each bare `PartitionSpec` over the mesh in the context."""
        leaves: list[object] = [*self._leaves]
        if self._none_is_whole and mesh_context.current().specs is not None:
            leaves = [PartitionSpec() if leaf is None else leaf for leaf in leaves]
        if not any(isinstance(leaf, PartitionSpec) for leaf in leaves):
            return self
        named = [name_in_context(leaf, f"jit's {self._what}") for leaf in leaves]
        return FormatPrefix(pytrees.unflatten(self.key[1], named), self._what)

    @property
    def is_plain(self) -> bool:
        """Whether it states only devices: no layout, memory kind or mesh."""
        return not any(map(_has_layout, self._leaves))

    @property
    def has_sums(self) -> bool:
        """Whether a spec has unreduced axes: each device then holds a term of a sum."""
        specs = [_spec_of(leaf) for leaf in self._leaves]
        return any(spec.unreduced for spec in specs if spec is not None)

    @property
    def is_none(self) -> bool:
        """Whether it is None, which fits arguments and results of any structure."""
        return self._prefix is None and not self._none_is_whole

    def spread(self, full: object, of: str) -> list[Any]:
        """Returns the Format of each leaf of a pytree; `StructureError` if this is no prefix."""
        spread = spread_prefix(self._prefix, full, f"jit {self._what}", of)
        return [_read(leaf, self._what) for leaf in spread]


_Leaf = Format | PartitionSpec | None


def _has_layout(leaf: _Leaf) -> bool:
    if isinstance(leaf, PartitionSpec):
        return True
    sharding = leaf.sharding if leaf else None
    if sharding and (sharding.memory_kind is not None or isinstance(sharding, TiledSharding)):
        return True
    return bool(leaf and leaf.layout)


def ask_shardings(
    bound: FlatCall, count: int, out: object, prefixes: tuple[FormatPrefix, FormatPrefix]
) -> AskedShardings | None:
    """Returns the requested sharding of each argument and each result; None without any.

    ``count`` is the number of flat arguments; ``out`` is a pytree in the form of the results.
    Raises `StructureError` if the prefixes do not match them.
    """
    before, after = prefixes
    asked = spread_arguments(before, bound, count)
    outs = after.spread(out, "the results")
    if not (before.shardings or after.shardings):
        return None
    return AskedShardings(tuple(asked), tuple(map(_sharding_of, outs)))


def divide_types(
    before: FormatPrefix, bound: FlatCall, types: Sequence[TracedType]
) -> list[TracedType]:
    """Returns types of arguments, with the prefix's shardings that are over Explicit axes."""
    asked = spread_arguments(before.in_context(), bound, len(types))
    return [
        (*kind[:3], explicit_part(one.mesh, one.spec, len(kind[0])))
        if isinstance(one, NamedSharding) and one.mesh.explicit_axes
        else kind
        for kind, one in zip(types, asked, strict=True)
    ]


def spread_arguments(before: FormatPrefix, bound: FlatCall, count: int) -> list[Sharding | None]:
    """Returns the sharding of each of ``count`` flat arguments, from a prefix.

    Raises `StructureError` if it is no prefix of the arguments, and for keywords.
    """
    args, keywords = bound.dynamic
    if keywords and before.shardings:
        raise StructureError(
            "jit with in_shardings takes no keywords, since they are for the positional arguments; "
            f"got {', '.join(f'{name}=' for name in keywords)}"
        )
    which = "the positional arguments"
    ins = before.spread(args, f"{which} that are not static" if bound.statics else which)
    return [*map(_sharding_of, ins), *[None] * (count - len(ins))]


def constrain_arguments(
    before: FormatPrefix, bound: FlatCall, tracers: Sequence[Tracer], title: str
) -> list[Tracer]:
    """Constrains the arguments of a call within a traced function to the ``in_shardings``."""
    asked = spread_arguments(before.in_context(), bound, len(tracers))
    return _constrain(tracers, asked, f"in_shardings of jitted {title!r}")


def constrain_results(after: FormatPrefix, results: object, title: str) -> Any:
    """Constrains the results of a call within a traced function to the ``out_shardings``."""
    leaves, spec = pytrees.flatten(results)
    asked = after.in_context().spread(results, "the results")
    what = f"out_shardings of jitted {title!r}"
    return pytrees.unflatten(spec, _constrain(leaves, [*map(_sharding_of, asked)], what))


def constrain_sums(after: FormatPrefix, results: object, title: str) -> Any:
    """Constrains only the results whose ``out_shardings`` have unreduced axes.

    Without a constraint Shardy replicates them, as if each whole value were a term of the sum.
    """
    if current_trace() is None:  # under disable_jit
        return results
    leaves, spec = pytrees.flatten(results)
    asked = [*map(_sharding_of, after.in_context().spread(results, "the results"))]
    summed = [one if (own := _spec_of(one)) and own.unreduced else None for one in asked]
    values = [as_tracer(leaf) for leaf in leaves]
    what = f"out_shardings of jitted {title!r}"
    return pytrees.unflatten(spec, _constrain(values, summed, what))


def _spec_of(leaf: object) -> PartitionSpec | None:
    sharding = leaf.sharding if isinstance(leaf, Format) else leaf
    if isinstance(sharding, NamedSharding):
        return sharding.spec
    return sharding if isinstance(sharding, PartitionSpec) else None


def _constrain(
    values: Sequence[Tracer], shardings: Sequence[Sharding | None], what: str
) -> list[Tracer]:
    return [
        value if sharding is None else value.constrained(sharding, what)
        for value, sharding in zip(values, shardings, strict=True)
    ]


def _sharding_of(leaf: _Leaf) -> Sharding | None:
    return leaf.sharding if isinstance(leaf, Format) else None


def _read(leaf: object, what: str) -> _Leaf:
    if isinstance(leaf, PartitionSpec):
        return leaf
    if leaf is None or isinstance(leaf, Format):
        return leaf
    if isinstance(leaf, Sharding):
        return Format(None, leaf)
    if isinstance(leaf, Layout | AutoLayout):
        raise InvalidArgument(
            f"jit's {what} takes a layout within a Format, which says where as well: "
            f"Format({leaf!r}, sharding); got {leaf!r} alone"
        )
    cure = f": write SingleDeviceSharding({leaf!r})" if isinstance(leaf, Device) else ""
    raise ArgumentTypeError(f"jit's {what} takes shardings and specs; got {leaf!r:.80}{cure}")


def place_formats(
    launch: Launch,
    bound: FlatCall,
    avals: Sequence[Aval],
    out: object,
    staged: Staged,
    prefixes: tuple[FormatPrefix, FormatPrefix],
) -> Launch:
    """Returns the launch with the layouts and memories in ``in_shardings`` and ``out_shardings``.

    ``out`` is a pytree in the form of the results. Raises `InvalidArgument` for an argument that is
    committed in another layout.
    """
    before, after = prefixes
    if before.is_plain and after.is_plain:
        return launch
    ins = before.spread(bound.dynamic[0], "the positional arguments")
    if len(ins) < len(avals) and not before.is_plain:
        raise StructureError("jit's in_shardings with layouts or memories takes no keywords")
    ins = [*ins, *[None] * (len(avals) - len(ins))]
    outs = after.spread(out, "the results")
    if launch.whole is None:  # else the shardings with which the program is partitioned
        [device] = launch.devices
        launch = replace(
            launch,
            in_shardings=_make_memory_shardings(ins, launch.in_shardings, device),
            out_shardings=_make_memory_shardings(outs, launch.out_shardings, device),
        )
    found = [
        _argument_layout(wanted, aval, launch, i, leaf, partial(staged.plan.describe, i))
        for i, (wanted, aval, leaf) in enumerate(zip(ins, avals, bound.leaves, strict=True))
    ]
    launch = lay_out_results(
        launch, [wanted.layout if wanted else None for wanted in outs], staged.output_types
    )
    launch = replace(launch, in_layouts=tuple(found) if any(found) else ())
    _refuse_donations(launch, staged)
    return launch


def _refuse_donations(launch: Launch, staged: Staged) -> None:
    """Raises `InvalidArgument` if the compiler chooses the layout on only one side of a donation.

    The sides are a donated argument and the result that may reuse its memory: as in JAX, the first
    result with parts of the same type. Under a sharding that the compiler chooses, the part is the
    whole array.
    """
    if not any(isinstance(one, AutoLayout) for one in (*launch.in_layouts, *launch.out_layouts)):
        return
    donated = {
        i: part_type(launch.in_shardings[i], staged.parameters[i].type) for i in staged.plan.donated
    }
    for number, whole in enumerate(staged.output_types):
        part = part_type(launch.out_shardings[number], whole)
        i = next((i for i, given in donated.items() if given == part), None)
        if i is None:
            continue
        del donated[i]
        layouts = {"in_shardings": launch.in_layout(i), "out_shardings": launch.out_layout(number)}
        chosen = [name for name, one in layouts.items() if isinstance(one, AutoLayout)]
        if len(chosen) == 1:
            [other] = layouts.keys() - chosen
            raise InvalidArgument(
                f"{staged.plan.describe(i)} is donated, and result {number} is to have its memory: "
                f"{chosen[0]} leaves the layout to the compiler (Layout.AUTO), {other} does not. "
                f"Did you mean to have Layout.AUTO in {other} as well?"
            )


def _make_memory_shardings(
    formats: Sequence[Format | None], shardings: Sequence[Sharding], device: Device
) -> tuple[Sharding, ...]:
    return tuple(
        SingleDeviceSharding(device, memory_kind=wanted.sharding.memory_kind)
        if wanted and wanted.sharding and wanted.sharding.memory_kind
        else sharding
        for wanted, sharding in zip(formats, shardings, strict=True)
    )


def _argument_layout(
    wanted: Format | None,
    aval: Aval,
    launch: Launch,
    i: int,
    leaf: object,
    describe: Callable[[], str],
) -> AnyLayout:
    """Returns the layout for an argument: the one requested, else its present one."""
    if wanted is None or wanted.layout is None:
        return launch.in_layout(i)
    sharding = launch.in_shardings[i]
    asked = make_concrete(wanted.layout, launch, sharding, aval.tensor_type)
    if is_placed(aval) and aval.committed and asked != aval.layout:
        if isinstance(asked, AutoLayout):
            if stated_layout(leaf) is None:
                return asked
            raise InvalidArgument(
                f"{describe()} is an array that has a layout already, or a struct with a layout, "
                "and in_shardings leaves its layout to the compiler (Layout.AUTO): lower and "
                "compile for a plugrt.ShapeDtypeStruct without one, and put the arrays to "
                "compiled.input_formats"
            )
        if not _is_met_by(asked, aval.layout):
            default = launch.client.default_layout(part_type(aval.sharding, aval.tensor_type))
            lies = aval.layout or default
            raise InvalidArgument(
                f"{describe()} has the layout {lies}; in_shardings requests {wanted.layout}. "
                "device_put it to that Format first, or leave its layout out of in_shardings"
            )
    return asked


def _is_met_by(one: AnyLayout, other: Layout | None) -> bool:
    return isinstance(one, Layout) and other is not None and one.is_met_by(other)
