"""Programs for every StableHLO operation, of random values and shapes: `CASES`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plugrt_sdk.testing.program_text import ProgramText, body, i64s, named_dtype, typed
from support.stablehlo_text import COMPLEX, EIGHTS, FLOATS, INTEGERS, NARROW, integral, sample

Case = Callable[[ProgramText, np.random.Generator], None]
CASES: dict[str, Case] = {}
"""The name of a case to a function that adds operations, of random values, to a program."""
ULPS: dict[str, float] = {
    "atan2": 64, "batch_norm": 1 << 14, "cbrt": 16, "cholesky": 512, "cosine": 32,
    "exponential": 16, "exponential_minus_one": 32, "fft": 512, "log": 16, "log_plus_one": 64,
    "logistic": 16, "power": 64, "sine": 32, "tan": 32, "tanh": 16, "triangular_solve": 4096,
}  # fmt: skip
"""Allowed differences of results in units in the last place; 8 otherwise, 2 for small floats."""


def _case(function: Case) -> Case:
    CASES[function.__name__.rstrip("_")] = function
    return function


def _elementwise(name: str, dtypes: tuple[str, ...], arity: int, result: str = "") -> None:
    def write(program: ProgramText, rng: np.random.Generator) -> None:
        for dtype in dtypes:
            shape = (*map(int, rng.integers(1, 6, rng.integers(0, 3))), 9)
            operands = [program.argument(sample(rng, shape, dtype)) for _ in range(arity)]
            kind = {"": dtype, "real": _real(dtype)}.get(result, result)
            program.apply(name, operands, [typed(shape, kind)])

    CASES[name] = write


def _real(dtype: str) -> str:
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


_SIGNED = tuple(n for n in INTEGERS if n[0] == "i")
_NUMBERS = (*INTEGERS, *NARROW, *FLOATS, *COMPLEX)
for _name in ("add", "multiply"):
    _elementwise(_name, ("bool", *_NUMBERS), 2)
_elementwise("subtract", _NUMBERS, 2)
for _name in ("divide", "remainder"):
    _elementwise(_name, (*INTEGERS, *FLOATS), 2)
for _name in ("maximum", "minimum"):
    _elementwise(_name, ("bool", *INTEGERS, *NARROW, *FLOATS), 2)
for _name in ("and", "or", "xor"):
    _elementwise(_name, ("bool", *INTEGERS, *NARROW), 2)
for _name in ("shift_left", "shift_right_arithmetic", "shift_right_logical"):
    _elementwise(_name, INTEGERS, 2)
_elementwise("power", ("float32", "float64"), 2)
_elementwise("atan2", ("float32", "float64", "bfloat16"), 2)
_elementwise("not", ("bool", *INTEGERS, *NARROW), 1)
for _name in ("popcnt", "count_leading_zeros"):
    _elementwise(_name, INTEGERS, 1)
_elementwise("negate", (*INTEGERS, *FLOATS, *COMPLEX), 1)
_elementwise("sign", (*_SIGNED, *FLOATS), 1)
_elementwise("abs", (*_SIGNED, *FLOATS, *COMPLEX), 1, "real")
for _name in ("ceil", "floor", "round_nearest_afz", "round_nearest_even", "cbrt"):
    _elementwise(_name, FLOATS, 1)
for _name in (
    "cosine", "sine", "tanh", "exponential", "exponential_minus_one", "log", "log_plus_one",
    "sqrt", "rsqrt", "logistic", "tan",
):  # fmt: skip
    _elementwise(_name, ("bfloat16", "float16", "float32", "float64"), 1)
_elementwise("is_finite", FLOATS, 1, "bool")
for _name in ("real", "imag"):
    _elementwise(_name, COMPLEX, 1, "real")


@_case
def complex_(program: ProgramText, rng: np.random.Generator) -> None:
    for part, whole in (("float32", "complex64"), ("float64", "complex128")):
        operands = [program.argument(sample(rng, (4, 3), part)) for _ in range(2)]
        program.apply("complex", operands, [typed((4, 3), whole)])


@_case
def compare(program: ProgramText, rng: np.random.Generator) -> None:
    for dtype in ("bool", *INTEGERS, *NARROW, *FLOATS):
        kind = "FLOAT" if "float" in dtype else "SIGNED" if dtype[0] == "i" else "UNSIGNED"
        operands = [program.argument(sample(rng, (40,), dtype)) for _ in range(2)]
        for direction in ("EQ", "NE", "LT", "LE", "GT", "GE"):
            for compare_type in (kind, "TOTALORDER") if dtype in FLOATS else (kind,):
                program.apply(
                    "compare", operands, [typed((40,), "bool")],
                    f"comparison_direction = #stablehlo<comparison_direction {direction}>, "
                    f"compare_type = #stablehlo<comparison_type {compare_type}>",
                )  # fmt: skip


@_case
def select(program: ProgramText, rng: np.random.Generator) -> None:
    for dtype in ("int32", "bfloat16", "float64", "complex64", "bool", "int4"):
        for shape in ((4, 5), ()):
            operands = [program.argument(sample(rng, (4, 5), dtype)) for _ in range(2)]
            which = program.argument(sample(rng, shape, "bool"))
            program.apply("select", [which, *operands], [typed((4, 5), dtype)])


@_case
def clamp(program: ProgramText, rng: np.random.Generator) -> None:
    for dtype in ("int32", "uint8", "float32", "bfloat16"):
        low, high = (program.argument(named_dtype(dtype).type(v)) for v in (1, 2))
        x = program.argument(sample(rng, (4, 5), dtype))
        program.apply("clamp", [low, x, high], [typed((4, 5), dtype)])


_CONVERTED = ("bool", *INTEGERS, *NARROW, *FLOATS, *EIGHTS, "complex64")
_FROM = np.array(
    [0, 1, -1, 2.5, -2.5, 3.5, 7, -8, 8, -9, 15, 127, 128, -128, -129, 255, 256, 448, 480, 1e5,
     -1e5, 3e9, -3e9, 2.0**31, 9.3e18, -9.3e18, 2e19, 1e-3, np.inf, -np.inf, np.nan]
)  # fmt: skip


@_case
def convert(program: ProgramText, rng: np.random.Generator) -> None:
    for source in _CONVERTED:
        if "int" in source or source == "bool":
            x = program.argument(sample(rng, (31,), source))
        else:
            with np.errstate(all="ignore"):
                x = program.argument(_FROM.astype(named_dtype(source)))
        for target in _CONVERTED:
            program.apply("convert", [x], [typed((31,), target)])


@_case
def bitcast_convert(program: ProgramText, rng: np.random.Generator) -> None:
    for source, shape, target, gives in (
        ("float32", (3, 2), "int32", (3, 2)), ("float32", (3,), "uint8", (3, 4)),
        ("uint8", (3, 4), "float32", (3,)), ("int64", (), "float64", ()),
        ("int4", (3, 2), "int8", (3,)), ("int8", (3,), "uint4", (3, 2)),
        ("bfloat16", (4, 2), "uint32", (4,)), ("uint32", (3,), "bfloat16", (3, 2)),
    ):  # fmt: skip
        x = program.argument(integral(rng, shape, source))
        program.apply("bitcast_convert", [x], [typed(gives, target)])


@_case
def reduce_precision(program: ProgramText, rng: np.random.Generator) -> None:
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        x = program.argument(sample(rng, (60,), dtype))
        for exponent, mantissa in ((5, 3), (8, 7), (4, 10)):
            program.apply(
                "reduce_precision", [x], [typed((60,), dtype)],
                f"exponent_bits = {exponent} : i32, mantissa_bits = {mantissa} : i32",
            )  # fmt: skip


@_case
def moves(program: ProgramText, rng: np.random.Generator) -> None:
    """Operations that move elements."""
    for dtype in ("float32", "bfloat16", "int4", "bool", "complex64"):
        x = program.argument(sample(rng, (2, 3, 4), dtype))
        t = lambda *shape, d=dtype: typed(shape, d)  # noqa: E731
        program.apply("transpose", [x], [t(4, 2, 3)], f"permutation = {i64s(2, 0, 1)}")
        program.apply("reshape", [x], [t(6, 4)])
        program.apply("reverse", [x], [t(2, 3, 4)], f"dimensions = {i64s(0, 2)}")
        program.apply(
            "slice", [x], [t(1, 2, 2)],
            f"start_indices = {i64s(1, 0, 1)}, limit_indices = {i64s(2, 3, 4)}, "
            f"strides = {i64s(1, 2, 2)}",
        )  # fmt: skip
        program.apply("concatenate", [x, x], [t(2, 6, 4)], "dimension = 1 : i64")
        program.apply(
            "broadcast_in_dim", [x], [t(2, 5, 3, 4)], f"broadcast_dimensions = {i64s(0, 2, 3)}"
        )
        one = program.argument(sample(rng, (4, 1), dtype))
        program.apply(
            "broadcast_in_dim", [one], [t(3, 4, 2)], f"broadcast_dimensions = {i64s(1, 2)}"
        )
        scalar = program.argument(sample(rng, (), dtype))
        program.apply("broadcast_in_dim", [scalar], [t(3, 0)], "broadcast_dimensions = array<i64>")
        for low, high, interior in (
            ((1, 0, -1), (0, 2, -1), (0, 1, 2)), ((-2, -3, 3), (0, 0, 0), (3, 0, 0)),
            ((-1, 5, -9), (2, -4, 1), (1, 2, 3)),
        ):  # fmt: skip
            shape = [
                n + max(n - 1, 0) * i + a + b
                for n, i, a, b in zip((2, 3, 4), interior, low, high, strict=True)
            ]
            program.apply(
                "pad", [x, scalar], [t(*shape)],
                f"edge_padding_low = {i64s(*low)}, edge_padding_high = {i64s(*high)}, "
                f"interior_padding = {i64s(*interior)}",
            )  # fmt: skip
        starts = [program.argument(np.int32(v)) for v in rng.integers(-3, 9, 3)]
        program.apply("dynamic_slice", [x, *starts], [t(1, 2, 3)], f"slice_sizes = {i64s(1, 2, 3)}")
        part = program.argument(sample(rng, (1, 2, 3), dtype))
        program.apply("dynamic_update_slice", [x, part, *starts], [t(2, 3, 4)])
    for dtype in (*INTEGERS, *NARROW, *FLOATS, "complex64"):
        program.apply("iota", [], [typed((3, 4), dtype)], "iota_dimension = 1 : i64")
    program.apply("get_dimension_size", [x], [typed((), "int32")], "dimension = 2 : i64")


def _precision(algorithm: str = "") -> str:
    default = "#stablehlo<precision DEFAULT>"
    return f"precision_config = [{default}, {default}]{algorithm}"


@_case
def dot_general(program: ProgramText, rng: np.random.Generator) -> None:
    for dtype, result in (
        ("float32", "float32"), ("float64", "float64"), ("bfloat16", "float32"),
        ("bfloat16", "bfloat16"), ("float16", "float16"), ("int8", "int32"), ("int32", "int32"),
        ("uint8", "uint32"), ("int64", "int64"), ("complex64", "complex64"),
        ("float8_e4m3fn", "float32"),
    ):  # fmt: skip
        batch, m, k, n = (int(v) for v in rng.integers(1, 6, 4))
        x = program.argument(integral(rng, (m, batch, k), dtype))
        y = program.argument(integral(rng, (k, n, batch), dtype))
        numbers = (
            "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [1], "
            "rhs_batching_dimensions = [2], lhs_contracting_dimensions = [2], "
            "rhs_contracting_dimensions = [0]>, "
        )
        program.apply("dot_general", [x, y], [typed((batch, m, n), result)], numbers + _precision())
        matrix, other = (
            program.argument(integral(rng, (4, 5), dtype)),
            program.argument(integral(rng, (5, 3), dtype)),
        )
        numbers = (
            "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], "
            "rhs_contracting_dimensions = [0]>, "
        )
        program.apply(
            "dot_general", [matrix, other], [typed((4, 3), result)], numbers + _precision()
        )


Pairs = Sequence[Sequence[int]]


def padded(padding: Pairs) -> str:
    """Returns the attribute of the elements that pad each dimension."""
    rows = ", ".join(f"[{before}, {after}]" for before, after in padding)
    return f"padding = dense<[{rows}]> : tensor<{len(padding)}x2xi64>"


def window_counts(
    shape: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    base_dilations: Sequence[int],
    dilations: Sequence[int],
    padding: Pairs,
) -> list[int]:
    """Returns how many windows there are in each dimension."""
    return [
        max(((n - 1) * base + 1 + before + after - (size - 1) * dilation - 1) // stride + 1, 0)
        for n, size, stride, base, dilation, (before, after) in zip(
            shape, sizes, strides, base_dilations, dilations, padding, strict=True
        )
    ]


@_case
def convolution(program: ProgramText, rng: np.random.Generator) -> None:
    for dtype in ("float32", "bfloat16", "int32"):
        for strides, padding, base, window, reversal, features, batches in (
            ((1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1), (0, 0), 1, 1),
            ((2, 1), ((1, 2), (3, -1)), (1, 2), (2, 1), (1, 0), 1, 1),
            ((1, 2), ((1, 1), (0, 1)), (2, 1), (1, 1), (0, 1), 2, 1),
            ((1, 1), ((1, 1), (1, 1)), (1, 1), (1, 2), (0, 0), 1, 2),
        ):
            x = program.argument(integral(rng, (2, 7, 6, 4), dtype))  # batch, space, feature
            kernel = program.argument(integral(rng, (3, 2, 4 // features, 6), dtype))
            sizes = window_counts((7, 6), (3, 2), strides, base, window, padding)
            flags = ", ".join("true" if r else "false" for r in reversal)
            program.apply(
                "convolution", [x, kernel], [typed((2 // batches, *sizes, 6), dtype)],
                "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
                f"window_strides = {i64s(*strides)}, {padded(padding)}, "
                f"lhs_dilation = {i64s(*base)}, rhs_dilation = {i64s(*window)}, "
                f"window_reversal = array<i1: {flags}>, feature_group_count = {features} : i64, "
                f"batch_group_count = {batches} : i64, {_precision()}",
            )  # fmt: skip


_BODIES = {"add": 0, "multiply": 1, "maximum": -3, "minimum": 3}
"""An operation to a value that changes none of `integral`'s: an initial value of a reduction."""


