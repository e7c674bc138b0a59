"""Calls with invalid arguments for a function, made from its signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

WRONG: dict[str, Any] = {
    "None": None,
    "text": "text",
    "bytes": b"x",
    "object": object(),
    "function": lambda *a: a,
    "type": dict,
    "slice": slice(None),
    "empty list": [],
    "empty tuple": (),
    "empty dict": {},
    "list": [1, 2],
    "ragged": [[1, 2], [3]],
    "list of None": [None],
    "number and text": (1, "a"),
    "repeated": (0, 0),
    "negative": ((-9, -9, 0), (-9, -9, 0)),
    "strings": np.array(["a", "b"]),
    "objects": np.array([None, 1], object),
    "dates": np.array(["2020-01-01"], "datetime64[D]"),
    "-1": -1,
    "99": 99,
    "1.5": 1.5,
    "1j": 1j,
    "2**70": 2**70,
    "True": True,
    "nan": float("nan"),
    "3-d": np.ones((2, 2, 2), np.float32),
    "size 0": np.ones((0,), np.float32),
    "int array": np.array([7, 8, 9]),
    "bool array": np.array([True, False]),
    "complex array": np.array([1j, 2]),
}
"""Values that few parameters accept, by their names in a report."""

GOOD: dict[str, Any] = {
    "axes": (0,), "axis": 0, "axis1": 0, "axis2": 1, "source": 0, "destination": 1, "shape": (2, 3),
    "sizes": (2,), "new_sizes": (6,), "dimensions": (0,), "dimension": 0, "dtype": "float32",
    "new_dtype": "float32", "index_dtype": "int32", "broadcast_dimensions": (0, 1),
    "permutation": (1, 0), "padding_value": np.float32(0), "padding_config": ((0, 0, 0), (0, 0, 0)),
    "start_indices": (0, 0), "limit_indices": (1, 1), "strides": None, "slice_sizes": (1, 1),
    "slice_size": 1, "start_index": 0, "limit_index": 1, "index": 0, "operands": None, "num": 2,
    "n_rows": 2, "n_cols": 2, "start": 0, "stop": 3, "repetitions": (1, 2), "repeats": 2,
    "shift": 1, "type": "float32", "kind": "bool", "from_": "int8", "to": "int16", "seed": 0,
    "data": 1, "k": 1, "y_": 2, "fft_type": "FFT", "fft_lengths": (3,), "exponent_bits": 5,
    "mantissa_bits": 10, "start_dimension": 0, "lower": 0, "upper": 2, "init_val": np.float32(1),
    "pred": True, "size": 4, "length": None, "window_strides": (1,), "padding": "SAME",
    "fill_value": np.float32(1), "minval": 0, "maxval": 2, "a": 4, "condition": np.bool_(True),
    "indices": np.zeros((), np.int32), "axis_name": "i", "split_axis": 0, "concat_axis": 0,
    "perm": ((0, 0),), "axis_index_groups": None, "indexing": "xy", "num_": 3,
}  # fmt: skip
"""Valid values by parameter name; other parameters get an array."""

SPECIAL: dict[str, dict[str, Any]] = {
    "linspace": {"num": 3},
    "integer_pow": {"y": 2},
    "concat": {"arrays": [np.ones(2, np.float32)]},
    "stack": {"arrays": [np.ones(2, np.float32)]},
    "concatenate": {"operands": [np.ones(2, np.float32)]},
    "fori_loop": {"body_fun": lambda i, v: v},
    "while_loop": {"cond_fun": lambda v: False, "body_fun": lambda v: v},
    "cond": {"true_fun": lambda *v: 1.0, "false_fun": lambda *v: 2.0},
    "switch": {"branches": [lambda *v: 1.0, lambda *v: 2.0]},
    "scan": {"f": lambda c, v: (c, v), "init": np.float32(0)},
    "map": {"f": lambda v: v},
    "associative_scan": {"fn": lambda a, b: a + b},
    "reduce": {"init_values": np.float32(0), "computation": lambda a, b: a + b},
    "reduce_window": {
        "init_value": np.float32(0), "computation": lambda a, b: a + b,
        "window_dimensions": (1, 1), "window_strides": (1, 1), "padding": "VALID",
    },
    "expand_dims": {"axis": 0},
    "permute_dims": {"axes": (1, 0)},
    "squeeze": {"axis": (), "dimensions": ()},
    "reduce_precision": {"operand": np.ones((2, 3), np.float32)},
}  # fmt: skip
"""Valid values of some functions for parameter names with another meaning elsewhere."""

Call = tuple[str, list[Any], dict[str, Any]]
"""A description of the fault, and the arguments."""


def wrong_calls(name: str, parameters: list[tuple[str, int, bool]], array: Any) -> Iterator[Call]:
    """Yields calls with one wrong argument, with too few, too many, and unknown ones.

    ``parameters`` are the names, kinds (as `inspect` numbers them) and whether one is needed.
    """
    kept = [p for p in parameters if p[1] in (0, 1, 3)]
    special = SPECIAL.get(name, {})
    key = np.array([0, 1], np.uint32)
    values = {n: special.get(n, GOOD.get(n, key if n == "key" else array)) for n, _, _ in kept}
    good = {n: values[n] for n, _, needed in kept if needed}

    def arranged(given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        return (
            [given[n] for n, kind, _ in kept if kind == 0 and n in given],
            {n: given[n] for n, kind, _ in kept if kind != 0 and n in given},
        )

    for parameter, _, _ in kept:
        for title, wrong in WRONG.items():
            yield (f"{parameter}={title}", *arranged({**good, parameter: wrong}))
    for missing in good:
        rest = {n: v for n, v in good.items() if n != missing}
        if [n for n, kind, _ in kept if kind == 0 and n in good][-1:] in ([], [missing]):
            yield (f"without {missing}", *arranged(rest))
    args, kwargs = arranged(good)
    yield ("an unknown keyword", args, {**kwargs, "no_such_parameter": 1})
    if not any(kind == 2 for _, kind, _ in parameters):
        yield ("too many", [*args, *[array] * 12], kwargs)
    for title in ("None", "object", "text", "function"):
        yield (f"everything={title}", *arranged(dict.fromkeys(good, WRONG[title])))


def parameters_of(function: Callable[..., Any]) -> list[tuple[str, int, bool]]:
    """Returns the argument of `wrong_calls` for a signature."""
    found = inspect.signature(function).parameters.values()
    return [(p.name, int(p.kind), p.default is p.empty and int(p.kind) in (0, 1, 3)) for p in found]


def raised(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Returns the exception of a call; None without one."""
    try:
        function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is judged
        return error
    return None
