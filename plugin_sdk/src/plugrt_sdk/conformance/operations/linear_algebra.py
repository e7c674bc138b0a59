"""Samples of fft, cholesky and triangular_solve, which the reference interpreter lacks."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt_sdk.conformance.operations.sample import COMPLEX, Samples, wide
from plugrt_sdk.testing.program_text import ProgramText, i64s, typed

SAMPLES = Samples()
_NOT_INTERPRETED = {"interpreted": False, "of_largest": True}


def _transform(p: ProgramText, x: Any, kind: str, length: int, gives: str) -> None:
    p.apply("fft", [p.argument(x)], [gives],
            f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {i64s(length)}")  # fmt: skip


@SAMPLES.add("fft", ("complex64", "complex128"), ulps=16, **_NOT_INTERPRETED)
def fft(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Transforms of complex rows, forwards and backwards"""
    x = (random.normal(size=(3, 12)) + 1j * random.normal(size=(3, 12))).astype(dtype)
    for kind in ("FFT", "IFFT"):
        _transform(p, x, kind, 12, typed((3, 12), dtype))
    return np.fft.fft(wide(x)), np.fft.ifft(wide(x))


@SAMPLES.add("fft", ("float32",), variant="real", ulps=16, **_NOT_INTERPRETED)
def rfft(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Transforms of real rows, of even and of odd length"""
    even, odd = (random.normal(size=(3, n)).astype(dtype) for n in (12, 9))
    _transform(p, even, "RFFT", 12, typed((3, 7), "complex64"))
    _transform(p, odd, "RFFT", 9, typed((3, 5), "complex64"))
    return [np.fft.rfft(wide(x)).astype(np.complex64) for x in (even, odd)]


@SAMPLES.add("fft", ("complex64",), variant="to_real", ulps=16, **_NOT_INTERPRETED)
def irfft(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Transforms back to real rows"""
    x = np.fft.rfft(random.normal(size=(3, 12))).astype(dtype)
    _transform(p, x, "IRFFT", 12, typed((3, 12), "float32"))
    return [np.fft.irfft(wide(x), 12).astype(np.float32)]


def _positive(random: np.random.Generator, dtype: str) -> Any:
    """Returns two symmetric matrices whose eigenvalues are above 1."""
    x = random.normal(size=(2, 5, 5))
    return (x @ x.transpose(0, 2, 1) + 5 * np.eye(5)).astype(dtype)


def _keep_triangle(p: ProgramText, value: Any, lower: bool, dtype: str) -> None:
    """Sets elements of a factor to zero that the specification leaves open."""
    places = typed((2, 5, 5), "int32")
    rows, columns = (
        p.apply("iota", [], [places], f"iota_dimension = {d} : i64", returned=False)[0]
        for d in (1, 2)
    )
    direction = "GE" if lower else "LE"
    [inside] = p.apply(
        "compare", [rows, columns], [typed((2, 5, 5), "bool")],
        f"comparison_direction = #stablehlo<comparison_direction {direction}>", returned=False,
    )  # fmt: skip
    kind = typed((2, 5, 5), dtype)
    p.apply("select", [inside, value, p.constant("0.0", kind)], [kind])


@SAMPLES.add("cholesky", ("float32", "float64"), ulps=64, **_NOT_INTERPRETED)
def cholesky(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """The lower and the upper factor of symmetric matrices"""
    x = _positive(random, dtype)
    a = p.argument(x)
    for lower in (True, False):
        [factor] = p.apply("cholesky", [a], [a[1]], f"lower = {str(lower).lower()}",
                           returned=False)  # fmt: skip
        _keep_triangle(p, factor, lower, dtype)
    found = np.linalg.cholesky(wide(x))
    return found, found.transpose(0, 2, 1)


@SAMPLES.add("triangular_solve", ("float32", "float64", *COMPLEX), ulps=256, **_NOT_INTERPRETED)
def triangular_solve(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Lower and upper matrices, on either side, transposed and not, unit diagonals"""
    a = random.normal(size=(2, 6, 6)) / 6 + 2 * np.eye(6)
    if "complex" in dtype:
        a = a + 1j * random.normal(size=(2, 6, 6)) / 6
    a, b = a.astype(dtype), random.normal(size=(2, 6, 6)).astype(dtype)
    x, y, results = p.argument(a), p.argument(b), []
    for left, lower, unit, transpose in (
        (True, True, False, "NO_TRANSPOSE"), (True, False, False, "TRANSPOSE"),
        (False, True, True, "NO_TRANSPOSE"), (False, False, False, "ADJOINT"),
    ):  # fmt: skip
        words = [str(v).lower() for v in (left, lower, unit)]
        p.apply("triangular_solve", [x, y], [y[1]],
                f"left_side = {words[0]}, lower = {words[1]}, unit_diagonal = {words[2]}, "
                f"transpose_a = #stablehlo<transpose {transpose}>")  # fmt: skip
        results.append(_solve(wide(a), wide(b), left, lower, unit, transpose))
    return results


def _solve(a: Any, b: Any, left: bool, lower: bool, unit: bool, transpose: str) -> Any:
    matrix = np.tril(a) if lower else np.triu(a)
    if unit:
        matrix = matrix - matrix * np.eye(6) + np.eye(6)
    if transpose != "NO_TRANSPOSE":
        matrix = matrix.swapaxes(1, 2)
    if transpose == "ADJOINT":
        matrix = matrix.conj()
    if left:
        return np.linalg.solve(matrix, b)
    return np.linalg.solve(matrix.swapaxes(1, 2), b.swapaxes(1, 2)).swapaxes(1, 2)
