"""Measures operations on the NumPy backend beside the same operations in NumPy.

A host launches a program of one operation on the backend's client; the result is ready when the
call returns. The arrays have 1,048,576 float32 elements if a row does not state another size.
Budgets: elementwise operations 3 times NumPy's time; a 256 x 256 product 5 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import plugrt
from harness import Comparison, arguments, compare_sides, human, report_sides, timed
from plugrt import array_api as xp

ELEMENTWISE = 3.0
MATMUL_SECONDS = 0.005
X = np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32)
Y = np.random.default_rng(1).standard_normal((1024, 1024)).astype(np.float32)
INDICES = np.random.default_rng(2).integers(0, 1024, 1024)
SMALL = X[:256, :256].copy()

CASES: list[tuple[str, Callable[..., Any], Callable[..., Any], tuple[Any, ...], float | None]] = [
    ("x + y", lambda x, y: x + y, np.add, (X, Y), ELEMENTWISE),
    ("x * y", lambda x, y: x * y, np.multiply, (X, Y), ELEMENTWISE),
    ("x / y", lambda x, y: x / y, np.divide, (X, Y), ELEMENTWISE),
    ("maximum(x, y)", xp.maximum, np.maximum, (X, Y), ELEMENTWISE),
    ("maximum(x, 0)", lambda x: xp.maximum(x, 0), lambda x: np.maximum(x, 0), (X,), ELEMENTWISE),
    ("minimum(x, 0)", lambda x: xp.minimum(x, 0), lambda x: np.minimum(x, 0), (X,), ELEMENTWISE),
    ("exp(x)", xp.exp, np.exp, (X,), ELEMENTWISE),
    ("tanh(x)", xp.tanh, np.tanh, (X,), ELEMENTWISE),
    ("sqrt(abs(x))", lambda x: xp.sqrt(abs(x)), lambda x: np.sqrt(abs(x)), (X,), ELEMENTWISE),
    ("where(x < y, x, y)", lambda x, y: xp.where(x < y, x, y),
     lambda x, y: np.where(x < y, x, y), (X, Y), ELEMENTWISE),
    ("x + y, int32", lambda x, y: x + y, np.add,
     (X.view(np.int32), Y.view(np.int32)), ELEMENTWISE),
    ("x.T, copied", lambda x: x.T + 0, lambda x: x.T + np.float32(0), (X,), ELEMENTWISE),
    ("sum(x)", xp.sum, np.sum, (X,), ELEMENTWISE),
    ("sum(x, axis=0)", lambda x: xp.sum(x, axis=0), lambda x: x.sum(0), (X,), ELEMENTWISE),
    ("max(x, axis=1)", lambda x: xp.max(x, axis=1), lambda x: x.max(1), (X,), ELEMENTWISE),
    ("argmax(x, axis=1)", lambda x: xp.argmax(x, axis=1), lambda x: x.argmax(1), (X,), None),
    ("argmin(x)", xp.argmin, np.argmin, (X,), None),
    ("cumulative sum", lambda x: xp.cumulative_sum(x, axis=1), lambda x: x.cumsum(1), (X,), None),
    ("x[indices]", lambda x: x[INDICES], lambda x: x[INDICES], (X,), None),
    ("sort(x)", xp.sort, np.sort, (X,), None),
    ("x @ y, 256 x 256", lambda x: x @ x, lambda x: x @ x, (SMALL,), None),
    ("x @ y, 1024 x 1024", lambda x, y: x @ y, np.matmul, (X, Y), None),
]  # fmt: skip
"""A name, the plugrt function, the NumPy function, arguments, and the largest allowed ratio."""


def measure(
    name: str, function: Any, reference: Any, given: tuple[Any, ...], budget: float | None
) -> Comparison:
    """Compares one program on the backend with NumPy."""
    device = plugrt.get_backend("numpy").devices()[0]
    compiled = plugrt.jit(function, device=device).lower(*given).compile()
    held = [plugrt.device_put(x, device) for x in given]
    np.testing.assert_allclose(np.asarray(compiled(*held)), reference(*given), rtol=1e-3, atol=1e-3)
    timers = {
        "backend": timed(lambda: compiled(*held)),
        "NumPy": timed(lambda: reference(*given)),
    }
    return compare_sides(name, timers, {} if budget is None else {"NumPy": budget})


def main() -> None:
    """Prints the table, and whether the small product is within its budget."""
    parsed = arguments(__doc__)
    rows = [measure(*case) for case in CASES]
    report_sides("The NumPy backend beside NumPy", rows, parsed.json)
    [small] = [row.seconds["backend"] for row in rows if "256 x 256" in row.name]
    verdict = "holds" if small <= MATMUL_SECONDS else "OVER"
    print(f"256 x 256 product: {human(small)} of {human(MATMUL_SECONDS)} {verdict}")


if __name__ == "__main__":
    main()
