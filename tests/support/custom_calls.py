"""A function that the backend under test knows by name, for programs that call it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from plugrt import get_backend


@cache
def known_cholesky() -> str:
    """Returns the target of a Cholesky decomposition with LAPACK's results: factor and status.

    Where handlers can be registered, one of ours is; else jaxlib has LAPACK's, which it makes
    known when jax needs them (the caller has computed a decomposition with jax).
    """
    client = get_backend()
    if not client.capabilities.custom_calls:
        return "lapack_spotrf_ffi"
    client.register_handler("plugrt_cholesky", _cholesky)
    return "plugrt_cholesky"


def _cholesky(arguments: Sequence[Any], results: Sequence[Any], config: Mapping[str, Any]) -> None:
    assert config["uplo"] == ord("U")
    (matrix,), (factor, status) = arguments, results
    factor[...] = np.linalg.cholesky(matrix)
    status[...] = 0
