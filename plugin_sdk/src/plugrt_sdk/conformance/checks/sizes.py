"""Level 2: programs with dimensions next to tile borders, of 2^20 elements, of each rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from plugrt.capi.abi.declarations import API_MINOR
from plugrt.capi.abi.element_types import supported_dtypes
from plugrt.errors import Unimplemented, UnsupportedDtype, describe
from plugrt.interface import LoadedExecutable
from plugrt_sdk.conformance.check import Chapter, Level
from plugrt_sdk.conformance.expect import Array, expect_close, expect_same_bits
from plugrt_sdk.conformance.inputs import BORDERS, LENGTHS, NARROW, SMALL, fill
from plugrt_sdk.conformance.inputs import RANKS as ALL_RANKS
from plugrt_sdk.conformance.operation_cases import SHAPES
from plugrt_sdk.conformance.operations.sample import whole
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing.program_text import ProgramText, body, i64s, typed

CHAPTER = Chapter("sizes", Level.COMPUTES, "StableHLO specification")

Shape = tuple[int, ...]
_LARGE = ((1_100_003,), (1025, 1031), (3, 130, 2900))
"""Shapes of more than 2 ** 20 elements; no power of two divides a large dimension."""


def _add(p: ProgramText, x: Array, y: Array) -> Array:
    p.apply("add", [p.argument(x), p.argument(y)], [typed(x.shape, x.dtype)])
    return x + y


def _transpose(p: ProgramText, x: Array, y: Array) -> Array:
    p.apply("transpose", [p.argument(x)], [typed(x.shape[::-1], x.dtype)],
            f"permutation = {i64s(*range(x.ndim)[::-1])}")  # fmt: skip
    return x.T


def _reduce(p: ProgramText, x: Array, y: Array) -> Array:
    zero = p.argument(np.zeros((), x.dtype))
    p.apply("reduce", [p.argument(x), zero], [typed(x.shape[:-1], x.dtype)],
            f"dimensions = {i64s(x.ndim - 1)}", [body("add", x.dtype.name)])  # fmt: skip
    return np.asarray(x.sum(-1, dtype=x.dtype))


def _dot(p: ProgramText, x: Array, y: Array) -> Array:
    """Contracts the last dimensions of two arrays, with at most 7 rows of the second."""
    rows = y.reshape(-1, y.shape[-1])[:7]
    highest = "#stablehlo<precision HIGHEST>"
    p.apply("dot_general", [p.argument(x), p.argument(rows)],
            [typed((*x.shape[:-1], len(rows)), x.dtype)],
            "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = "
            f"[{x.ndim - 1}], rhs_contracting_dimensions = [1]>, "
            f"precision_config = [{highest}, {highest}]")  # fmt: skip
    return x @ rows.T


def _concatenate(p: ProgramText, x: Array, y: Array) -> Array:
    shape = (2 * x.shape[0], *x.shape[1:])
    p.apply("concatenate", [p.argument(x), p.argument(y)], [typed(shape, x.dtype)],
            "dimension = 0 : i64")  # fmt: skip
    return np.concatenate((x, y))


_OPERATIONS: Mapping[str, Callable[[ProgramText, Array, Array], Array]] = {
    "add": _add, "transpose": _transpose, "reduce": _reduce, "dot_general": _dot,
    "concatenate": _concatenate,
}  # fmt: skip
_MORE_DTYPES: Mapping[str, tuple[str, ...]] = {"add": ("bfloat16", "int8", "int32")}

_AT_BORDERS = "with dimensions of 8 to 512 and one more or less"
_ALONE = ("add", "float32")
"""The operation and dtype with one program for each length, as hosts launch it."""
_TOGETHER = 20
"""The maximum number of shapes in one program: compilation needs most of the time."""
_OF_A_DIMENSION = ("reduce", "dot_general", "concatenate")
"""The operations that need exactly one dimension."""


def _try(subject: PluginSubject, operation: str, dtype: str, shapes: tuple[Shape, ...]) -> None:
    """Computes with whole numbers so small that the order of sums does not change the result."""
    alone = [(s,) for s in shapes if len(s) == 1 and (operation, dtype) == _ALONE]
    rest = [s for s in shapes if (s,) not in alone]
    groups = [tuple(rest[i : i + _TOGETHER]) for i in range(0, len(rest), _TOGETHER)]
    for tried in groups + alone:
        _try_together(subject, operation, dtype, tried)


def _try_ranks(
    subject: PluginSubject, operation: str, dtype: str, shapes: tuple[Shape, ...]
) -> None:
    refused = []
    for tried in (shapes, *((shape,) for shape in shapes)):
        try:
            _try_together(subject, operation, dtype, tried)
        except (Unimplemented, UnsupportedDtype) as error:
            refused.append((len(tried[0]), error))
        if not refused:  # all together: no need to run each alone
            return
    if ranks := ", ".join(str(rank) for rank, _ in refused[1:]):
        subject.refuse(f"of {ranks} dimensions: {describe(refused[-1][1])}")


def _try_together(
    subject: PluginSubject, operation: str, dtype: str, tried: tuple[Shape, ...]
) -> None:
    random = subject.random(f"sizes.{operation}.{dtype}.{tried[0]}")
    program = ProgramText()
    wanted = [
        _OPERATIONS[operation](program, *(whole(random, shape, dtype) for _ in range(2)))
        for shape in tried
    ]
    found = subject.run(program.text(), *program.arguments)
    # A sum of one product may keep the sign of a zero.
    for shape, result, oracle in zip(tried, found, wanted, strict=True):
        expect_close(result, oracle, 0, f"{operation} of {dtype} {list(shape)}")


for _name in _OPERATIONS:
    for _dtype in ("float32", *_MORE_DTYPES.get(_name, ())):
        _more = tuple((n,) for n in BORDERS) if (_name, _dtype) == _ALONE else ()
        for _part, _shapes, _words in (
            (
                "borders",
                (*((3, n) for n in BORDERS), *_more),
                _AT_BORDERS,
            ),
            ("large", _LARGE, "of more than 2^20 elements"),
        ):
            CHAPTER.add(
                f"{_part}.{_name}.{_dtype}",
                f"{_name} of {_dtype}, {_words}, gives NumPy's result.",
                partial(_try, operation=_name, dtype=_dtype, shapes=_shapes), refusable=True,
                slow=_name not in ("add", "dot_general"),
                why="elements at the edge of a tile are wrong, where no small example has one",
                rests_on=f"StableHLO specification: {_name}",
            )  # fmt: skip


def returned(arrays: Sequence[Array]) -> str:
    """Returns a program that returns its arguments."""
    kinds = [typed(array.shape, array.dtype.name) for array in arrays]
    parameters = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(kinds))
    given, names = ", ".join(kinds), ", ".join(f"%a{i}" for i in range(len(kinds)))
    head = f"func.func public @main({parameters}) -> ({given})"
    return f"{head} {{\n  return {names} : {given}\n}}"


def expect_returned(
    program: LoadedExecutable, arrays: Sequence[Array], subject: PluginSubject, place: int
) -> None:
    """Launches a program of `returned`, and expects its arguments' bits."""
    results = program.execute([(subject.put(array, place),) for array in arrays])
    for array, [buffer] in zip(arrays, results, strict=True):
        what = f"the result of {list(array.shape)} {array.dtype} on device {place}"
        expect_same_bits(buffer.to_host(), array, what)


