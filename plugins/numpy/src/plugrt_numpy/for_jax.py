"""The entry point ``jax_plugins`` for JAX: the NumPy backend as platform ``numpy``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plugrt.interface import Client, OptionValue


def initialize() -> None:
    """Registers the platform if JAX's setting ``jax_platforms`` names it.

    JAX calls it in every process that uses devices: otherwise nothing else is imported.
    """
    from plugrt_sdk.export import register_with_jax

    if register_with_jax("numpy", _create_client, only_when_named=True, donation=True):
        _lower_as_on_cpus()


def _lower_as_on_cpus() -> None:
    """Makes JAX lower eigenvalues and the like as for its CPU: by LAPACK's custom calls.

    It has no rule for eigenvalues and singular values on platforms that it does not know, and a
    loop over columns for LU decompositions. The NumPy backend runs the calls.
    """
    from jax._src.interpreters import mlir
    from jax._src.lax import linalg

    of_cpu = mlir._platform_specific_lowerings["cpu"]
    for primitive in (linalg.eig_p, linalg.eigh_p, linalg.lu_p, linalg.svd_p):
        mlir.register_lowering(primitive, of_cpu[primitive].rule, platform="numpy")
    as_on_gpus = partial(linalg._lu_pivots_to_permutation_gpu_lowering, target_name_prefix="numpy")
    mlir.register_lowering(linalg.lu_pivots_to_permutation_p, as_on_gpus, platform="numpy")


def _create_client(**options: OptionValue) -> Client:
    from plugrt_numpy import plugin

    return plugin.create_client(options)
