"""The plugin ``numpy``, as its entry point names it."""

from __future__ import annotations

from plugrt_sdk import Backend, BackendPlugin


def _create(num_devices: int = 1, check_types: bool = False) -> Backend:
    from plugrt_numpy.backend import NumpyBackend

    return NumpyBackend(num_devices, check_types)


# Below the cpu's 0: used only if it is requested by name.
plugin = BackendPlugin("numpy", _create, priority=-200)
plugin.conformance_options = {"num_devices": 4}  # some collectives are tried on two groups of two
