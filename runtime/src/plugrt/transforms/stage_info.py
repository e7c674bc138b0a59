"""`StageInfo`: what every stage of ahead-of-time compilation says of arguments and results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from plugrt.execution.arrays.aval import Aval
from plugrt.execution.launches.float_checks import Rerun
from plugrt.execution.placement.placement import Launch
from plugrt.execution.trees import pytrees
from plugrt.execution.trees.pytrees import PyTreeSpec
from plugrt.interface import Device
from plugrt.tracing.staged import Staged
from plugrt.transforms.shape_dtype_struct import ShapeDtypeStruct, struct_of


@dataclass(frozen=True, slots=True)
class ArgInfo:
    """One array among the arguments of a traced function (``jax.stages.ArgInfo``)."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    donated: bool
    """Whether the argument's memory is the program's to reuse."""


class TracedFunction(Protocol):
    """What is asked of a `Traced`."""

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
        """Makes a call again operation by operation, for the debug checks."""

    def _out_info(self, launch: Launch | None = None) -> Any:
        """Returns the results as a pytree of `ShapeDtypeStruct`, as a launch places them."""


def _argument_struct(aval: Aval) -> ShapeDtypeStruct:
    known = struct_of(aval)
    if aval.committed:
        return known
    return ShapeDtypeStruct(known.shape, known.dtype, weak_type=known.weak_type)


class StageInfo:
    """Arguments and results of a function that is traced, lowered or compiled.

    The names are those of ``jax.stages``; shapes and dtypes are `plugrt.ShapeDtypeStruct`, where
    JAX has ``ShapedArray``. Static arguments are left out.
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

        Those that were committed to devices have their shardings.
        """
        return pytrees.unflatten(
            self.in_tree, [_argument_struct(aval) for aval in self._stage.avals]
        )

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
