"""plugrt runs array programs on any device that has a PJRT plugin.

The names below are loaded when first used: ``import plugrt`` alone imports neither jaxlib nor any
plugin nor a native library. A name that exists in JAX has JAX's arguments and meaning.
"""

from __future__ import annotations

import atexit
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from plugrt.execution.arrays import method_source
from plugrt.lifetime.uninterrupted_imports import ImportAfter, names_from

__version__ = "0.1.0"

_NAMES = {
    "Array": "plugrt.execution.arrays.array",
    "Model": "plugrt.models.model",
    "PyTreeSpec": "plugrt.execution.trees.pytrees",
    "ShapeDtypeStruct": "plugrt.transforms.shape_dtype_struct",
    "assert_equal": "plugrt.execution.transfers.process_allgather",
    "backends": "plugrt.plugins.selection.backends",
    "block_until_ready": "plugrt.execution.transfers.transfer",
    "copy_to_host_async": "plugrt.execution.transfers.transfer",
    "broadcast_one_to_all": "plugrt.execution.transfers.process_allgather",
    "clear_backends": "plugrt.plugins.selection.backends",
    "clear_caches": "plugrt.execution.launches.pipeline",
    "compile": "plugrt.programs.compiled_program",
    "config": "plugrt.settings.declarations",
    "debug_infs": "plugrt.transforms.setting_contexts",
    "debug_nans": "plugrt.transforms.setting_contexts",
    "default_backend": "plugrt.plugins.selection.backends",
    "default_device": "plugrt.transforms.setting_contexts",
    "device_count": "plugrt.plugins.selection.backends",
    "device_get": "plugrt.execution.transfers.transfer",
    "device_put": "plugrt.execution.transfers.transfer",
    "device_put_replicated": "plugrt.transforms.device_put_sharded",
    "device_put_sharded": "plugrt.transforms.device_put_sharded",
    "devices": "plugrt.plugins.selection.backends",
    "disable_jit": "plugrt.transforms.setting_contexts",
    "effects_barrier": "plugrt.execution.executables.effects",
    "from_jax": "plugrt.transforms.from_jax",
    "get_backend": "plugrt.plugins.selection.backends",
    "global_array_to_host_local_array": "plugrt.execution.transfers.process_allgather",
    "host_local_array_to_global_array": "plugrt.execution.transfers.process_allgather",
    "io_callback": "plugrt.transforms.callbacks",
    "jit": "plugrt.transforms.jit",
    "live_arrays": "plugrt.execution.arrays.live_arrays",
    "load_model": "plugrt.models.model",
    "load_program": "plugrt.programs.loading",
    "local_device_count": "plugrt.plugins.selection.backends",
    "local_devices": "plugrt.plugins.selection.backends",
    "log_compiles": "plugrt.transforms.setting_contexts",
    "make_array_from_callback": "plugrt.execution.transfers.array_parts",
    "make_array_from_process_local_data": "plugrt.execution.transfers.array_parts",
    "make_array_from_single_device_arrays": "plugrt.execution.transfers.array_parts",
    "make_mesh": "plugrt.execution.shardings.mesh",
    "pack_model": "plugrt.models.packing",
    "pjit": "plugrt.transforms.jit",
    "pmap": "plugrt.transforms.pmap",
    "process_allgather": "plugrt.execution.transfers.process_allgather",
    "process_count": "plugrt.plugins.selection.backends",
    "process_index": "plugrt.plugins.selection.backends",
    "process_indices": "plugrt.plugins.selection.backends",
    "pure_callback": "plugrt.transforms.callbacks",
    "register_array_type": "plugrt.execution.arrays.array_types",
    "set_mesh": "plugrt.transforms.mesh_contexts",
    "shard_map": "plugrt.transforms.shard_map",
    "smap": "plugrt.transforms.shard_map",
    "sync_global_devices": "plugrt.execution.transfers.process_allgather",
    "topology": "plugrt.transforms.topology",
    "transfer_guard": "plugrt.transforms.setting_contexts",
    "transfer_guard_device_to_device": "plugrt.transforms.setting_contexts",
    "transfer_guard_device_to_host": "plugrt.transforms.setting_contexts",
    "transfer_guard_host_to_device": "plugrt.transforms.setting_contexts",
    "typeof": "plugrt.transforms.shape_dtype_struct",
    "with_sharding_constraint": "plugrt.lax.sharding_constraint",
    "xla_computation": "plugrt.transforms.xla_computation",
}
_MODULES = {
    "array_api": "plugrt.array_api",
    "debug": "plugrt.debug",
    "distributed": "plugrt.distributed",
    "errors": "plugrt.errors",
    "export": "plugrt.export",
    "ffi": "plugrt.ffi",
    "interface": "plugrt.interface",
    "lax": "plugrt.lax",
    "layout": "plugrt.layout",
    "memory": "plugrt.memory",
    "monitoring": "plugrt.monitoring",
    "plugins": "plugrt.plugins",
    "profiler": "plugrt.profiler",
    "random": "plugrt.random",
    "serialize_executable": "plugrt.serialize_executable",
    "sharding": "plugrt.sharding",
    "tree": "plugrt.tree",
    "typing": "plugrt.typing",
}

