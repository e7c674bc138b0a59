"""Shardings: the distribution of an array, which `Array.sharding` returns and `device_put` accepts.

`SingleDeviceSharding` is one device; `NamedSharding` divides dimensions over the named axes of a
`Mesh` of devices, as a `PartitionSpec` says, `PositionalSharding` over the positions of an array of
devices without names, `GSPMDSharding` as a compiler's ``OpSharding`` states; `PmapSharding` is the
`NamedSharding` of results of `pmap`.

`set_mesh` and `use_mesh` set the mesh for the calls of a thread; `get_mesh` and `get_abstract_mesh`
return it.
"""

from typing import TYPE_CHECKING

from plugrt.execution.shardings.abstract_mesh import AbstractMesh, AxisType
from plugrt.execution.shardings.auto_sharding import AUTO
from plugrt.execution.shardings.gspmd_sharding import GSPMDSharding
from plugrt.execution.shardings.manual_types import ManualAxisType
from plugrt.execution.shardings.mesh import Mesh
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.pmap_sharding import PmapSharding
from plugrt.execution.shardings.positional_sharding import PositionalSharding
from plugrt.execution.shardings.sharding_base import (
    Sharding,
    SingleDeviceSharding,
    make_single_device_sharding,
)
from plugrt.lifetime.uninterrupted_imports import names_from
from plugrt.transforms.mesh_contexts import get_abstract_mesh, get_mesh, set_mesh, use_mesh

if TYPE_CHECKING:
    from plugrt.lax.explicit_axes import auto_axes, explicit_axes, reshard, use_abstract_mesh
else:  # these trace, which needs jaxlib
    _TRACE = ("auto_axes", "explicit_axes", "reshard", "use_abstract_mesh")

    def _missing(name: str) -> str:
        from plugrt.missing_names import missing_name

        return missing_name(name, __name__)

    __getattr__ = names_from(__name__, dict.fromkeys(_TRACE, "plugrt.lax.explicit_axes"), _missing)

__all__ = [
    "AUTO",
    "AbstractMesh",
    "AxisType",
    "GSPMDSharding",
    "ManualAxisType",
    "Mesh",
    "NamedSharding",
    "PartitionSpec",
    "PmapSharding",
    "PositionalSharding",
    "Sharding",
    "SingleDeviceSharding",
    "auto_axes",
    "explicit_axes",
    "get_abstract_mesh",
    "get_mesh",
    "make_single_device_sharding",
    "reshard",
    "set_mesh",
    "use_abstract_mesh",
    "use_mesh",
]


def __dir__() -> list[str]:
    return __all__
