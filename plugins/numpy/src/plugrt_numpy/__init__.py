"""StableHLO on NumPy: a PJRT backend in Python, with any number of virtual devices.

A program is compiled once to Python functions, one line an operation (`functions`); each chapter of
the StableHLO specification is one module of lowerings, and `table` lists them.
"""

from __future__ import annotations

from plugrt_sdk import Backend, BackendPlugin

__all__ = ["plugin"]


def _create(num_devices: int = 1, check_types: bool = False) -> Backend:
    from plugrt_numpy.backend import NumpyBackend

    return NumpyBackend(num_devices, check_types)


# Below the cpu's 0: used where it is asked for by name, and not by itself.
plugin = BackendPlugin("numpy", _create, priority=-200)
plugin.conformance_options = {"num_devices": 4}  # some collectives are tried on two groups of two