def _start(name: str, dtype: str) -> Any:
    value = 0 if name == "maximum" and dtype[0] == "u" else _BODIES[name]
    return named_dtype(dtype).type(value)


@_case
def reduce(program: ProgramText, rng: np.random.Generator) -> None:
    for dtype in ("int8", "int32", "uint16", "float32", "bfloat16", "bool"):
        for name in ("and", "or") if dtype == "bool" else _BODIES:
            shape = tuple(int(n) for n in rng.integers(0, 5, 3))
            values = sample if dtype == "bool" else integral
            x = program.argument(values(rng, shape, dtype))
            start = program.argument(
                np.bool_(name == "and") if dtype == "bool" else _start(name, dtype)
            )
            for axes in ((0,), (1, 2), (0, 1, 2)):
                rest = [n for d, n in enumerate(shape) if d not in axes]
                program.apply(
                    "reduce", [x, start], [typed(rest, dtype)], f"dimensions = {i64s(*axes)}",
                    [body(name, dtype)],
                )  # fmt: skip
    # The sum and, beside it, the position of the largest: two values at once, no ufunc.
    x = program.argument(rng.permutation(20).reshape(4, 5).astype("f4"))
    i = program.argument(np.broadcast_to(np.arange(5, dtype="i4"), (4, 5)))
    starts = [program.argument(np.float32(-np.inf)), program.argument(np.int32(0))]
    f, n, b = (typed((), d) for d in ("float32", "int32", "bool"))
    region = (
        f"^bb0(%a: {f}, %i: {n}, %b: {f}, %j: {n}): %c = stablehlo.compare GT, %a, %b : ({f}, {f}) "
        f"-> {b} %d = stablehlo.select %c, %a, %b : {b}, {f} %e = stablehlo.select %c, %i, %j : "
        f"{b}, {n} stablehlo.return %d, %e : {f}, {n}"
    )
    program.apply(
        "reduce", [x, i, *starts], [typed((4,), "float32"), typed((4,), "int32")],
        f"dimensions = {i64s(1)}", [region],
    )  # fmt: skip


