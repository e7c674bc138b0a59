"""Programs that test StableHLO operations on dtypes of two and four bits: `TRIALS`.

`tools/narrow_types.py` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plugrt_sdk.testing.program_text import ProgramText, Value, body, i64s, named_dtype, typed

DTYPES = ("int2", "uint2", "int4", "uint4", "float4_e2m1fn")
Trial = Callable[["Writer", str], None]
TRIALS: dict[str, Trial] = {}
"""Functions that add a named operation to a program, with all values and several shapes.
"""


class Writer(ProgramText):
    """A program whose narrow arguments and results are fused with other operations if requested."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self._fused = fused

    def given(self, array: Any) -> Value:
        """Adds an argument."""
        value = self.argument(array)
        return self._between(value) if array.size else value

    def make(self, *args: Any, **kwargs: Any) -> list[Value]:
        """Adds an operation, and its values to the results."""
        made = self.apply(*args, **kwargs, returned=False)
        made = [self._between(value) for value in made]
        self.results += made
        return made

    def _between(self, value: Value) -> Value:
        if not self._fused or not any(value[1].endswith(f"{n}>") for n in _SPELT):
            return value
        shape = value[1].removeprefix("tensor<").rpartition("x")[0]
        sizes = [int(n) for n in shape.split("x")] if shape else []
        mask = self.argument(np.arange(int(np.prod(sizes))).reshape(sizes) % 3 != 0)
        [turned] = self.apply("select", [mask, value, value], [value[1]], returned=False)
        [other] = self.apply(
            "reverse",
            [turned],
            [value[1]],
            f"dimensions = {i64s(*range(len(sizes)))}",
            returned=False,
        )
        return self.apply("select", [mask, turned, other], [value[1]], returned=False)[0]


_SPELT = tuple(typed((), name)[7:-1] for name in DTYPES)


def trial(function: Trial) -> Trial:
    TRIALS[function.__name__.rstrip("_")] = function
    return function


def values(dtype: str, shape: Sequence[int], seed: int = 0) -> np.ndarray[Any, Any]:
    """Returns all values of a dtype repeatedly, in a random order by the seed."""
    bits = 2 if dtype.endswith("2") else 4
    order = np.random.default_rng(seed).permutation(1 << bits)
    raw = np.resize(order, int(np.prod(shape))).astype(np.uint8).reshape(shape)
    kind = named_dtype(dtype)
    if dtype.startswith("int"):
        return ((raw.astype(np.int8) ^ (1 << bits - 1)) - (1 << bits - 1)).astype(kind)
    return raw.astype(kind) if "int" in dtype else raw.view(kind)


