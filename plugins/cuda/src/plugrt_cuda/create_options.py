"""The create options of PJRT libraries for CUDA, from the settings."""

from __future__ import annotations

from plugrt.interface import OptionValue
from plugrt.plugins import vendors
from plugrt.settings.declarations import Config

OPTION_TYPES: dict[str, type] = {
    "platform_name": str,
    "allocator": str,
    "memory_fraction": float,
    "preallocate": bool,
    "collective_memory_size": int,
    "abort_collectives_on_failure": bool,
    "use_tfrt_gpu_client": bool,
    "visible_devices": list,
    "enable_mock_nccl": bool,
    "num_nodes": int,
    "node_id": int,
    "mock_gpu_topology": str,
}
"""The type of each option that is known here; others are left to the library."""
_MB = 1 << 20


def from_config(config: Config) -> dict[str, OptionValue]:
    """Returns the options that follow from the settings; they are the same that JAX passes."""
    options: dict[str, OptionValue] = {
        "platform_name": "cuda",
        "allocator": config.xla_python_client_allocator,
        "abort_collectives_on_failure": bool(config.xla_python_client_abort_collectives_on_failure),
        "use_tfrt_gpu_client": bool(config.xla_python_client_use_tfrt_gpu_client),
        **vendors.gpu_options("cuda", config),
    }
    if config.xla_client_mem_fraction is not None:
        options["memory_fraction"] = config.xla_client_mem_fraction
    if config.xla_python_client_preallocate is not None:
        options["preallocate"] = config.xla_python_client_preallocate
    if config.xla_python_client_collective_mem_size_mb is not None:
        options["collective_memory_size"] = config.xla_python_client_collective_mem_size_mb * _MB
    return options