@_case
def reduce_window(program: ProgramText, rng: np.random.Generator) -> None:
    for dtype in ("float32", "int32", "bfloat16"):
        for name in _BODIES:
            for sizes, strides, base, window, padding in (
                ((2, 3), (1, 2), (1, 1), (1, 1), ((0, 0), (0, 0))),
                ((3, 2), (2, 1), (2, 1), (1, 2), ((1, 2), (-1, 3))),
                ((1, 6), (1, 1), (1, 1), (1, 1), ((0, 0), (5, 0))),
                ((5, 1), (1, 1), (1, 1), (1, 1), ((0, 4), (0, 0))),
                ((1, 11), (1, 2), (1, 2), (1, 1), ((0, 0), (9, 3))),
                ((1, 9), (1, 1), (1, 1), (1, 2), ((0, 0), (16, 12))),
            ):
                x = program.argument(integral(rng, (5, 6), dtype))
                start = program.argument(_start(name, dtype))
                shape = window_counts((5, 6), sizes, strides, base, window, padding)
                program.apply(
                    "reduce_window", [x, start], [typed(shape, dtype)],
                    f"window_dimensions = {i64s(*sizes)}, window_strides = {i64s(*strides)}, "
                    f"base_dilations = {i64s(*base)}, window_dilations = {i64s(*window)}, "
                    f"{padded(padding)}", [body(name, dtype)],
                )  # fmt: skip


