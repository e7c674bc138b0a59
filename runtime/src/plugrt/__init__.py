"""plugrt runs array programs on any device that has a PJRT plugin.

The names below are loaded when first used: ``import plugrt`` alone imports neither jaxlib nor any
plugin nor a native library. Where a name exists in JAX, too, its arguments and meaning are JAX's.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_NAMES = {
    "Array": "plugrt.execution.array",
    "PyTreeSpec": "plugrt.execution.tree",
    "ShapeDtypeStruct": "plugrt.transforms.described",
    "backends": "plugrt.plugins.backends",
    "block_until_ready": "plugrt.execution.transfer",
    "clear_backends": "plugrt.plugins.backends",
    "clear_caches": "plugrt.execution.caches",
    "compile": "plugrt.programs",
    "config": "plugrt.config",
    "debug_infs": "plugrt.switches",
    "debug_nans": "plugrt.switches",
    "default_backend": "plugrt.plugins.backends",
    "default_device": "plugrt.switches",
    "device_count": "plugrt.plugins.backends",
    "device_get": "plugrt.execution.transfer",
    "device_put": "plugrt.execution.transfer",
    "device_put_replicated": "plugrt.execution.shards",
    "device_put_sharded": "plugrt.execution.shards",
    "devices": "plugrt.plugins.backends",
    "disable_jit": "plugrt.switches",
    "get_backend": "plugrt.plugins.backends",
    "jit": "plugrt.transforms.jit",
    "load_program": "plugrt.programs",
    "local_device_count": "plugrt.plugins.backends",
    "local_devices": "plugrt.plugins.backends",
    "log_compiles": "plugrt.switches",
    "pmap": "plugrt.transforms.pmap",
    "process_count": "plugrt.plugins.backends",
    "process_index": "plugrt.plugins.backends",
    "process_indices": "plugrt.plugins.backends",
    "topology": "plugrt.transforms.topologies",
}
_MODULES = {
    "array_api": "plugrt.array_api",
    "errors": "plugrt.errors",
    "interface": "plugrt.interface",
    "lax": "plugrt.lax",
    "monitoring": "plugrt.monitoring",
    "plugins": "plugrt.plugins",
    "random": "plugrt.random",
    "sharding": "plugrt.sharding",
    "tree": "plugrt.execution.tree",
    "typing": "plugrt.typing",
}

__all__ = ["__version__", *sorted([*_NAMES, *_MODULES])]

if TYPE_CHECKING:
    from plugrt import array_api as array_api
    from plugrt import errors as errors
    from plugrt import interface as interface
    from plugrt import lax as lax
    from plugrt import monitoring as monitoring
    from plugrt import plugins as plugins
    from plugrt import random as random
    from plugrt import sharding as sharding
    from plugrt import typing as typing
    from plugrt.config import config as config
    from plugrt.execution import tree as tree
    from plugrt.execution.array import Array as Array
    from plugrt.execution.caches import clear_caches as clear_caches
    from plugrt.execution.shards import device_put_replicated as device_put_replicated
    from plugrt.execution.shards import device_put_sharded as device_put_sharded
    from plugrt.execution.transfer import block_until_ready as block_until_ready
    from plugrt.execution.transfer import device_get as device_get
    from plugrt.execution.transfer import device_put as device_put
    from plugrt.execution.tree import PyTreeSpec as PyTreeSpec
    from plugrt.plugins.backends import backends as backends
    from plugrt.plugins.backends import clear_backends as clear_backends
    from plugrt.plugins.backends import default_backend as default_backend
    from plugrt.plugins.backends import device_count as device_count
    from plugrt.plugins.backends import devices as devices
    from plugrt.plugins.backends import get_backend as get_backend
    from plugrt.plugins.backends import local_device_count as local_device_count
    from plugrt.plugins.backends import local_devices as local_devices
    from plugrt.plugins.backends import process_count as process_count
    from plugrt.plugins.backends import process_index as process_index
    from plugrt.plugins.backends import process_indices as process_indices
    from plugrt.programs import compile as compile
    from plugrt.programs import load_program as load_program
    from plugrt.switches import debug_infs as debug_infs
    from plugrt.switches import debug_nans as debug_nans
    from plugrt.switches import default_device as default_device
    from plugrt.switches import disable_jit as disable_jit
    from plugrt.switches import log_compiles as log_compiles
    from plugrt.transforms.described import ShapeDtypeStruct as ShapeDtypeStruct
    from plugrt.transforms.jit import jit as jit
    from plugrt.transforms.pmap import pmap as pmap
    from plugrt.transforms.topologies import topology as topology


class _Package(ModuleType):
    # Importing the module plugrt.config, which most of our modules do, would put the module in the
    # place of the settings.
    def __setattr__(self, name: str, value: Any) -> None:
        if name == "config" and isinstance(value, ModuleType):
            value = value.config
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


if not TYPE_CHECKING:  # to a type checker, a name that is not there is an error

    def __getattr__(name: str) -> Any:
        if name in _NAMES:
            value = getattr(import_module(_NAMES[name]), name)
        elif name in _MODULES:
            value = import_module(_MODULES[name])
        else:
            from plugrt.jax_only import missing_name

            # Python itself suggests a name that differs by a letter or two.
            raise AttributeError(missing_name(name), name=name, obj=sys.modules[__name__])
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
