"""Docstrings of public functions state types, and the errors that they name are raised."""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import errors, lax, monitoring, plugins, random, sharding, tree
from plugrt.tracing.operation import Operation

NAMESPACES = (xp, xp.linalg, xp.fft, lax, random)
FUNCTIONS = {
    f"{namespace.__name__}.{name}".removeprefix("plugrt."): value
    for namespace in NAMESPACES
    for name in namespace.__all__
    if isinstance(value := getattr(namespace, name), Operation)
}
TYPE_WORDS = re.compile(
    r"dtype|shape|float|integer|bool|uint32|scalar|array|complex|raises as|as `\w+`", re.IGNORECASE
)


def test_a_public_operation_states_types() -> None:
    for name, function in FUNCTIONS.items():
        text = function.__doc__
        assert text.startswith("Returns "), (name, text)
        assert TYPE_WORDS.search(text), (name, text)


def test_classes_named_in_a_docstring_exist() -> None:
    known = (errors, plugrt, lax, random, builtins)
    for title, function in FUNCTIONS.items():
        for name in re.findall(r"(?<!`)`([A-Z]\w+)`(?!`)", function.__doc__):
            assert any(hasattr(module, name) for module in known), (title, name)


PUBLIC = {
    f"{module.__name__}.{name}".removeprefix("plugrt."): value
    for module in (plugrt, *NAMESPACES, tree, monitoring, plugins, sharding)
    for name in module.__all__
    if callable(value := getattr(module, name)) and not isinstance(value, type)
    if not (hasattr(value, "__origin__") or value is plugins.hookimpl)  # no functions
}
NAMED = [f"`{name}`" for name in errors.__dict__ if name[0].isupper()]


def states_errors(function: Callable[..., Any]) -> bool:
    """Whether its docstring states errors; a function without arguments has no wrong call."""
    given = [name for name in inspect.signature(function).parameters if name != "of"]
    text = " ".join((function.__doc__ or "").split())
    return not given or "aises " in text or any(name in text for name in NAMED)


def test_a_public_function_states_its_errors() -> None:
    assert [name for name, function in PUBLIC.items() if not states_errors(function)] == []


def test_docstrings_refer_to_functions_that_state_their_errors() -> None:
    for title, function in PUBLIC.items():
        text = " ".join((function.__doc__ or "").split())
        owner = inspect.getmodule(inspect.unwrap(function))
        for name in re.findall(r"[Rr]aises as `([\w.]+)`", text):
            last = name.split(".")[-1]
            found = [getattr(m, last, None) for m in (owner, plugrt, xp, lax, random)]
            others = [f for f in found if f is not None and f is not function]
            assert any(states_errors(f) for f in others), (title, name)


def test_a_docstring_without_errors_is_noticed() -> None:
    def silent(x: object) -> None:
        """Returns nothing."""

    assert not states_errors(silent)


X = np.ones((2, 3), np.float32)
V = np.arange(4, dtype=np.int32)
Z = np.ones(3, np.complex64)
KEY = np.zeros(2, np.uint32)