@_case
def select_and_scatter(program: ProgramText, rng: np.random.Generator) -> None:
    t, b = typed((), "float32"), typed((), "bool")
    choose = (
        f"^bb0(%a: {t}, %b: {t}): %c = stablehlo.compare GE, %a, %b : ({t}, {t}) -> {b} "
        f"stablehlo.return %c : {b}"
    )
    for sizes, strides, padding, gives in (
        ((2, 3), (2, 3), ((0, 0), (0, 0)), (2, 2)), ((3, 2), (1, 1), ((1, 1), (0, 1)), (4, 6)),
    ):  # fmt: skip
        x = program.argument(rng.permutation(24).reshape(4, 6).astype("f4"))
        source = program.argument(integral(rng, gives, "float32"))
        zero = program.argument(np.float32(0))
        program.apply(
            "select_and_scatter", [x, source, zero], [typed((4, 6), "float32")],
            f"window_dimensions = {i64s(*sizes)}, window_strides = {i64s(*strides)}, "
            f"{padded(padding)}", [choose, body("add", "float32")],
        )  # fmt: skip


@_case
def gather(program: ProgramText, rng: np.random.Generator) -> None:
    for dtype in ("float32", "int4", "complex64"):
        x = program.argument(sample(rng, (4, 5, 6), dtype))
        for indices, numbers, sizes, gives in (
            ((3, 1), "offset_dims = [1, 2], collapsed_slice_dims = [0], start_index_map = [0], "
             "index_vector_dim = 1", (1, 5, 6), (3, 5, 6)),
            ((2, 3), "offset_dims = [0, 2], collapsed_slice_dims = [2], start_index_map = [2, 0], "
             "index_vector_dim = 0", (2, 3, 1), (2, 3, 3)),
            ((4, 2, 1), "offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = "
             "[0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2",
             (1, 1, 6), (4, 2, 6)),
            ((7,), "offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [1], "
             "index_vector_dim = 1", (1, 1, 4), (7, 4)),
        ):  # fmt: skip
            i = program.argument(rng.integers(-2, 9, indices).astype("i4"))
            program.apply(
                "gather", [x, i], [typed(gives, dtype)],
                f"dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = {i64s(*sizes)}",
            )  # fmt: skip


