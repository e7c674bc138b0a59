"""The `linalg` extension against NumPy, whose LAPACK is the oracle.

Differs from JAX: linear algebra | `jax.numpy.linalg`, by LAPACK, cuSOLVER or the TPU's compiler |
`array_api.linalg`, by LAPACK on `cpu`; elsewhere by programs that run on every backend: StableHLO's
operations, and LU, QR, Jacobi's eigenvalues and singular values; slower than LAPACK.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import errors
from support.behaviour import behaviour
from support.numpy_oracle import same

linalg = xp.linalg
Matrix = npt.NDArray[Any]

ULPS = 60
"""In units of the norm of the result: LAPACK's own results differ from exact ones by about ten."""
SHAPES = {"complex64": (2, 5, 5), "float64": (4, 4)}


def random_matrices(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Matrix:
    random = np.random.default_rng(seed)
    parts = [random.standard_normal(shape) for _ in range(2)]
    return (parts[0] + 1j * parts[1] if dtype.startswith("complex") else parts[0]).astype(dtype)


def adjoint(x: Matrix) -> Matrix:
    return x.conj().swapaxes(-1, -2)


def near(found: Any, expected: Any, condition: float = 1.0) -> None:
    """Asserts equality within `ULPS` of the largest number, times the condition of the problem."""
    host, expected = np.asarray(found), np.asarray(expected)
    assert (host.dtype, host.shape) == (expected.dtype, expected.shape)
    largest = max(1.0, float(np.abs(expected).max(initial=0)))
    allowed = ULPS * np.finfo(host.dtype).eps * largest * condition
    np.testing.assert_allclose(host, expected, rtol=0, atol=allowed)


def unitary(q: Any) -> None:
    host = np.asarray(q)
    products = adjoint(host) @ host
    near(products, np.broadcast_to(np.eye(host.shape[-1], dtype=host.dtype), products.shape))


@pytest.fixture(params=SHAPES)
def square(request: pytest.FixtureRequest) -> Matrix:
    return random_matrices(SHAPES[request.param], request.param)


@pytest.fixture(params=[("float32", (2, 5, 3)), ("complex64", (3, 5))], ids=["tall", "wide"])
def oblong(request: pytest.FixtureRequest) -> Matrix:
    return random_matrices(request.param[1], request.param[0])


def test_the_names_are_the_standards() -> None:
    assert {"linalg", "fft"} <= set(dir(xp))
    standard = (
        "cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power "
        "matrix_rank matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace "
        "vecdot vector_norm"
    )
    assert set(linalg.__all__) == set(standard.split())


@behaviour(19, "`linalg.solve`, `inv`, `det` and `slogdet` have NumPy's results")
def test_linear_systems(square: Matrix) -> None:
    condition = float(np.linalg.cond(square).max())
    right = random_matrices((*square.shape[:-1], 2), square.dtype.name, seed=1)
    near(linalg.solve(square, right), np.linalg.solve(square, right), condition)
    near(linalg.inv(square), np.linalg.inv(square), condition)
    near(linalg.det(square), np.linalg.det(square), condition)
    for found, expected in zip(linalg.slogdet(square), np.linalg.slogdet(square), strict=True):
        near(found, expected, condition)


@behaviour(19, "`linalg.qr` has LAPACK's signs, reduced and complete")
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr(oblong: Matrix, mode: Any) -> None:
    expected = np.linalg.qr(oblong, mode)
    for found, factor in zip(linalg.qr(oblong, mode=mode), expected, strict=True):
        near(found, factor, float(np.linalg.cond(oblong).max()))


@behaviour(19, "`linalg.svd` gives NumPy's singular values and orthonormal factors")
@pytest.mark.parametrize("full_matrices", [True, False])
def test_svd(oblong: Matrix, full_matrices: bool) -> None:
    u, s, vh = linalg.svd(oblong, full_matrices=full_matrices)
    expected = np.linalg.svd(oblong, full_matrices=full_matrices)
    near(s, expected.S)
    assert (u.shape, vh.shape) == (expected.U.shape, expected.Vh.shape)
    unitary(u)
    unitary(adjoint(np.asarray(vh)))
    k = s.shape[-1]
    near(np.asarray(u)[..., :k] * np.asarray(s)[..., None, :] @ np.asarray(vh)[..., :k, :], oblong)


@behaviour(19, "`linalg.eigh` gives ascending eigenvalues and orthonormal eigenvectors")
def test_eigh_reads_the_lower_triangle(square: Matrix) -> None:
    whole = np.tril(square) + adjoint(np.tril(square, -1))
    whole = np.where(np.eye(whole.shape[-1], dtype=bool), whole.real, whole).astype(square.dtype)
    values, vectors = linalg.eigh(square)
    near(values, np.linalg.eigvalsh(whole))
    unitary(vectors)
    near(whole @ np.asarray(vectors), np.asarray(vectors) * np.asarray(values)[..., None, :])
    near(linalg.eigvalsh(square), np.asarray(values))


@behaviour(19, "`linalg.cholesky` reads one triangle, and is NaN where there is no factor")
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(square: Matrix, upper: bool) -> None:
    definite = square @ adjoint(square) + np.eye(square.shape[-1], dtype=square.dtype)
    other = (
        np.tri(*definite.shape[-2:], -1, bool) if upper else ~np.tri(*definite.shape[-2:], 0, bool)
    )
    half = np.where(other, np.asarray(7, definite.dtype), definite)
    near(linalg.cholesky(half, upper=upper), np.linalg.cholesky(definite, upper=upper))
    assert np.isnan(np.asarray(linalg.cholesky(-definite, upper=upper))).any()


def test_columns_of_several_panels() -> None:
    a = random_matrices((2, 260, 260), "float32", 0)  # a panel has 128 columns
    condition = float(np.linalg.cond(a).max())
    near(linalg.slogdet(a).logabsdet, np.linalg.slogdet(a).logabsdet, condition)
    near(linalg.solve(a, a), np.broadcast_to(np.eye(260, dtype="f"), a.shape), condition)


def test_forty_columns_are_as_exact_as_four() -> None:
    a = random_matrices((40, 40), "float32")
    exact = a.astype(np.float64)
    near(linalg.svdvals(a), np.linalg.svdvals(exact).astype("f"))
    near(linalg.eigvalsh(a + a.T), np.linalg.eigvalsh(exact + exact.T).astype("f"))


def test_matrices_of_less_than_full_rank() -> None:
    a = np.outer([1.0, 2, 3, 4], [1.0, 0, 2]).astype("f")
    u, s, vh = linalg.svd(a)
    unitary(u)
    unitary(vh)
    near(s, np.linalg.svdvals(a))
    assert int(linalg.matrix_rank(a)) == 1
    assert int(linalg.matrix_rank(a, rtol=xp.asarray(1.1))) == 0
    near(linalg.pinv(a), np.linalg.pinv(a))
    zero = np.zeros((3, 3), "f")
    same(linalg.matrix_norm(zero, ord="nuc"), np.float32(0))
    same(linalg.eigvalsh(zero), np.zeros(3, "f"))
    sign, logarithm = linalg.slogdet(zero)
    assert (float(sign), float(logarithm)) == (0.0, -np.inf)
    assert not np.isfinite(np.asarray(linalg.solve(zero, np.ones(3, "f")))).any()


def test_matrices_with_nan_or_infinity_give_nan() -> None:
    for number in (np.nan, np.inf):
        a = np.full((3, 3), number, "f")
        assert np.isnan(np.asarray(linalg.svdvals(a))).all()
        assert np.isnan(np.asarray(linalg.eigvalsh(a))).all()


def test_large_numbers_do_not_overflow() -> None:
    a = random_matrices((4, 4), "float32") * np.float32(1e30)
    near(linalg.svdvals(a), np.linalg.svdvals(a))
    near(linalg.qr(a).R, np.linalg.qr(a).R, 10)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 3), (3, 0), (0, 2, 2)])
