"""What JAX finds under the entry point ``jax_plugins``: the NumPy backend as platform ``numpy``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plugrt.interface import Client, OptionValue


def initialize() -> None:
    """Registers the platform where JAX's setting ``jax_platforms`` names it.

    JAX calls it in every process that asks for devices: where it is not named, nothing else is
    imported.
    """
    from plugrt_sdk.export import register_with_jax

    if register_with_jax("numpy", _create_client, only_when_named=True, donation=True):
        _lower_as_on_cpus()


def _lower_as_on_cpus() -> None:
    """Has JAX write eigenvalues and singular values as for its CPU: by LAPACK's custom calls.

    It has no rule for these on platforms that it does not know, and the NumPy backend runs them.
    """
    from jax._src.interpreters import mlir
    from jax._src.lax import linalg

    of_cpu = mlir._platform_specific_lowerings["cpu"]
    for primitive in (linalg.eig_p, linalg.eigh_p, linalg.svd_p):
        mlir.register_lowering(primitive, of_cpu[primitive].rule, platform="numpy")


def _create_client(**options: OptionValue) -> Client:
    from plugrt_sdk.numpy_backend import plugin

    return plugin.create_client(options)