def _results(subject: PluginSubject, dtype: str) -> None:
    random = subject.random(f"results.{dtype}")
    places = [i for i, d in enumerate(subject.client.devices()) if d.is_addressable]
    for number, place in enumerate(places):
        shapes = (*ALL_RANKS, *SMALL[number :: len(places)], *_LARGER[number :: len(places)])
        arrays = [fill(dtype, shape, random) for shape in shapes]
        subject.used_dtypes.add(dtype)
        expect_returned(subject.compile_for(returned(arrays), place), arrays, subject, place)


_LARGER = tuple((n,) for n in LENGTHS if SMALL[-1][-1] < n < 1 << 17)
RETURNED = sorted(
    supported_dtypes(API_MINOR) - {"void", "int1", "uint1", "float6_e2m3fn", "float6_e3m2fn"}
)
"""The dtypes of results; few programs have the others, and the NumPy backend has none of them."""
for _dtype in (name for name in RETURNED if not NARROW.match(name)):
    CHAPTER.add(
        f"results.{_dtype}",
        f"Results of {_dtype}, of each rank and many lengths, on each device, are what a program "
        "returns.",
        partial(_results, dtype=_dtype), refusable=True,
        why="results of a length, of many dimensions or on another device are wrong",
        rests_on="PJRT_LoadedExecutable_Execute",
    )  # fmt: skip


# Process-wide: a constant.
RANKS: dict[str, tuple[int, ...]] = {}
"""The id to the ranks, for checks that test an operation on arrays of each rank."""

for _name in _OPERATIONS:
    _shapes = SHAPES if _name in _OF_A_DIMENSION else ((), *SHAPES)
    for _dtype in ("float32", *_MORE_DTYPES.get(_name, ())[-1:]):
        RANKS[f"sizes.ranks.{_name}.{_dtype}"] = tuple(map(len, _shapes))
        CHAPTER.add(
            f"ranks.{_name}.{_dtype}",
            f"{_name} of {_dtype} in {len(_shapes[0])} to 8 dimensions gives NumPy's result.",
            partial(_try_ranks, operation=_name, dtype=_dtype, shapes=_shapes), refusable=True,
            why="arrays of more or fewer dimensions than an example's are scrambled",
            rests_on=f"StableHLO specification: {_name}",
        )  # fmt: skip