def pairs(dtype: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Returns all pairs of values of a dtype, and one more, for an odd length."""
    each = values(dtype, (2 ** (2 if dtype.endswith("2") else 4),))
    one, two = np.repeat(each, each.size), np.tile(each, each.size)
    return np.concatenate([one, each[:1]]), np.concatenate([two, each[1:2]])


SHAPES = ((1,), (3, 7), (2, 3, 5), (64,), ())


def _elementwise(name: str, arity: int, of: str, result: str = "") -> None:
    def write(program: Writer, dtype: str) -> None:
        if not _applies(dtype, of):
            return
        operands = [_in_domain(name, x, n) for n, x in enumerate(pairs(dtype)[:arity])]
        program.make(
            name, [program.given(x) for x in operands], [typed(operands[0].shape, result or dtype)]
        )
        for shape in SHAPES:
            given = [
                program.given(_in_domain(name, values(dtype, shape, n), n)) for n in range(arity)
            ]
            program.make(name, given, [typed(shape, result or dtype)])

    TRIALS[name] = write


def _in_domain(name: str, x: np.ndarray[Any, Any], number: int) -> np.ndarray[Any, Any]:
    """Returns arguments whose results are finite and specified.

    float4 has neither infinities nor NaN, and a negative exponent of integers is undefined.
    """
    last = {"divide": 1, "remainder": 1, "power": 1, "log": 0, "rsqrt": 0, "sqrt": 0}.get(name)
    is_float = "float" in x.dtype.name
    if (number == last or name == "log_plus_one" or name == "power") and is_float:
        return np.where(x.astype("f4") <= 0, np.ones_like(x), x)
    if name == "power" and number == 1:
        return np.where(x.astype("i4") < 0, np.ones_like(x), x)
    return x


def _applies(dtype: str, of: str) -> bool:
    return {
        "all": True,
        "int": "int" in dtype,
        "float": "float" in dtype,
        "signed": not dtype.startswith("u"),
    }[of]


for _name in ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "power"):
    _elementwise(_name, 2, "all")
for _name in (
    "and",
    "or",
    "xor",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
):
    _elementwise(_name, 2, "int")
for _name in ("not", "popcnt", "count_leading_zeros"):
    _elementwise(_name, 1, "int")
_elementwise("negate", 1, "all")
for _name in ("sign", "abs"):
    _elementwise(_name, 1, "signed")
for _name in (
    "ceil",
    "floor",
    "round_nearest_afz",
    "round_nearest_even",
    "cbrt",
    "cosine",
    "sine",
    "tanh",
    "exponential",
    "exponential_minus_one",
    "log",
    "log_plus_one",
    "sqrt",
    "rsqrt",
    "logistic",
    "tan",
):
    _elementwise(_name, 1, "float")
_elementwise("atan2", 2, "float")
_elementwise("is_finite", 1, "float", "bool")


@trial
def compare(program: Writer, dtype: str) -> None:
    kind = "FLOAT" if "float" in dtype else "SIGNED" if dtype[0] == "i" else "UNSIGNED"
    x, y = pairs(dtype)
    for one, two in ((x, y), (values(dtype, (3, 7)), values(dtype, (3, 7), 1))):
        for direction in ("EQ", "NE", "LT", "LE", "GT", "GE"):
            program.make(
                "compare",
                [program.given(one), program.given(two)],
                [typed(one.shape, "bool")],
                f"comparison_direction = #stablehlo<comparison_direction {direction}>, "
                f"compare_type = #stablehlo<comparison_type {kind}>",
            )


@trial
def select(program: Writer, dtype: str) -> None:
    for shape in SHAPES:
        mask = program.argument(np.arange(int(np.prod(shape))).reshape(shape) % 2 == 0)
        given = [program.given(values(dtype, shape, n)) for n in range(2)]
        program.make("select", [mask, *given], [typed(shape, dtype)])


@trial
def clamp(program: Writer, dtype: str) -> None:
    for shape in SHAPES:
        low, high = (
            program.given(np.asarray(1, named_dtype(dtype)) * v)
            for v in (np.asarray(n, named_dtype(dtype)) for n in (0, 1))
        )
        program.make(
            "clamp", [low, program.given(values(dtype, shape)), high], [typed(shape, dtype)]
        )


_OTHERS = (
    "bool",
    "int8",
    "uint8",
    "int32",
    "uint32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "float8_e4m3fn",
    "complex64",
)


@trial
def convert_from(program: Writer, dtype: str) -> None:
    for target in (*DTYPES, *_OTHERS):
        for shape in SHAPES:
            program.make("convert", [program.given(values(dtype, shape))], [typed(shape, target)])


@trial
def convert_to(program: Writer, dtype: str) -> None:
    unsigned, bits = dtype.startswith("u"), 2 if dtype.endswith("2") else 4
    least = 0 if unsigned else -6 if "float" in dtype else -(1 << bits - 1)
    most = 6 if "float" in dtype else least + (1 << bits) - 1
    for source in _OTHERS:
        lowest = 0 if source.startswith("u") or source == "bool" else least
        each = np.arange(lowest, (1 if source == "bool" else most) + 1)
        for shape in SHAPES:
            x = np.resize(each, int(np.prod(shape))).reshape(shape).astype(named_dtype(source))
            program.make("convert", [program.given(x)], [typed(shape, dtype)])
        if "int" in source and "int" in dtype:  # integers wrap
            x = np.arange(-100, 100).astype(named_dtype(source))
            program.make("convert", [program.given(x)], [typed(x.shape, dtype)])


@trial
def bitcast_convert(program: Writer, dtype: str) -> None:
    bits = 2 if dtype.endswith("2") else 4
    for target, width in (
        ("int8", 8),
        ("uint8", 8),
        ("int4", 4),
        ("uint4", 4),
        ("int2", 2),
        ("uint2", 2),
        ("int16", 16),
        ("float4_e2m1fn", 4),
    ):
        if width == bits:
            if target == dtype:
                continue
            one, two = (5, 3), (5, 3)
        elif width > bits:
            one, two = (5, 3, width // bits), (5, 3)
        else:
            one, two = (5, 3), (5, 3, bits // width)
        program.make("bitcast_convert", [program.given(values(dtype, one))], [typed(two, target)])
        if width >= 8:
            raw = np.arange(15).reshape(5, 3) * 17 - 100
            x = program.given(raw.astype(named_dtype(target)))
            program.make("bitcast_convert", [x], [typed(one, dtype)])


def _moves(name: str, *forms: tuple[tuple[int, ...], tuple[int, ...], str]) -> None:
    def write(program: Writer, dtype: str) -> None:
        for shape, gives, attributes in forms:
            x = program.given(values(dtype, shape))
            program.make(name, [x], [typed(gives, dtype)], attributes)

    TRIALS[name] = write


_moves(
    "transpose",
    ((3, 7), (7, 3), f"permutation = {i64s(1, 0)}"),
    ((2, 3, 5), (5, 2, 3), f"permutation = {i64s(2, 0, 1)}"),
)
_moves("reshape", ((3, 7), (7, 3), ""), ((2, 3, 5), (30,), ""), ((1,), (), ""))
_moves(
    "reverse",
    ((3, 7), (3, 7), f"dimensions = {i64s(0, 1)}"),
    ((5,), (5,), f"dimensions = {i64s(0)}"),
)
_moves(
    "slice",
    (
        (3, 7),
        (2, 3),
        f"start_indices = {i64s(1, 1)}, limit_indices = {i64s(3, 7)}, strides = {i64s(1, 2)}",
    ),
    ((9,), (5,), f"start_indices = {i64s(3)}, limit_indices = {i64s(8)}, strides = {i64s(1)}"),
)
_moves(
    "broadcast_in_dim",
    ((3,), (3, 5), f"broadcast_dimensions = {i64s(0)}"),
    ((7,), (3, 7), f"broadcast_dimensions = {i64s(1)}"),
    ((), (9,), f"broadcast_dimensions = {i64s()}"),
)
_moves("optimization_barrier", ((3, 7), (3, 7), ""), ((5,), (5,), ""))


@trial
def concatenate(program: Writer, dtype: str) -> None:
    for axis, *shapes in (
        (0, (3,), (3,)),
        (0, (3,), (5,), (1,)),
        (0, (2, 7), (3, 7)),
        (1, (3, 7), (3, 5)),
        (0, (4,), (8,)),
        (2, (2, 3, 1), (2, 3, 4)),
    ):
        given = [program.given(values(dtype, s, n)) for n, s in enumerate(shapes)]
        gives = list(shapes[0])
        gives[axis] = sum(s[axis] for s in shapes)
        program.make("concatenate", given, [typed(gives, dtype)], f"dimension = {axis} : i64")


@trial
def pad(program: Writer, dtype: str) -> None:
    for shape, low, high, interior in (
        ((5,), (1,), (2,), (0,)),
        ((3, 7), (1, -1), (0, 2), (1, 0)),
        ((4,), (0,), (0,), (3,)),
    ):
        gives = [
            n + max(n - 1, 0) * i + a + b
            for n, i, a, b in zip(shape, interior, low, high, strict=True)
        ]
        x, fill = program.given(values(dtype, shape)), program.given(values(dtype, (), 3))
        program.make(
            "pad",
            [x, fill],
            [typed(gives, dtype)],
            f"edge_padding_low = {i64s(*low)}, edge_padding_high = {i64s(*high)}, "
            f"interior_padding = {i64s(*interior)}",
        )


@trial
def dynamic_slice(program: Writer, dtype: str) -> None:
    for shape, sizes in (((9,), (4,)), ((3, 7), (2, 3))):
        for start in (0, 1, 2, 9):
            starts = [program.argument(np.int32(start)) for _ in shape]
            program.make(
                "dynamic_slice",
                [program.given(values(dtype, shape)), *starts],
                [typed(sizes, dtype)],
                f"slice_sizes = {i64s(*sizes)}",
            )


@trial
def dynamic_update_slice(program: Writer, dtype: str) -> None:
    for shape, sizes in (((9,), (4,)), ((3, 7), (2, 3)), ((5,), (1,))):
        for start in (0, 1, 2, 9):
            starts = [program.argument(np.int32(start)) for _ in shape]
            x, y = program.given(values(dtype, shape)), program.given(values(dtype, sizes, 1))
            program.make("dynamic_update_slice", [x, y, *starts], [typed(shape, dtype)])


@trial
def iota(program: Writer, dtype: str) -> None:
    for shape, axis in (((2, 3), 1), ((3,), 0), ((2, 2), 0)):
        program.make("iota", [], [typed(shape, dtype)], f"iota_dimension = {axis} : i64")


@trial
def constant(program: Writer, dtype: str) -> None:
    for literal, shape in (
        ("1", (3,)),
        ("[1, 0, 1]", (3,)),
        ("[[0, 1, 1], [1, 1, 0]]", (2, 3)),
        ("1", ()),
        ("1", (0, 3)),
    ):
        text = literal if "int" in dtype else literal.replace("1", "1.0").replace("0,", "0.0,")
        text = text.replace("0]", "0.0]").replace("0.0.0", "0.0") if "float" in dtype else text
        text = text.replace("1.0.0", "1.0")
        value = program.constant(text, typed(shape, dtype))
        program.results.append(program._between(value) if 0 not in shape else value)


@trial
def gather(program: Writer, dtype: str) -> None:
    for shape, indices, numbers, sizes, gives in (
        (
            (9,),
            (4, 1),
            "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1",
            (1,),
            (4,),
        ),
        (
            (5, 3),
            (3, 1),
            "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
            "index_vector_dim = 1",
            (1, 3),
            (3, 3),
        ),
        (
            (4, 5, 6),
            (3, 1),
            "offset_dims = [1, 2], collapsed_slice_dims = [0], "
            "start_index_map = [0], index_vector_dim = 1",
            (1, 5, 6),
            (3, 5, 6),
        ),
    ):
        i = program.argument((np.arange(np.prod(indices)).reshape(indices) * 2 - 1).astype("i4"))
        program.make(
            "gather",
            [program.given(values(dtype, shape)), i],
            [typed(gives, dtype)],
            f"dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = {i64s(*sizes)}",
        )


def _assign(dtype: str) -> str:
    t = typed((), dtype)
    return f"^bb0(%x: {t}, %y: {t}): stablehlo.return %y : {t}"


@trial
def scatter(program: Writer, dtype: str) -> None:
    for region in (body("add", dtype), body("maximum", dtype), _assign(dtype)):
        for unique in ("true", "false"):
            for shape, numbers, updates in (
                (
                    (9,),
                    "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
                    "index_vector_dim = 1",
                    (3,),
                ),
                (
                    (5, 3),
                    "update_window_dims = [1], inserted_window_dims = [0], "
                    "scatter_dims_to_operand_dims = [0], index_vector_dim = 1",
                    (3, 3),
                ),
            ):
                i = program.argument(np.array([[1], [4], [0]], np.int32))
                x, u = program.given(values(dtype, shape)), program.given(values(dtype, updates, 1))
                program.make(
                    "scatter",
                    [x, i, u],
                    [typed(shape, dtype)],
                    f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>, "
                    f"unique_indices = {unique}",
                    [region],
                )


@trial
def sort(program: Writer, dtype: str) -> None:
    t, n, b = typed((), dtype), typed((), "int32"), typed((), "bool")
    for shape, axis in (((9,), 0), ((7, 5), 0), ((7, 5), 1)):
        x = program.given(values(dtype, shape))
        i = program.argument(np.arange(np.prod(shape), dtype="i4").reshape(shape))
        for operands in ([x], [x, i]):
            more = f", %i: {n}, %j: {n}" if len(operands) == 2 else ""
            region = (
                f"^bb0(%x: {t}, %y: {t}{more}): %c = stablehlo.compare LT, %x, %y : "
                f"({t}, {t}) -> {b} stablehlo.return %c : {b}"
            )
            program.make(
                "sort",
                operands,
                [typed(shape, dtype), typed(shape, "int32")][: len(operands)],
                f"dimension = {axis} : i64, is_stable = true",
                [region],
            )


def _start(program: Writer, dtype: str, name: str) -> Value:
    first = {"add": 0, "multiply": 1, "maximum": 0, "minimum": 1, "and": 1, "or": 0}[name]
    return program.given(np.asarray(first, named_dtype(dtype)))


_INNER = ("add", "multiply", "maximum", "minimum")


@trial
def reduce(program: Writer, dtype: str) -> None:
    for name in _INNER:
        for shape, axes in (((9,), (0,)), ((3, 7), (1,)), ((3, 7), (0,)), ((2, 3, 5), (0, 2))):
            rest = [n for d, n in enumerate(shape) if d not in axes]
            program.make(
                "reduce",
                [program.given(_exact(dtype, shape)), _start(program, dtype, name)],
                [typed(rest, dtype)],
                f"dimensions = {i64s(*axes)}",
                [body(name, dtype)],
            )
    # The maximum and its position, as in argmax.
    t, n, b = typed((), dtype), typed((), "int32"), typed((), "bool")
    region = (
        f"^bb0(%a: {t}, %i: {n}, %b: {t}, %j: {n}): %c = stablehlo.compare GT, %a, %b : ({t}, {t}) "
        f"-> {b} %q = stablehlo.compare EQ, %a, %b : ({t}, {t}) -> {b} "
        f"%l = stablehlo.compare LT, %i, %j : ({n}, {n}) -> {b} %m = stablehlo.and %q, %l : {b} "
        f"%o = stablehlo.or %c, %m : {b} %d = stablehlo.select %o, %a, %b : {b}, {t} "
        f"%e = stablehlo.select %o, %i, %j : {b}, {n} stablehlo.return %d, %e : {t}, {n}"
    )
    for shape, axis in (((3, 7), 1), ((9, 2), 0)):
        i = program.argument(np.arange(np.prod(shape), dtype="i4").reshape(shape))
        starts = [program.given(np.asarray(0, named_dtype(dtype))), program.argument(np.int32(999))]
        rest = [k for d, k in enumerate(shape) if d != axis]
        program.make(
            "reduce",
            [program.given(values(dtype, shape)), i, *starts],
            [typed(rest, dtype), typed(rest, "int32")],
            f"dimensions = {i64s(axis)}",
            [region],
        )


def _exact(dtype: str, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Returns floats whose sums and products do not depend on the order."""
    if "int" in dtype:
        return values(dtype, shape)
    few = np.resize([0.0, 1.0, -1.0, 1.0, 0.0, -1.0, 1.0], int(np.prod(shape))).reshape(shape)
    return few.astype(named_dtype(dtype))


@trial
def reduce_window(program: Writer, dtype: str) -> None:
    for name in _INNER:
        for shape, sizes, strides, padding, gives in (
            ((9,), (2,), (1,), ((0, 0),), (8,)),
            ((3, 7), (2, 3), (1, 2), ((0, 1), (1, 0)), (3, 3)),
            ((9,), (9,), (1,), ((8, 0),), (9,)),
            ((3, 7), (1, 7), (1, 1), ((0, 0), (6, 0)), (3, 7)),
        ):
            rows = ", ".join(f"[{a}, {b}]" for a, b in padding)
            program.make(
                "reduce_window",
                [program.given(_exact(dtype, shape)), _start(program, dtype, name)],
                [typed(gives, dtype)],
                f"window_dimensions = {i64s(*sizes)}, window_strides = {i64s(*strides)}, "
                f"padding = dense<[{rows}]> : tensor<{len(padding)}x2xi64>",
                [body(name, dtype)],
            )


@trial
def select_and_scatter(program: Writer, dtype: str) -> None:
    t, b = typed((), dtype), typed((), "bool")
    choose = (
        f"^bb0(%a: {t}, %b: {t}): %c = stablehlo.compare GE, %a, %b : ({t}, {t}) -> {b} "
        f"stablehlo.return %c : {b}"
    )
    for sizes, gives in (((2, 3), (2, 2)), ((1, 2), (4, 3))):
        given = [
            program.given(values(dtype, (4, 6))),
            program.given(_exact(dtype, gives)),
            program.given(np.asarray(0, named_dtype(dtype))),
        ]
        program.make(
            "select_and_scatter",
            given,
            [typed((4, 6), dtype)],
            f"window_dimensions = {i64s(*sizes)}, window_strides = {i64s(*sizes)}",
            [choose, body("add", dtype)],
        )


@trial
def dot_general(program: Writer, dtype: str) -> None:
    wide = "float32" if "float" in dtype else "uint32" if dtype[0] == "u" else "int32"
    eight = "bfloat16" if "float" in dtype else "uint8" if dtype[0] == "u" else "int8"
    for left, right, result in (
        (dtype, dtype, dtype),
        (dtype, dtype, wide),
        (dtype, wide, wide),
        (eight, dtype, wide),
        (dtype, dtype, eight),
    ):
        for m, k, n in ((4, 5, 3), (1, 7, 1), (8, 16, 4)):
            given = [
                program.given(
                    _exact(d, s) if d == dtype else np.resize([1, 0, 2], s).astype(named_dtype(d))
                )
                for d, s in ((left, (m, k)), (right, (k, n)))
            ]
            program.make(
                "dot_general",
                given,
                [typed((m, n), result)],
                "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], "
                "rhs_contracting_dimensions = [0]>",
            )


@trial
def convolution(program: Writer, dtype: str) -> None:
    wide = "float32" if "float" in dtype else "uint32" if dtype[0] == "u" else "int32"
    for result in (dtype, wide):
        given = [program.given(_exact(dtype, s)) for s in ((2, 7, 5, 3), (3, 2, 3, 4))]
        program.make(
            "convolution",
            given,
            [typed((2, 5, 4, 4), result)],
            "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
            "feature_group_count = 1 : i64, batch_group_count = 1 : i64",
        )


@trial
def map_(program: Writer, dtype: str) -> None:
    given = [program.given(values(dtype, (3, 7), n)) for n in range(2)]
    program.make(
        "map", given, [typed((3, 7), dtype)], f"dimensions = {i64s(0, 1)}", [body("add", dtype)]
    )


@trial
def while_(program: Writer, dtype: str) -> None:
    n, b = typed((), "int32"), typed((), "bool")
    limit, one = program.argument(np.int32(5)), program.constant("1", n)
    for shape in ((3,), (3, 7), ()):
        t = typed(shape, dtype)
        begin, x = program.constant("0", n), program.given(values(dtype, shape))
        condition = (
            f"^bb0(%i: {n}, %s: {t}): %c = stablehlo.compare LT, %i, {limit[0]} : "
            f"({n}, {n}) -> {b} stablehlo.return %c : {b}"
        )
        step = (
            f"^bb0(%i: {n}, %s: {t}): %j = stablehlo.add %i, {one[0]} : {n} "
            f"%u = stablehlo.add %s, {x[0]} : {t} stablehlo.return %j, %u : {n}, {t}"
        )
        program.make("while", [begin, x], [n, t], "", [condition, step])


@trial
def branches(program: Writer, dtype: str) -> None:
    for shape in ((3,), (3, 7), ()):
        t, x = typed(shape, dtype), program.given(values(dtype, shape))
        both = [
            f"%r = stablehlo.{name} {x[0]}, {x[0]} : {t} stablehlo.return %r : {t}"
            for name in ("add", "maximum")
        ]
        for truth in (True, False):
            program.make("if", [program.argument(np.bool_(truth))], [t], "", both)
            program.make("case", [program.argument(np.int32(truth))], [t], "", both)


@trial
def call(program: Writer, dtype: str) -> None:
    t = typed((3, 7), dtype)
    program.function(
        f"func.func private @inner(%x: {t}) -> {t} {{ %r = stablehlo.add %x, %x : {t} "
        f"func.return %r : {t} }}"
    )
    x = program.given(values(dtype, (3, 7)))
    program.results += program._add(f"func.call @inner({x[0]}) : ({t}) -> {t}", [t])


@trial
def reduce_precision(program: Writer, dtype: str) -> None:
    if "float" in dtype:
        program.make(
            "reduce_precision",
            [program.given(values(dtype, (3, 7)))],
            [typed((3, 7), dtype)],
            "exponent_bits = 5 : i32, mantissa_bits = 3 : i32",
        )


_GROUPS = "replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"


def _exchange(
    name: str, gives: Callable[[tuple[int, ...]], tuple[int, ...]], attributes: str, inner: str = ""
) -> None:
    def write(program: Writer, dtype: str) -> None:
        for shape in ((4, 4), (4, 3), (8, 5), (4, 1)):
            program.make(
                name,
                [program.given(_exact(dtype, shape))],
                [typed(gives(shape), dtype)],
                attributes,
                [body(inner, dtype)] if inner else [],
            )

    TRIALS[name] = write


_exchange("all_gather", lambda s: (4 * s[0], *s[1:]), f"all_gather_dim = 0 : i64, {_GROUPS}")
_exchange(
    "all_to_all",
    lambda s: (s[0] // 4, 4 * s[1]),
    f"split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 4 : i64, {_GROUPS}",
)
_exchange(
    "collective_permute",
    lambda s: s,
    "source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>",
)
_exchange("all_reduce", lambda s: s, _GROUPS, "add")
_exchange(
    "reduce_scatter",
    lambda s: (s[0] // 4, *s[1:]),
    f"scatter_dimension = 0 : i64, {_GROUPS}",
    "add",
)