__all__ = ["__version__", *sorted([*_NAMES, *_MODULES])]

if TYPE_CHECKING:
    from plugrt import array_api as array_api
    from plugrt import debug as debug
    from plugrt import distributed as distributed
    from plugrt import errors as errors
    from plugrt import export as export
    from plugrt import ffi as ffi
    from plugrt import interface as interface
    from plugrt import lax as lax
    from plugrt import layout as layout
    from plugrt import memory as memory
    from plugrt import monitoring as monitoring
    from plugrt import plugins as plugins
    from plugrt import profiler as profiler
    from plugrt import random as random
    from plugrt import serialize_executable as serialize_executable
    from plugrt import sharding as sharding
    from plugrt import tree as tree
    from plugrt import typing as typing
    from plugrt.execution.arrays.array import Array as Array
    from plugrt.execution.arrays.array_types import register_array_type as register_array_type
    from plugrt.execution.arrays.live_arrays import live_arrays as live_arrays
    from plugrt.execution.executables.effects import effects_barrier as effects_barrier
    from plugrt.execution.launches.pipeline import clear_caches as clear_caches
    from plugrt.execution.shardings.mesh import make_mesh as make_mesh
    from plugrt.execution.transfers.array_parts import (
        make_array_from_callback as make_array_from_callback,
    )
    from plugrt.execution.transfers.array_parts import (
        make_array_from_process_local_data as make_array_from_process_local_data,
    )
    from plugrt.execution.transfers.array_parts import (
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
    )
    from plugrt.execution.transfers.process_allgather import assert_equal as assert_equal
    from plugrt.execution.transfers.process_allgather import (
        broadcast_one_to_all as broadcast_one_to_all,
    )
    from plugrt.execution.transfers.process_allgather import (
        global_array_to_host_local_array as global_array_to_host_local_array,
    )
    from plugrt.execution.transfers.process_allgather import (
        host_local_array_to_global_array as host_local_array_to_global_array,
    )
    from plugrt.execution.transfers.process_allgather import process_allgather as process_allgather
    from plugrt.execution.transfers.process_allgather import (
        sync_global_devices as sync_global_devices,
    )
    from plugrt.execution.transfers.transfer import block_until_ready as block_until_ready
    from plugrt.execution.transfers.transfer import copy_to_host_async as copy_to_host_async
    from plugrt.execution.transfers.transfer import device_get as device_get
    from plugrt.execution.transfers.transfer import device_put as device_put
    from plugrt.execution.trees.pytrees import PyTreeSpec as PyTreeSpec
    from plugrt.lax.sharding_constraint import (
        with_sharding_constraint as with_sharding_constraint,
    )
    from plugrt.models.model import Model as Model
    from plugrt.models.model import load_model as load_model
    from plugrt.models.packing import pack_model as pack_model
    from plugrt.plugins.selection.backends import backends as backends
    from plugrt.plugins.selection.backends import clear_backends as clear_backends
    from plugrt.plugins.selection.backends import default_backend as default_backend
    from plugrt.plugins.selection.backends import device_count as device_count
    from plugrt.plugins.selection.backends import devices as devices
    from plugrt.plugins.selection.backends import get_backend as get_backend
    from plugrt.plugins.selection.backends import local_device_count as local_device_count
    from plugrt.plugins.selection.backends import local_devices as local_devices
    from plugrt.plugins.selection.backends import process_count as process_count
    from plugrt.plugins.selection.backends import process_index as process_index
    from plugrt.plugins.selection.backends import process_indices as process_indices
    from plugrt.programs.compiled_program import compile as compile
    from plugrt.programs.loading import load_program as load_program
    from plugrt.settings.declarations import config as config
    from plugrt.transforms.callbacks import io_callback as io_callback
    from plugrt.transforms.callbacks import pure_callback as pure_callback
    from plugrt.transforms.device_put_sharded import (
        device_put_replicated as device_put_replicated,
    )
    from plugrt.transforms.device_put_sharded import (
        device_put_sharded as device_put_sharded,
    )
    from plugrt.transforms.from_jax import from_jax as from_jax
    from plugrt.transforms.jit import jit as jit
    from plugrt.transforms.jit import pjit as pjit
    from plugrt.transforms.mesh_contexts import set_mesh as set_mesh
    from plugrt.transforms.pmap import pmap as pmap
    from plugrt.transforms.setting_contexts import debug_infs as debug_infs
    from plugrt.transforms.setting_contexts import debug_nans as debug_nans
    from plugrt.transforms.setting_contexts import default_device as default_device
    from plugrt.transforms.setting_contexts import disable_jit as disable_jit
    from plugrt.transforms.setting_contexts import log_compiles as log_compiles
    from plugrt.transforms.setting_contexts import transfer_guard as transfer_guard
    from plugrt.transforms.setting_contexts import (
        transfer_guard_device_to_device as transfer_guard_device_to_device,
    )
    from plugrt.transforms.setting_contexts import (
        transfer_guard_device_to_host as transfer_guard_device_to_host,
    )
    from plugrt.transforms.setting_contexts import (
        transfer_guard_host_to_device as transfer_guard_host_to_device,
    )
    from plugrt.transforms.shape_dtype_struct import ShapeDtypeStruct as ShapeDtypeStruct
    from plugrt.transforms.shape_dtype_struct import typeof as typeof
    from plugrt.transforms.shard_map import shard_map as shard_map
    from plugrt.transforms.shard_map import smap as smap
    from plugrt.transforms.topology import topology as topology
    from plugrt.transforms.xla_computation import xla_computation as xla_computation


if not TYPE_CHECKING:  # a type checker reports a missing name as an error

    def _missing(name: str) -> str:
        from plugrt.missing_names import missing_name

        return missing_name(name)

    __getattr__ = names_from(__name__, _NAMES | _MODULES, _missing)


# einops uses the subclasses of its backend class, so the module with plugrt's is imported then.
ImportAfter("einops._backends", "plugrt.array_api.einops_backend")
# Arrays get their operators when one is first used.
method_source.set_loader(lambda: import_module("plugrt.array_api.operators"))


@atexit.register
def _destroy_clients() -> None:
    """Destroys the clients of libraries when the interpreter ends.

    Registered here, so that exit handlers of programs that import plugrt run before.
    """
    interpreter_exit = sys.modules.get("plugrt.capi.client.interpreter_exit")
    # Without its function it is still being imported, by a daemon thread: there is no client.
    if interpreter_exit is not None and hasattr(interpreter_exit, "destroy_all"):
        interpreter_exit.destroy_all(_drop_views)


def _drop_views() -> None:
    if "plugrt.execution.arrays.array" in sys.modules:
        from plugrt.execution.arrays.live_arrays import drop_views

        drop_views()


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