def test_no_elements(shape: tuple[int, ...]) -> None:
    a = np.zeros(shape, "f")
    for found, expected in zip(linalg.svd(a), np.linalg.svd(a), strict=True):
        same(found, expected)
    for found, expected in zip(linalg.qr(a), np.linalg.qr(a), strict=True):
        same(found, expected)
    if shape[-1] == shape[-2]:
        same(linalg.det(a), np.linalg.det(a))
        same(linalg.inv(a), a)
        same(linalg.eigvalsh(a), np.linalg.eigvalsh(a))


def test_half_precision_and_integers_are_computed_as_floats() -> None:
    a = np.asarray([[2, 1], [1, 3]])
    assert linalg.inv(a.astype(np.float16)).dtype == np.float16
    assert linalg.svdvals(xp.asarray(a, dtype=xp.bfloat16)).dtype == xp.bfloat16
    assert linalg.eigh(a.astype(np.int32)).eigenvalues.dtype == np.float32
    same(linalg.det(a.astype(np.int32)), np.float32(5))


CALLS: dict[str, Callable[[Any], Any]] = {
    "qr": linalg.qr,
    "eigh": linalg.eigh,
    "slogdet": linalg.slogdet,
    "inv": linalg.inv,
    "norm": linalg.matrix_norm,
}