@_case
def scatter(program: ProgramText, rng: np.random.Generator) -> None:
    t = typed((), "float32")
    general = (
        f"^bb0(%x: {t}, %y: {t}): %m = stablehlo.multiply %x, %x : {t} "
        f"%r = stablehlo.add %m, %y : {t} stablehlo.return %r : {t}"
    )
    for region in ("add", "multiply", "maximum", general):
        for indices, numbers, updates in (
            ((3, 1), "update_window_dims = [1, 2], inserted_window_dims = [0], "
             "scatter_dims_to_operand_dims = [0], index_vector_dim = 1", (3, 5, 6)),
            ((6, 2), "update_window_dims = [1], inserted_window_dims = [0, 1], "
             "scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 1", (6, 4)),
            ((4, 2, 1), "update_window_dims = [2], inserted_window_dims = [1], "
             "input_batching_dims = [0], scatter_indices_batching_dims = [0], "
             "scatter_dims_to_operand_dims = [1], index_vector_dim = 2", (4, 2, 6)),
        ):  # fmt: skip
            x = program.argument(integral(rng, (4, 5, 6), "float32"))
            i = program.argument(rng.integers(-1, 6, indices).astype("i8"))
            u = program.argument(integral(rng, updates, "float32"))
            inner = region if region == general else body(region, "float32")
            program.apply(
                "scatter", [x, i, u], [typed((4, 5, 6), "float32")],
                f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>", [inner],
            )  # fmt: skip


