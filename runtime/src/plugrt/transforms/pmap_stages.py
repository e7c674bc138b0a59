"""The stages of ahead-of-time compilation of a pmapped function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plugrt.execution import tree
from plugrt.execution.array import Array
from plugrt.execution.spread import reshard
from plugrt.interface import CompileOptions
from plugrt.transforms.described import ShapeDtypeStruct
from plugrt.transforms.pmap_axes import AxisPrefix
from plugrt.transforms.pmap_program import Mapping, load_replicated
from plugrt.transforms.stages import Compiled, Traced


@dataclass(frozen=True)
class PmapTraced(Traced):
    """One replica of a pmapped function, traced for one kind of arguments."""

    mapping: Mapping
    out_axes: AxisPrefix

    @property
    def out_info(self) -> Any:
        """The results, all replicas together, as a pytree of `ShapeDtypeStruct`."""
        outputs = self.mapping.outputs(self.staged, self.out_axes)
        return tree.unflatten(
            self.staged.out_tree, [ShapeDtypeStruct(s.shape, s.dtype, s.sharding) for s in outputs]
        )

    def _load(self) -> Compiled:
        return PmapCompiled(self)

    def _options(self) -> CompileOptions:
        return CompileOptions(num_replicas=self.mapping.size)


class PmapCompiled(Compiled):
    """A compiled pmap; arguments are spread over its devices from wherever they are."""

    def __init__(self, traced: PmapTraced) -> None:
        mapping = traced.mapping
        super().__init__(traced, load_replicated(traced.staged, mapping, traced.out_axes))
        self._types = [s.tensor_type for s in traced.signatures]
        self._targets = mapping.targets

    def _place(self, arrays: Sequence[Array]) -> list[Array]:
        return [reshard(a, t) for a, t in zip(arrays, self._targets, strict=True)]
