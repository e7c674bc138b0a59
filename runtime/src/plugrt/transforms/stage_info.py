"""`StageInfo` and `CompiledInfo`: arguments and results of stages and compiled functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from plugrt.execution.arrays.aval import Aval
from plugrt.execution.launches.compiled import CompiledCall
from plugrt.execution.launches.float_checks import Rerun
from plugrt.execution.launches.loaded_program import LoadedProgram
from plugrt.execution.placement.launch_layouts import part_type, require_chosen
from plugrt.execution.placement.placement import AnyLayout, Launch
from plugrt.execution.shardings.format import Format
from plugrt.execution.trees import pytrees
from plugrt.execution.trees.pytrees import PyTreeSpec
from plugrt.interface import Device, Layout, TensorType
from plugrt.transforms.shape_dtype_struct import ShapeDtypeStruct, struct_of

if TYPE_CHECKING:  # it needs jaxlib; saved functions do not
    from plugrt.tracing.staged import Staged


@dataclass(frozen=True, slots=True)
class ArgInfo:
    """One array among the arguments of a traced function (``jax.stages.ArgInfo``)."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    donated: bool
    """Whether the program may reuse the argument's memory."""


class TracedFunction(Protocol):
    """The attributes of a `Traced` that these classes need."""

    @property
    def staged(self) -> Staged: ...
    @property
    def avals(self) -> tuple[Aval, ...]: ...
    @property
    def device(self) -> Device | None:
        """The option ``device`` of `jit`."""

    @property
    def _in_tree(self) -> PyTreeSpec: ...
    @property
    def _rerun(self) -> Rerun | None:
        """A function that repeats a call operation by operation, for the debug checks."""

    def _out_info(self, launch: Launch | None = None) -> Any:
        """Returns the results as a pytree of `ShapeDtypeStruct`, with a launch's shardings."""


def _argument_struct(aval: Aval) -> ShapeDtypeStruct:
    known = struct_of(aval)
    if aval.committed:
        return known
    return ShapeDtypeStruct(known.shape, known.dtype, weak_type=known.weak_type)


class StageInfo:
    """Arguments and results of a function that is traced, lowered or compiled.

    The names are the same as in ``jax.stages``; shapes and dtypes are `plugrt.ShapeDtypeStruct`,
    where JAX has ``ShapedArray``. Excludes static arguments.
    """

    @property
    def _stage(self) -> TracedFunction:
        raise NotImplementedError

    @property
    def in_tree(self) -> PyTreeSpec:
        """The structure of ``(args, kwargs)``."""
        return self._stage._in_tree

    @property
    def out_tree(self) -> PyTreeSpec:
        """The structure of the results."""
        return self._stage.staged.out_tree

    @property
    def in_avals(self) -> Any:
        """Each argument as a `ShapeDtypeStruct`, as the pytree ``(args, kwargs)``.

        Those that were committed to devices have their shardings; over Explicit axes, all have
        the shardings in their types.
        """
        parameters = self._stage.staged.parameters
        structs = map(_argument_struct, self._stage.avals)
        typed = [
            struct.update(sharding=p.sharding) if p.sharding else struct
            for struct, p in zip(structs, parameters, strict=True)
        ]
        return pytrees.unflatten(self.in_tree, typed)

    @property
    def args_info(self) -> Any:
        """Shape, dtype and donation of each argument, as the pytree ``(args, kwargs)``."""
        types = [aval.tensor_type for aval in self._stage.avals]
        donated = [parameter.donated for parameter in self._stage.staged.parameters]
        infos = [ArgInfo(t.shape, t.dtype, d) for t, d in zip(types, donated, strict=True)]
        return pytrees.unflatten(self.in_tree, infos)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Which of the flat arguments are donated."""
        parameters = self._stage.staged.parameters
        return tuple(i for i, parameter in enumerate(parameters) if parameter.donated)

    @property
    def out_info(self) -> Any:
        """The results as a pytree of `ShapeDtypeStruct`."""
        return self._stage._out_info()


class CompiledInfo(CompiledCall):
    """Arguments and results of a compiled function, traced or loaded."""

    @property
    def _known(self) -> LoadedProgram:
        self._require_one()
        return self._program

    @property
    def in_tree(self) -> PyTreeSpec:
        """The structure of ``(args, kwargs)``."""
        assert self._in_tree is not None  # as for a program given as StableHLO
        return self._in_tree

    @property
    def out_tree(self) -> PyTreeSpec:
        """The structure of the results."""
        return self._out_tree

    @property
    def in_avals(self) -> Any:
        """Each argument as a `ShapeDtypeStruct`, as the pytree ``(args, kwargs)``."""
        self._require_one()
        structs = [ShapeDtypeStruct(s, dtype, None, weak) for s, dtype, weak in self._types or ()]
        return pytrees.unflatten(self.in_tree, structs)

    @property
    def out_info(self) -> Any:
        """The results as a pytree of `ShapeDtypeStruct`, with their shardings and layouts."""
        return pytrees.unflatten(self.out_tree, [*map(struct_of, self._known.outputs)])

    @property
    def input_shardings(self) -> Any:
        """The sharding of each argument, as the pytree ``(args, kwargs)``."""
        return pytrees.unflatten(self.in_tree, self._known.launch.in_shardings)

    @property
    def input_formats(self) -> Any:
        """The required sharding and layout of each argument, a `Format`, as ``(args, kwargs)``.

        Includes the layouts that the compiler chose. An argument that the program does not need, or
        on a backend without layouts, has no layout. As in JAX.
        """
        return pytrees.unflatten(self.in_tree, argument_formats(self._known))

    @property
    def output_formats(self) -> Any:
        """The sharding and layout of each result, a pytree of `Format`. As in JAX."""
        return pytrees.unflatten(self.out_tree, result_formats(self._known))

    @property
    def output_shardings(self) -> Any:
        """The sharding of each result, as a pytree."""
        return pytrees.unflatten(self.out_tree, self._known.launch.out_shardings)


def argument_formats(program: LoadedProgram) -> list[Format]:
    """Returns the Format of each flat argument; arguments that are not needed have no layout."""
    launch, needed = program.launch, set(program.plan.needed)
    kinds = [TensorType(*types[:2]) for types in program.types]
    if not launch.of_parts:
        kinds = [*map(part_type, launch.in_shardings, kinds)]
    return [
        Format(_spell_out(launch, launch.in_layout(i), kind) if i in needed else None, sharding)
        for i, (kind, sharding) in enumerate(zip(kinds, launch.in_shardings, strict=True))
    ]


def result_formats(program: LoadedProgram) -> list[Format]:
    """Returns the Format of each flat result."""
    launch = program.launch
    return [
        Format(_spell_out(launch, s.layout, part_type(s.sharding, s.tensor_type)), s.sharding)
        for s in program.outputs
    ]


def _spell_out(launch: Launch, layout: AnyLayout, part: TensorType) -> Layout | None:
    """Replaces None by the default layout; returns None for a backend without layouts."""
    if not launch.client.capabilities.layouts:
        return None
    return require_chosen(layout) or launch.client.default_layout(part)