@_case
def sort(program: ProgramText, rng: np.random.Generator) -> None:
    b = typed((), "bool")
    for dtype in ("int32", "uint8", "float32", "bfloat16"):
        t, n = typed((), dtype), typed((), "int32")
        total = ", TOTALORDER" if "float" in dtype else ""
        x = program.argument(sample(rng, (7, 5), dtype))
        i = program.argument(np.arange(35, dtype="i4").reshape(7, 5))
        for less in (
            f"%c = stablehlo.compare LT, %x, %y{total} : ({t}, {t}) -> {b}",
            f"%c = stablehlo.compare GT, %x, %y{total} : ({t}, {t}) -> {b}",
            # By parity of the position, then by value: keys of both operands.
            f"%k = stablehlo.constant dense<1> : {n} %p = stablehlo.and %i, %k : {n} "
            f"%q = stablehlo.and %j, %k : {n} %l = stablehlo.compare LT, %p, %q : ({n}, {n}) -> "
            f"{b} %e = stablehlo.compare EQ, %p, %q : ({n}, {n}) -> {b} "
            f"%v = stablehlo.compare LT, %x, %y{total} : ({t}, {t}) -> {b} "
            f"%c = stablehlo.select %e, %v, %l : {b}, {b}",
            # Not an order of keys: compares sums with the positions, the second one doubled.
            f"%p = stablehlo.add %i, %i : {n} %q = stablehlo.add %j, %j : {n} "
            f"%l = stablehlo.compare LT, %p, %q : ({n}, {n}) -> {b} %m = stablehlo.not %l : {b} "
            f"%c = stablehlo.not %m : {b}",
        ):
            for axis in (0, 1):
                region = (
                    f"^bb0(%x: {t}, %y: {t}, %i: {n}, %j: {n}): {less} stablehlo.return %c : {b}"
                )
                program.apply(
                    "sort", [x, i], [typed((7, 5), dtype), typed((7, 5), "int32")],
                    f"dimension = {axis} : i64, is_stable = true", [region],
                )  # fmt: skip


@_case
def map_(program: ProgramText, rng: np.random.Generator) -> None:
    operands = [program.argument(sample(rng, (3, 4), "float32")) for _ in range(2)]
    program.apply(
        "map", operands, [typed((3, 4), "float32")], f"dimensions = {i64s(0, 1)}",
        [body("multiply", "float32")],
    )  # fmt: skip


@_case
def control_flow(program: ProgramText, rng: np.random.Generator) -> None:
    t, n, b = typed((3,), "float32"), typed((), "int32"), typed((), "bool")
    x = program.argument(integral(rng, (3,), "float32"))
    for index in (-1, 0, 1, 2, 7):
        which = program.argument(np.int32(index))
        branches = [
            f"%r = stablehlo.{name} {x[0]}, {x[0]} : {t} stablehlo.return %r : {t}"
            for name in ("add", "multiply", "subtract")
        ]
        program.apply("case", [which], [t], "", branches)
    for truth in (True, False):
        which = program.argument(np.bool_(truth))
        program.apply("if", [which], [t], "", branches[:2])
    limit, one = program.argument(np.int32(5)), program.constant("1", n)
    begin = program.constant("0", n)
    condition = (
        f"^bb0(%i: {n}, %s: {t}): %c = stablehlo.compare LT, %i, {limit[0]} : ({n}, {n}) -> {b} "
        f"stablehlo.return %c : {b}"
    )
    step = (
        f"^bb0(%i: {n}, %s: {t}): %j = stablehlo.add %i, {one[0]} : {n} "
        f"%u = stablehlo.add %s, {x[0]} : {t} stablehlo.return %j, %u : {n}, {t}"
    )
    program.apply("while", [begin, x], [n, t], "", [condition, step])
    program.apply("optimization_barrier", [x, limit], [t, n])


