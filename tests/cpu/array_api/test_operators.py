"""Operators and methods of arrays, eager and traced, beside NumPy's and Python's own."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
import plugrt.array_api as xp
from plugrt.errors import InvalidArgument, NotAnArray, ShapeError
from support.jax_oracle import jax
from support.numpy_oracle import INTEGERS, identical, same, sample, traced

BINARY: list[Callable[..., Any]] = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip
A = np.array([1.5, 2, 4], np.float32)
B = np.array([2, 0.5, 4], np.float32)
I = np.array([1, 5, 7], np.int32)  # noqa: E741
X, Y, J = map(xp.asarray, (A, B, I))


def both(function: Callable[..., Any], *arrays: Any) -> list[Any]:
    """Returns the results of an operator, eager and traced."""
    return [function(*arrays), traced(function)(*arrays)]


@pytest.mark.parametrize("op", BINARY)
def test_binary(op: Callable[..., Any]) -> None:
    for result in both(op, X, Y):
        same(result, op(A, B))
    for result in [*both(lambda x: op(x, 2), X), *both(lambda x: op(x, 2.0), X)]:
        same(result, op(A, np.float32(2)))
    for result in both(lambda x: op(3, x), X):
        same(result, op(np.float32(3), A))


def test_unary() -> None:
    for op in (operator.neg, operator.pos, abs):
        for result in both(op, X - 2):
            identical(result, op(A - 2))
    identical(round(X), np.round(A).astype(np.int32))
    identical(~J, ~I)
    identical(~(X > 2), ~(A > 2))
    same(round(X, 1), np.round(A, 1))


def test_python_floats_are_exact_beside_doubles() -> None:
    x = xp.asarray(np.array([0.0, 1.0]))
    third = 1 / 3
    for result in [*both(lambda x: x + third, x), *both(lambda x: third + x, x)]:
        identical(result, np.array([third, 1 + third]))
    identical(xp.where(x > 0, x, 0.1), np.array([0.1, 1]))
    identical(x + 0.1j, np.array([0.1j, 1 + 0.1j]))


def test_the_sign_of_a_zero_scalar_is_kept() -> None:
    x = xp.asarray(np.ones(1, np.float32))
    for zero, sign in [(0.0, False), (-0.0, True), (0.0, False), (-0.0, True)]:
        assert bool(xp.signbit(x * zero)[0]) is sign
        assert bool(xp.signbit(zero * x)[0]) is sign
    assert bool(xp.isnan(x * float("nan"))[0])


def test_scalars_of_equal_value_and_other_type_stay_apart() -> None:
    assert [(J + s).dtype.name for s in (1, 1.0, True, 1, 1.0)] == [
        "int32", "float32", "int32", "int32", "float32"
    ]  # fmt: skip


def test_integers_beyond_the_dtype_compare_as_numbers() -> None:
    for dtype in INTEGERS:
        a = np.array([0, 1, 127], dtype)
        for scalar in (-1, 300, 2**40, -(2**33)):
            if dtype == "uint64" and scalar < 0:
                continue  # the two have no common integer dtype
            for op in (operator.lt, operator.ge, operator.eq, operator.ne):
                identical(op(xp.asarray(a), scalar), op(a.astype(object), scalar).astype(np.bool_))


@pytest.mark.parametrize("make", [lambda a: a, lambda a: a[0], lambda a: a.astype(np.float64)])
def test_numpy_on_either_side_gives_way(make: Callable[..., Any]) -> None:
    other = make(B)
    for op in (operator.add, operator.mul, operator.lt, operator.eq, operator.pow):
        for result in (op(other, X), op(X, other)):
            assert isinstance(result, plugrt.Array)
        same(op(other, X), op(other, A) if other.ndim else op(np.float32(other), A))
    assert isinstance(traced(lambda x: other + x)(X), plugrt.Array)


def test_comparison_with_other_things_is_not_elementwise() -> None:
    assert (X == None) is False  # noqa: E711
    assert (X != None) is True  # noqa: E711
    assert (X == "text") is False
    assert (X != [1, 2]) is True
    for op in (operator.lt, operator.add, operator.matmul):
        with pytest.raises(TypeError, match=r"unsupported operand|not supported"):
            op(X, "text")
        with pytest.raises(TypeError, match=r"unsupported operand|not supported"):
            op(None, X)


@pytest.mark.parametrize("wrap", [lambda f: f, traced])
def test_lists_are_no_operands(wrap: Callable[..., Any]) -> None:
    """Earlier, an integer array times a list repeated the list, since Python uses ``__index__``."""
    for x in (xp.asarray(3), X):
        for call in (lambda x: x * [1, 2], lambda x: (1.5,) * x, lambda x: [1, 2] - x):
            with pytest.raises(
                NotAnArray, match=r"an operand of \w+ is the (list|tuple) .*asarray"
            ):
                wrap(call)(x)


def test_arrays_cannot_be_keys() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(X)


class TestMethods:
    A = sample((2, 3, 4), "float32", 3)
    X = xp.asarray(A)

    @pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min", "std", "var"])
    def test_reductions_take_the_axis_by_position(self, name: str) -> None:
        for args in [(), (1,), ((0, 2),), (-1,)]:
            same(getattr(self.X, name)(*args), getattr(self.A, name)(*args), tolerance=1e-4)
        same(getattr(self.X, name)(1, keepdims=True), getattr(self.A, name)(1, keepdims=True),
             tolerance=1e-4)  # fmt: skip

    def test_logic_positions_and_running_sums(self) -> None:
        same((self.X > 0).any(1), (self.A > 0).any(1))
        same((self.X > -9).all(), np.bool_(True))
        same(self.X.argmax(1), self.A.argmax(1), dtype="int32")
        same(self.X.argmin(), self.A.argmin(), dtype="int32")
        same(self.X.cumsum(1), self.A.cumsum(1))
        same(self.X.cumsum(), self.A.cumsum())
        same(self.X.cumprod(-1), self.A.cumprod(-1))
        same(self.X.sort(), np.sort(self.A))
        same(self.X.argsort(0), self.A.argsort(0, kind="stable"), dtype="int32")
        for found, wanted in zip((self.X > 2).nonzero(), (self.A > 2).nonzero(), strict=True):
            same(found, wanted, dtype="int32")

    def test_shapes(self) -> None:
        identical(self.X.reshape(4, 6), self.A.reshape(4, 6))
        identical(self.X.reshape((4, -1)), self.A.reshape(4, -1))
        identical(self.X.reshape(-1), self.A.reshape(-1))
        identical(self.X.transpose(), self.A.transpose())
        identical(self.X.transpose(2, 0, 1), self.A.transpose(2, 0, 1))
        identical(self.X.transpose((1, 0, 2)), self.A.transpose((1, 0, 2)))
        identical(self.X[0].T, self.A[0].T)
        identical(self.X.mT, self.A.swapaxes(-1, -2))
        identical(self.X.flatten(), self.A.flatten())
        identical(self.X.ravel(), self.A.ravel())
        identical(self.X[:, :1].squeeze(), self.A[:, :1].squeeze())
        identical(self.X[:, :1].squeeze(1), self.A[:, :1].squeeze(1))
        identical(self.X.swapaxes(0, -1), self.A.swapaxes(0, -1))
        identical(self.X.repeat(2, 1), self.A.repeat(2, 1))

    def test_elements(self) -> None:
        index = np.array([[0, 2], [1, 1]])
        identical(self.X.take(index, 1), self.A.take(index, 1))
        identical(self.X.take(index), self.A.take(index))
        identical(self.X.clip(-1, 1), self.A.clip(-1, 1))
        identical(self.X.clip(max=0), self.A.clip(max=0))
        identical(self.X.astype(np.int8), self.A.astype(np.int8))
        same(self.X.dot(xp.asarray(self.A[0].T)), self.A.dot(self.A[0].T))
        same(self.X.dot(2.0), self.A * 2)

    def test_rounding_to_places(self) -> None:
        numbers = np.array([1.25, -2.345, 17.5])
        for places in (0, 1, 2, -1):
            same(xp.asarray(numbers).round(places), numbers.round(places))
        identical(J.round(2), I)
        with pytest.raises(NotImplementedError, match="int32"):
            J.round(-1)

    def test_complex_parts(self) -> None:
        z = sample((3,), "complex64")
        x = xp.asarray(z)
        identical(x.real, z.real)
        identical(x.imag, z.imag)
        identical(x.conj(), z.conj())
        identical(X.imag, np.zeros(3, np.float32))

    def test_a_copy_outlives_its_source(self) -> None:
        x = xp.asarray(A)
        y, z = x.copy(), x.astype(x.dtype)
        x.delete()
        identical(y, A)
        identical(z, A)

    def test_to_device(self) -> None:
        last = plugrt.devices()[-1]
        moved = X.to_device(last)
        assert moved.devices() == {last}
        assert moved.committed
        with pytest.raises(InvalidArgument, match="stream"):
            X.to_device(last, stream=1)

    def test_traced(self) -> None:
        def f(x: Any) -> Any:
            return x.reshape(6, 4).T.sum(0, keepdims=True).astype(np.float64).squeeze().copy()

        identical(traced(f)(self.X), self.A.reshape(6, 4).T.sum(0).astype(np.float64))


def test_namespace() -> None:
    assert X.__array_namespace__() is xp
    assert X.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match=r"'1999\.1'.*2024\.12"):
        X.__array_namespace__(api_version="1999.1")


def test_matmul_and_divmod() -> None:
    m = sample((3, 3), "float32")
    for result in both(lambda x, y: x @ y, xp.asarray(m), X):
        same(result, m @ A)
    same(m @ X, m @ A)
    for q, r in both(divmod, X, Y):
        same(q, A // B)
        same(r, A % B)
    same(divmod(7, J)[1], np.int32(7) % I)


BITS: list[Callable[..., Any]] = [
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift
]  # fmt: skip


@pytest.mark.parametrize("op", BITS)
def test_bits(op: Callable[..., Any]) -> None:
    for result in both(op, J, J[::-1]):
        identical(result, op(I, I[::-1]))
    for result in [*both(lambda x: op(x, 2), J), *both(lambda x: op(2, x), J)]:
        assert result.dtype == np.int32
    identical(op(2, J), op(np.int32(2), I))


VIEWED = ("bool", "int8", "uint16", "int32", "float32", "float64", "complex64", "complex128")


@pytest.mark.parametrize("dtype", VIEWED)
def test_view_has_the_bits_that_numpys_has(dtype: str) -> None:
    whole = np.arange(32).reshape(2, 16) % 2
    a = (whole + 0.5j * whole).astype(dtype) if dtype.startswith("complex") else whole.astype(dtype)
    wanted = [d for d in VIEWED if d != "bool" or dtype == "bool"]
    found = plugrt.jit(lambda x: [x.view(d) for d in wanted])(a)
    for d, one in zip(wanted, found, strict=True):
        expected = a.view(d)
        assert (one.shape, one.dtype, np.asarray(one).tobytes()) == (
            expected.shape, expected.dtype, expected.tobytes(),
        )  # fmt: skip
    assert xp.asarray(np.float32(1)).view(np.int32).shape == ()
    for wide in ("int64", "complex64"):
        with pytest.raises(ShapeError, match=f"float32.3. as {wide}"):
            xp.zeros(3, dtype=xp.float32).view(wide)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, -2, True])
def test_an_integer_power_of_a_complex_number_is_a_product(exponent: int) -> None:
    z = np.array([3j, 0.7j, -2.3j, 1 + 1j], np.complex64)
    expected = np.asarray(jax.numpy.asarray(z) ** exponent)
    for found in (xp.asarray(z) ** exponent, plugrt.jit(lambda z: z**exponent)(z)):
        np.testing.assert_array_equal(np.asarray(found), expected)


_WITH_INTEGERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "+": lambda xp, x, n: x + n,
    "reversed |": lambda xp, x, n: n | x,
    "<<": lambda xp, x, n: x << n,
    "maximum": lambda xp, x, n: xp.maximum(x, n),
    "where": lambda xp, x, n: xp.where(x > 1, x, n),
    "clip": lambda xp, x, n: xp.clip(x, n, None),
    "at.set": lambda xp, x, n: x.at[0].set(n),
    "at.add": lambda xp, x, n: x.at[0].add(n),
    "full_like": lambda xp, x, n: xp.full_like(x, n),
    "asarray": lambda xp, x, n: xp.asarray(n, dtype=x.dtype),
}


@pytest.mark.parametrize("dtype", [np.int16, np.uint8, np.int32, np.uint32])
@pytest.mark.parametrize("operation", _WITH_INTEGERS)
def test_python_integers_that_the_dtype_cannot_hold(operation: str, dtype: Any) -> None:
    call, host = _WITH_INTEGERS[operation], np.asarray([1, 2], dtype)

    def outcome(library: Any, x: Any, n: Any, form: Callable[..., Any] = lambda f: f) -> Any:
        try:
            return np.asarray(form(lambda x: call(library, x, n))(x)).tolist()
        except OverflowError:
            return OverflowError

    x = xp.asarray(host)
    for n in (-1, 300, 1 << 32, 1 << 40, -(1 << 31) - 1, 1 << 63):
        with jax.enable_x64(False):
            expected = outcome(jax.numpy, jax.numpy.asarray(host), n)
        assert outcome(xp, x, n) == expected, n
        if expected is OverflowError:  # the others would be compiled once more
            assert outcome(xp, x, n, traced) is expected, n
    if dtype is np.uint32:  # which holds it, though JAX refuses all beyond int32
        large = 3_000_000_000
        assert outcome(xp, x, large) == outcome(xp, x, np.uint32(large))


@pytest.mark.parametrize("enable_x64", [False, True])
def test_unsigned_integers_beyond_int32_are_assigned_and_filled(enable_x64: bool) -> None:
    """Differs from JAX: `lax.full` of a Python integer that the dtype cannot hold, `full` of one
    that the default integer cannot hold | wrap around | `OverflowError`.
    """
    large, dtype = (1 << 63, np.uint64) if enable_x64 else (3_000_000_000, np.uint32)
    with plugrt.config.override(enable_x64=enable_x64):
        x = xp.asarray(np.asarray([1, 2], dtype))
        for found in (x.at[0].set(large), plugrt.jit(lambda v: v.at[0].set(large))(x)):
            assert (found.dtype, found.tolist()) == (dtype, [large, 2])
        x[1] = large
        assert x.tolist() == [1, large]
        assert plugrt.lax.full((2,), large, dtype).tolist() == [large] * 2
        for call in (
            lambda: plugrt.lax.full((2,), 2 * large, dtype),
            lambda: plugrt.lax.full((2,), large, np.int32),
            lambda: xp.full((2,), large),
        ):
            with pytest.raises(OverflowError, match="does not fit"):
                call()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint32", "float32"])
def test_powers_to_large_python_integers(dtype: str) -> None:
    x = np.asarray([0, 1, 2, 3, 5]).astype(dtype)
    ours, theirs = xp.asarray(x), jax.numpy.asarray(x)
    for n in (63, 64, 65, 100, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 32, (1 << 70) + 1):
        expected = np.asarray(theirs**n)
        for found in (ours**n, xp.pow(ours, n), plugrt.jit(lambda v, n=n: v**n)(ours)):
            assert found.dtype == expected.dtype, n
            np.testing.assert_allclose(np.asarray(found), expected, 1e-5, err_msg=str(n))
    if dtype == "float32":
        np.testing.assert_array_equal(ours ** -(1 << 40), theirs ** -(1 << 40))