@pytest.mark.parametrize("name", CALLS)
def test_jit_gives_what_eager_calls_give(name: str) -> None:
    a = random_matrices((3, 3), "float32")
    eager, jitted = CALLS[name](a), plugrt.jit(CALLS[name])(a)
    if isinstance(eager, tuple):
        assert type(jitted) is type(eager)
        for found, expected in zip(jitted, eager, strict=True):
            same(found, expected, tolerance=0)
    else:
        same(jitted, eager, tolerance=0)


ORDERS: list[Any] = ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]


@behaviour(19, "`linalg.matrix_norm` and `vector_norm` accept NumPy's orders")
def test_norms(oblong: Matrix) -> None:
    found = plugrt.jit(lambda x: [linalg.matrix_norm(x, ord=order) for order in ORDERS])(oblong)
    for order, norm in zip(ORDERS, found, strict=True):
        near(norm, np.linalg.matrix_norm(oblong, ord=order))
    near(linalg.matrix_norm(oblong, keepdims=True), np.linalg.matrix_norm(oblong, keepdims=True))
    for order in (0, 0.5, 1, 2, 3, np.inf, -np.inf):
        for axis in (None, 0, (0, -1)):
            options: Any = {"ord": order, "axis": axis, "keepdims": axis == 0}
            expected = np.linalg.vector_norm(oblong, **options)
            near(linalg.vector_norm(oblong, **options), expected, 10)


def test_products_and_diagonals(oblong: Matrix) -> None:
    for offset in (-7, -1, 0, 2):
        same(linalg.diagonal(oblong, offset=offset), np.linalg.diagonal(oblong, offset=offset))
        same(linalg.trace(oblong, offset=offset), np.linalg.trace(oblong, offset=offset))
    a = np.asarray([[1, 1], [1, 0]], np.int32)
    for power in (0, 1, 10):
        same(linalg.matrix_power(a, power), np.linalg.matrix_power(a, power))
    same(linalg.matrix_power(a, -2), np.linalg.matrix_power(a.astype("f"), -2))
    same(linalg.outer(np.asarray([1, 2]), np.asarray([3.0], "f")), np.asarray([[3], [6]], "f"))
    x, y = (np.random.default_rng(i).standard_normal((3, 4, 3)).astype("f") for i in range(2))
    for axis in (0, 2, -1):
        same(linalg.cross(x, y, axis=axis), np.cross(x, y, axis=axis), tolerance=1e-6)
    same(linalg.cross(x[0], y), np.linalg.cross(x[0], y), tolerance=1e-6)


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a vector": (lambda: linalg.svd(np.ones(3)), errors.ShapeError, "svd got x of shape \\(3,\\)"),
    "not square": (lambda: linalg.inv(np.ones((2, 3))), errors.ShapeError, "inv got x of shape"),
    "sizes": (lambda: linalg.solve(np.eye(2), np.ones(3)), errors.ShapeError, "vector of 2"),
    "stacks": (
        lambda: linalg.solve(np.ones((2, 2, 2)), np.ones((3, 2, 1))),
        errors.ShapeError,
        "do not broadcast",
    ),
    "a mode": (lambda: linalg.qr(np.eye(2), mode="r"), errors.ArgumentError, "'complete'"),
    "an order": (lambda: linalg.matrix_norm(np.eye(2), ord=3), errors.ArgumentError, "'nuc'"),
    "no number": (
        lambda: linalg.vector_norm(np.ones(1), ord="fro"),
        errors.ArgumentError,
        "a number",
    ),
    "cross of 2": (lambda: linalg.cross(np.ones(2), np.ones(2)), errors.ShapeError, "3 elements"),
    "outer of 2-d": (lambda: linalg.outer(np.eye(2), np.ones(1)), errors.ShapeError, "two vectors"),
    "a list": (lambda: linalg.det([[1.0, 2.0]]), errors.NotAnArray, "asarray"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_calls_are_named(case: str) -> None:
    call, error, words = WRONG[case]
    with pytest.raises(error, match=words):
        call()
