"""Reads the capabilities that a backend declares: the optional methods that its class overrides."""

from __future__ import annotations

from plugrt_sdk.backend import Backend

FIELDS = {
    "event": "asynchronous_dispatch",
    "donated": "donation",
    "copy": "device_to_device_copy",
    "memories": "memory_kinds",
    "put_in_layout": "layouts",
    "alias": "zero_copy_put",
    "memory_stats": "memory_stats",
    "cost_analysis": "cost_analysis",
    "memory_analysis": "memory_analysis",
    "optimized_program": "optimized_program",
    "chosen_shardings": "auto_partitioning",
    "register_handler": "custom_calls",
    "topologies": "topology",
}
"""Method to the field of `Capabilities` that overriding it declares."""
OPTIONAL = (
    *FIELDS, "replicas", "partitions", "collectives", "dtypes", "process_index", "delete",
    "close", "put_in_memory", "copy_to_memory", "view", "pointer", "serialize", "deserialize",
    "unregister_handler",
)  # fmt: skip
"""The optional methods that a client calls; the others have a default that does nothing."""


def declared_methods(backend: Backend) -> frozenset[str]:
    """Returns the optional methods that a backend's class, or the object itself, overrides."""

    def overrides(method: str) -> bool:
        own = getattr(backend, method)
        return getattr(own, "__func__", own) is not getattr(Backend, method)

    return frozenset(filter(overrides, OPTIONAL))