BAD_CALLS: list[tuple[ModuleType, str, Callable[[Any], Any], str]] = [
    (xp, "zeros", lambda f: f((-1,)), "ShapeError"),
    (xp, "full", lambda f: f((2,), X), "ShapeError"),
    *(
        (xp, name, lambda f: f([1.0]), "NotAnArray")
        for name in ("exp", "log", "sqrt", "sin", "tanh", "acos", "atanh")
    ),
    (plugrt, "get_backend", lambda f: f("no such platform"), "UnknownPlatform"),
    (plugrt, "load_program", lambda f: f(3), "ProgramError"),
    (plugrt, "compile", lambda f: f(3), "ProgramError"),
    (plugrt, "jit", lambda f: f(3), "ArgumentTypeError"),
    (plugrt, "ShapeDtypeStruct", lambda f: f("ab", "float32"), "ArgumentTypeError"),
    (plugrt, "ShapeDtypeStruct", lambda f: f((2,), "no dtype"), "ArgumentTypeError"),
    (plugrt, "device_put", lambda f: f({"a": object()}), "NotAnArray"),
    (plugrt, "log_compiles", lambda f: f(3).__enter__(), "ConfigError"),
    (plugrt, "debug_infs", lambda f: f(3).__enter__(), "ConfigError"),
    (plugrt, "disable_jit", lambda f: f(3).__enter__(), "ConfigError"),
    (plugrt, "debug_nans", lambda f: f(3).__enter__(), "ConfigError"),
    (plugrt, "device_put_replicated", lambda f: f(X, [3]), "InvalidArgument"),
    *(
        (xp, name, lambda f: f(["a"]), "NotAnArray")
        for name in (
            "abs",
            "conj",
            "imag",
            "isfinite",
            "isinf",
            "isnan",
            "logical_not",
            "positive",
            "real",
            "reciprocal",
            "square",
            "ravel",
        )
    ),
    (xp, "prod", lambda f: f(X, axis=2), "AxisError"),
    (xp, "cumulative_prod", lambda f: f(X), "ShapeError"),
    (xp, "isdtype", lambda f: f(3, "bool"), "ArgumentTypeError"),
    (lax, "broadcast", lambda f: f(X, 3), "ArgumentTypeError"),
    (lax, "optimization_barrier", lambda f: f([object()]), "NotAnArray"),
    (random, "key_data", lambda f: f("text"), "NotAnArray"),
    (tree, "map", lambda f: f(abs, [1], 3), "ArgumentTypeError"),
    (tree, "broadcast_prefix", lambda f: f([1], (1, 2)), "ArgumentTypeError"),
    (tree, "flatten", lambda f: f([1], is_leaf=3), "ArgumentTypeError"),
    (tree, "unflatten", lambda f: f(tree.structure([1]), [1, 2]), "ArgumentTypeError"),
    (tree, "register_dataclass", lambda f: f(int), "ArgumentTypeError"),
    (tree, "register_node", lambda f: f(3, abs, abs), "ArgumentTypeError"),
    (monitoring, "register_event_listener", lambda f: f(3), "ArgumentTypeError"),
    (plugins, "register", lambda f: f(3), "RegistrationError"),
    (plugins, "get_device_backend", lambda f: f(3), "ArgumentTypeError"),
    (xp, "tril", lambda f: f(V), "ShapeError"),
    (xp, "meshgrid", lambda f: f(X), "ShapeError"),
    (xp, "add", lambda f: f(X, np.ones(4)), "ShapeError"),
    (xp, "negative", lambda f: f(np.asarray([True])), "DtypeError"),
    (xp, "bitwise_invert", lambda f: f(X), "DtypeError"),
    (xp, "floor", lambda f: f(Z), "DtypeError"),
    (xp, "signbit", lambda f: f(Z), "DtypeError"),
    (xp, "round", lambda f: f(np.asarray([True])), "DtypeError"),
    (xp, "take", lambda f: f(V, X), "DtypeError"),
    (xp, "take_along_axis", lambda f: f(X, V[:2].reshape(1, 2), axis=5), "AxisError"),
    (xp, "squeeze", lambda f: f(X, axis=0), "ShapeError"),
    (xp, "flip", lambda f: f(X, axis=2), "AxisError"),
    (xp, "moveaxis", lambda f: f(X, (0, 1), 0), "ShapeError"),
    (xp, "reshape", lambda f: f(X, (4,)), "ShapeError"),
    (xp, "tensordot", lambda f: f(X, X, axes=1), "ShapeError"),
    (xp, "argmax", lambda f: f(Z), "DtypeError"),
    (xp, "nonzero", lambda f: f(np.asarray(1)), "ShapeError"),
    (xp, "searchsorted", lambda f: f(X, V), "ShapeError"),
    (xp, "sort", lambda f: f(X, axis=3), "AxisError"),
    (xp, "sum", lambda f: f(X, dtype=xp.bool), "DtypeError"),
    (xp, "max", lambda f: f(np.ones((0,), np.float32)), "ShapeError"),
    (xp, "cumulative_sum", lambda f: f(X), "ShapeError"),
    (xp, "roll", lambda f: f(V, 1.5), "DtypeError"),
    (xp, "diff", lambda f: f(V, n=-1), "ArgumentError"),
    (xp, "arange", lambda f: f(0, 1, 0), "ArgumentError"),
    (lax, "add", lambda f: f(X, V), "DtypeError"),
    (lax, "add", lambda f: f(V, V[:2]), "ShapeError"),
    (lax, "exp", lambda f: f(V), "DtypeError"),
    (lax, "reduce_sum", lambda f: f(X, (5,)), "AxisError"),
    (lax, "cumsum", lambda f: f(np.asarray([True])), "DtypeError"),
    (lax, "argmax", lambda f: f(Z, 0, np.int32), "DtypeError"),
    (lax, "dot_general", lambda f: f(X, X, (((1,), (0,)), ((), ()))), "ShapeError"),
    (lax, "cond", lambda f: f(X, lambda: 1, lambda: 2), "ShapeError"),
    (lax, "switch", lambda f: f(1.5, [lambda: 1, lambda: 2]), "DtypeError"),
    (lax, "while_loop", lambda f: f(lambda x: x, lambda x: x, V), "ShapeError"),
    (lax, "scan", lambda f: f(lambda c, x: (c, x), 0), "ArgumentError"),
    (lax, "bitcast_convert_type", lambda f: f(np.asarray([True]), np.int8), "DtypeError"),
    (lax, "reduce_precision", lambda f: f(V, 5, 5), "DtypeError"),
    (lax, "fft", lambda f: f(Z, "RFFT", (3,)), "DtypeError"),
    (lax, "psum", lambda f: f(X, "no axis"), "UnboundAxis"),
    (lax, "select", lambda f: f(V, V, V), "DtypeError"),
    (lax, "clamp", lambda f: f(V[:2], V, V), "ShapeError"),
    (lax, "reshape", lambda f: f(X, (4,)), "ShapeError"),
    (lax, "transpose", lambda f: f(X, (0, 0)), "ShapeError"),
    (lax, "squeeze", lambda f: f(X, (0,)), "ShapeError"),
    (lax, "concatenate", lambda f: f([X, V], 0), "DtypeError"),
    (lax, "split", lambda f: f(V, (1, 1)), "ShapeError"),
    (lax, "pad", lambda f: f(V, V, [(0, 0, 0)]), "ShapeError"),
    (lax, "iota", lambda f: f(bool, 3), "DtypeError"),
    (lax, "slice", lambda f: f(V, (0,), (9,)), "ShapeError"),
    (lax, "dynamic_slice", lambda f: f(V, (1.5,), (2,)), "DtypeError"),
    (lax, "sort", lambda f: f((V, V[:2])), "ShapeError"),
    (lax, "top_k", lambda f: f(V, 9), "ArgumentError"),
    (lax, "integer_pow", lambda f: f(V, -1), "DtypeError"),
    (random, "uniform", lambda f: f(V), "DtypeError"),
    (random, "normal", lambda f: f(KEY, (2,), np.int32), "DtypeError"),
    (random, "bits", lambda f: f(KEY, (2,), np.int32), "DtypeError"),
    (random, "gumbel", lambda f: f(KEY, (2,), mode="middle"), "ArgumentError"),
    (random, "randint", lambda f: f(KEY, (2,), 0.5, 3), "DtypeError"),
    (random, "bernoulli", lambda f: f(KEY, 1), "DtypeError"),
    (random, "categorical", lambda f: f(KEY, V), "DtypeError"),
    (random, "PRNGKey", lambda f: f(1.5), "DtypeError"),
    (random, "fold_in", lambda f: f(KEY, V), "ShapeError"),
    (random, "permutation", lambda f: f(KEY, np.asarray(1.0)), "ShapeError"),
    (random, "choice", lambda f: f(KEY, 3, (4,), False), "ArgumentError"),
]


@pytest.mark.parametrize(
    ("namespace", "name", "call", "error"),
    BAD_CALLS,
    ids=[f"{n.__name__.removeprefix('plugrt.')}.{name}-{error}" for n, name, _, error in BAD_CALLS],
)
def test_a_bad_call_raises_the_error_that_the_docstring_names(
    namespace: ModuleType, name: str, call: Callable[[Any], Any], error: str
) -> None:
    function = getattr(namespace, name)
    assert f"`{error}`" in " ".join(function.__doc__.split()), function.__doc__
    with pytest.raises(getattr(errors, error)):
        call(function)