@_case
def fft(program: ProgramText, rng: np.random.Generator) -> None:
    real, whole = (
        sample(rng, (2, 4, 6), "complex64").real.copy(),
        sample(rng, (2, 4, 6), "complex64"),
    )
    r, c = program.argument(real), program.argument(whole)
    for name, x, gives, dtype, lengths in (
        ("FFT", c, (2, 4, 6), "complex64", (6,)), ("IFFT", c, (2, 4, 6), "complex64", (4, 6)),
        ("RFFT", r, (2, 4, 4), "complex64", (4, 6)), ("IRFFT", c, (2, 4, 10), "float32", (10,)),
        ("FFT", c, (2, 4, 6), "complex64", (2, 4, 6)),
    ):  # fmt: skip
        program.apply(
            "fft", [x], [typed(gives, dtype)],
            f"fft_type = #stablehlo<fft_type {name}>, fft_length = {i64s(*lengths)}",
        )  # fmt: skip


@_case
def cholesky(program: ProgramText, rng: np.random.Generator) -> None:
    for dtype in ("float32", "float64"):
        a = rng.normal(size=(2, 5, 5))
        spd = (a @ a.transpose(0, 2, 1) + 5 * np.eye(5)).astype(dtype)
        x = program.argument(spd)
        t = typed((2, 5, 5), dtype)
        for lower in ("true", "false"):
            [factor] = program.apply("cholesky", [x], [t], f"lower = {lower}", returned=False)
            # The other triangle is undefined.
            rows, columns = (
                program.apply("iota", [], [typed((2, 5, 5), "int32")],
                              f"iota_dimension = {d} : i64", returned=False)[0]
                for d in (1, 2)
            )  # fmt: skip
            direction = "GE" if lower == "true" else "LE"
            [inside] = program.apply(
                "compare", [rows, columns], [typed((2, 5, 5), "bool")],
                f"comparison_direction = #stablehlo<comparison_direction {direction}>",
                returned=False,
            )  # fmt: skip
            zero = program.constant("0.0", t)
            program.apply("select", [inside, factor, zero], [t])


@_case
def triangular_solve(program: ProgramText, rng: np.random.Generator) -> None:
    for dtype in ("float32", "float64", "complex64"):
        a = sample(rng, (2, 20, 20), "complex64") / 20 + 2 * np.eye(20)
        a = a.astype(dtype) if "complex" in dtype else a.real.astype(dtype)
        b = integral(rng, (2, 20, 3), dtype)
        for left in ("true", "false"):
            for lower in ("true", "false"):
                for unit in ("true", "false"):
                    for transpose in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"):
                        x = program.argument(a)
                        y = program.argument(b if left == "true" else b.transpose(0, 2, 1).copy())
                        program.apply(
                            "triangular_solve", [x, y], [y[1]],
                            f"left_side = {left}, lower = {lower}, unit_diagonal = {unit}, "
                            f"transpose_a = #stablehlo<transpose {transpose}>",
                        )  # fmt: skip


@_case
def rng_bit_generator(program: ProgramText, rng: np.random.Generator) -> None:
    for algorithm, words in (("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 3)):
        for dtype in ("uint32", "uint64", "uint16", "uint8"):
            for shape in ((), (4,), (5,), (3, 4), (3, 5), (2, 3, 3)):
                state = rng.integers(0, 2**63, words, dtype="u8")
                state[1] = rng.choice([state[1], np.uint64(2**64 - 2)])
                x = program.argument(state)
                program.apply(
                    "rng_bit_generator", [x], [x[1], typed(shape, dtype)],
                    f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>",
                )  # fmt: skip


@_case
def batch_norm(program: ProgramText, rng: np.random.Generator) -> None:
    t, v = typed((2, 3, 4), "float32"), typed((3,), "float32")
    x = program.argument(rng.normal(size=(2, 3, 4)).astype("f4"))
    scale, offset, mean = (program.argument(rng.normal(size=3).astype("f4")) for _ in range(3))
    variance = program.argument(rng.uniform(1, 2, 3).astype("f4"))
    attributes = "epsilon = 0.001 : f32, feature_index = 1 : i64"
    program.apply("batch_norm_inference", [x, scale, offset, mean, variance], [t], attributes)
    program.apply("batch_norm_training", [x, scale, offset], [t, v, v], attributes)
    program.apply("batch_norm_grad", [x, scale, mean, variance, x], [t, v, v], attributes)


def write(name: str, seed: int = 0) -> ProgramText:
    """Returns the program of a case, with values and shapes of a seed."""
    program = ProgramText()
    CASES[name](program, np.random.default_rng([seed, *name.encode()]))
    return program
