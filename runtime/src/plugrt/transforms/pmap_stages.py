"""The stages of ahead-of-time compilation of a pmapped function: `PmapTraced`, `PmapCompiled`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plugrt.execution import tree
from plugrt.execution.programs import load
from plugrt.interface import CompileOptions
from plugrt.transforms.pmap_axes import AxisPrefix, ReplicaMapping
from plugrt.transforms.shape_dtype_struct import ShapeDtypeStruct
from plugrt.transforms.stages import Compiled, Traced


@dataclass(frozen=True)
class PmapTraced(Traced):
    """One replica of a pmapped function, traced for one combination of argument types."""

    mapping: ReplicaMapping
    out_axes: AxisPrefix

    @property
    def out_info(self) -> Any:
        """The results, all replicas together, as a pytree of `ShapeDtypeStruct`."""
        outputs = self.mapping.outputs(self.staged, self.out_axes)
        return tree.unflatten(
            self.staged.out_tree, [ShapeDtypeStruct(s.shape, s.dtype, s.sharding) for s in outputs]
        )

    def _load(self) -> Compiled:
        launch = self.mapping.launch(self.staged, self.out_axes)
        return PmapCompiled(self, load(self.staged, launch))

    def _options(self) -> CompileOptions:
        return CompileOptions(num_replicas=self.mapping.size)


class PmapCompiled(Compiled):
    """A compiled pmap; arguments are moved to its devices from wherever they are."""

    _any_place = True
