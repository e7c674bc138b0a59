"""The linear algebra extension of the array API standard, on any backend.

Every function accepts stacks of matrices (..., m, n), real and complex, and works while a function
is traced. A plugin may compute the factorizations with a library (`plugrt.plugins.Plugin`,
``lowerings``), as the cpu plugin does with LAPACK. All other platforms use StableHLO's operations
if they exist (``cholesky``, ``triangular_solve``); LU, QR, eigenvalues and singular values are
computed by loops and products, so that no backend needs LAPACK. Singular matrices give infinities
and NaN, as in JAX: the data are not known when a function is traced.
"""

from plugrt.array_api.diagonals import diagonal
from plugrt.array_api.linalg.householder import qr
from plugrt.array_api.linalg.linear_systems import cholesky, det, inv, slogdet, solve
from plugrt.array_api.linalg.matrix_functions import cross, matrix_power, outer, trace
from plugrt.array_api.linalg.norms import matrix_norm, vector_norm
from plugrt.array_api.linalg.singular_values import matrix_rank, pinv, svd, svdvals
from plugrt.array_api.linalg.symmetric_eigenproblem import eigh, eigvalsh
from plugrt.array_api.matrix_products import matmul, matrix_transpose, tensordot, vecdot

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve",
    "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def __dir__() -> list[str]:
    # Without the names of submodules.
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
