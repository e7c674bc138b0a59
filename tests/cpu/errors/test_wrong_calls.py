"""Every public function with invalid arguments raises one of plugrt's errors.

It is never the AttributeError, KeyError or bare TypeError of a function without checks, and it is a
subclass of the class that JAX raises for the same call.
"""

from __future__ import annotations

import inspect
import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import plugrt
import plugrt.array_api as xp
from plugrt import lax, random
from plugrt.errors import ArgumentError, PlugrtError
from plugrt.execution.arrays.array_methods import Missing
from support.effort import WHOLE
from support.wrong_calls import WRONG, parameters_of, raised, wrong_calls

pytestmark = pytest.mark.filterwarnings("ignore")

HOT = {"asarray", "block_until_ready", "device_get", "device_put"}
"""Functions without a wrapper, which would slow them down: Python itself counts arguments."""
ARITY = ("without ", "too many", "an unknown keyword")


AS_JAXS = (ValueError, TypeError, NameError, NotImplementedError, MemoryError, RuntimeError)
"""The classes by which code for JAX catches wrong calls; a bare `TracingError` has none as base."""


class Done(Exception):
    """All calls were made."""


def functions(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in module.__all__:
        function = getattr(module, name)
        if callable(function) and not isinstance(function, type) and not name.startswith("_"):
            yield name, function


def strangers(name: str, function: Callable[..., Any], array: Any) -> tuple[int, list[str]]:
    """Returns the number of wrong calls, and the errors that are not plugrt's."""
    count, found = 0, []
    for title, args, kwargs in wrong_calls(name, parameters_of(function), array):
        error = raised(function, args, kwargs)
        count += 1
        if name in HOT and isinstance(error, TypeError) and title.startswith(ARITY):
            continue
        if not (
            error is None
            or (isinstance(error, PlugrtError) and isinstance(error, AS_JAXS))
            or isinstance(error, FileNotFoundError)
        ):
            found.append(f"{name}: {title}: {type(error).__name__}: {error}")
    return count, found


FLOATS, KEY = np.ones((2, 3), np.float32), np.array([0, 1], np.uint32)


@pytest.mark.parametrize(
    ("module", "array"),
    [(xp, FLOATS), (lax, FLOATS), (random, KEY)]
    + [(xp, KEY), (lax, KEY), (random, FLOATS)] * WHOLE,
    ids=lambda value: getattr(value, "__name__", None),
)
def test_traced_functions_raise_what_is_plugrts(module: ModuleType, array: Any) -> None:
    """One trace contains all calls, so that nothing is compiled."""
    total, found = 0, []

    def body(x: Any) -> None:
        nonlocal total
        for name, function in functions(module):
            count, strange = strangers(name, function, x)
            total += count
            found.extend(strange)
        raise Done

    # `Done` drops the module, since operations emitted before an error remain in it.
    with pytest.raises(Done):
        plugrt.jit(body).trace(array)
    assert total > 1000
    assert found == []


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("module", [xp, lax, random], ids=lambda m: m.__name__)
def test_eager_functions_raise_what_is_plugrts(module: ModuleType) -> None:
    found = []
    for name, function in functions(module):
        count = len([p for p in parameters_of(function) if p[1] in (0, 1) and p[2]])
        for wrong in ("object", "text", "ragged", "strings", "function"):
            error = raised(function, [WRONG[wrong]] * max(count, 1), {})
            if not (error is None or isinstance(error, PlugrtError)):
                found.append(f"{name}: {wrong}: {type(error).__name__}: {error}")
    assert found == []


LEFT_OUT = {"clear_backends", "clear_caches", "config", "Array", "PyTreeSpec", "ShapeDtypeStruct"}


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize(
    "name", [n for n in plugrt.__all__ if callable(getattr(plugrt, n)) and n not in LEFT_OUT]
)
def test_functions_of_plugrt_itself_do_too(name: str) -> None:
    _, found = strangers(name, getattr(plugrt, name), np.ones((2, 3), np.float32))
    found = [f for f in found if " of=" not in f and ": of=" not in f]
    if name in HOT:
        found = [f for f in found if ": may_alias=" not in f]
    assert found == []


METHODS = [
    name
    for name, member in inspect.getmembers_static(plugrt.execution.arrays.array_methods.Methods)
    if not name.startswith("_") and not isinstance(member, property | Missing)
] + ["item", "tobytes", "tolist", "addressable_data", "__dlpack__"]


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("name", METHODS)
def test_methods_do_too(name: str) -> None:
    x = xp.asarray(np.ones((2, 3), np.float32))
    _, found = strangers(name, getattr(x, name), np.ones((2, 3), np.float32))
    assert found == []


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("name", ["set", "add", "multiply", "divide", "power", "apply", "get"])
def test_updates_do_too(name: str) -> None:
    x = xp.asarray(np.ones((2, 3), np.float32))
    _, found = strangers(name, getattr(x.at[0], name), np.ones(3, np.float32))
    assert found == []


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("title", WRONG)
def test_keys_and_operators_do_too(title: str) -> None:
    x, wrong = xp.asarray(np.ones((2, 3), np.float32)), WRONG[title]
    for call in (
        lambda: x[wrong],
        lambda: x.at[wrong].set(1),
        lambda: x.__setitem__(wrong, 1),
        lambda: plugrt.compile(xp.sum, backend=wrong),
        lambda: plugrt.jit(lambda a: a, device=wrong)(x),
        lambda: plugrt.pmap(lambda a: a, devices=wrong)(x),
        lambda: plugrt.pmap(lambda a: a, in_axes=wrong)(x),
        lambda: xp.zeros((2,), device=wrong),
    ):
        error = raised(call, [], {})
        assert error is None or isinstance(error, PlugrtError), (title, error)


def test_errors_of_the_users_own_functions_pass_as_they_are() -> None:
    def attribute(*_: Any) -> Any:
        raise AttributeError("mine")

    def key(*_: Any) -> Any:
        return {}["missing"]

    x = xp.ones(2)
    for call in (
        lambda: lax.cond(True, attribute, attribute, x),
        lambda: lax.fori_loop(0, 2, attribute, x),
        lambda: x.at[0].apply(attribute),
        lambda: plugrt.jit(attribute)(x),
    ):
        with pytest.raises(AttributeError, match=r"^mine$"):
            call()
    with pytest.raises(KeyError) as caught:
        lax.scan(key, x, x)
    assert not isinstance(caught.value, PlugrtError)


def test_argument_errors_are_what_jax_users_catch() -> None:
    assert issubclass(ArgumentError, ValueError)
    assert issubclass(ArgumentError, TypeError)
    error = pickle.loads(pickle.dumps(ArgumentError("x")))
    assert str(error) == "x"


AS_JAX = [
    "xp.sum('text')", "xp.sum(None)", "xp.sum(x, axis=5)", "xp.sum(x, axis=1.5)",
    "xp.sum(x, axis=(0, 0))", "xp.sum()", "xp.add(x)", "xp.add(x, object())",
    "xp.add(x, np.ones((3, 2)))", "xp.add(x, 'a')", "xp.matmul(x, x)", "xp.matmul(1.0, x)",
    "xp.reshape(x, (4,))", "xp.reshape(x, (-1, -1))", "xp.broadcast_to(x, (4, 4))",
    "xp.concat([x, y], axis=0)", "xp.concat([])", "xp.stack([x, y])", "xp.zeros((-1,))",
    "xp.zeros('a')", "xp.zeros(2.5)", "xp.zeros((2,), dtype='nonsense')",
    "xp.full((2,), object())", "xp.arange('a')", "xp.eye('a')", "xp.linspace(0, 1, -1)",
    "xp.asarray([[1, 2], [3]])", "xp.asarray(object())", "xp.asarray(['a'])",
    "xp.max(xp.zeros((0,)))", "xp.argmax(x, axis=9)", "xp.take(x, 'a', axis=0)",
    "xp.squeeze(x, axis=0)", "xp.moveaxis(x, 5, 0)", "xp.expand_dims(x, axis=9)",
    "xp.permute_dims(x, (0, 0))", "xp.tensordot(x, x, axes=2)", "xp.meshgrid(x, indexing='no')",
    "xp.flip(x, axis=7)", "xp.bitwise_and(x, x)", "xp.repeat(x, 'a')", "xp.unstack(x, axis=4)",
    "xp.where(x, x)", "xp.clip('a')", "xp.sort(x, axis=8)", "xp.astype(x, 'no')", "lax.add(x, y)",
    "lax.add(x, np.ones((2, 3), np.int32))", "lax.add(x)", "lax.exp(np.int32(1))",
    "lax.reduce_sum(x, (7,))", "lax.reshape(x, (5,))", "lax.transpose(x, (0,))",
    "lax.slice(x, (0,), (1, 1))", "lax.dynamic_slice(x, (0,), (1, 1))",
    "lax.concatenate([x, y], 0)", "lax.dot(x, x)", "lax.iota('no', 3)", "lax.iota('float32', -1)",
    "lax.broadcast_in_dim(x, (2,), (0,))", "lax.select(x, x, x)",
    "lax.convert_element_type(x, 'no')", "lax.cumsum(x, axis=5)", "lax.sort(x, dimension=6)",
    "lax.top_k(x, 100)", "lax.conv(x, x, (1,), 'SAME')", "lax.clamp(x, y, x)",
    "lax.squeeze(x, (0,))", "lax.pad(x, np.float32(0), ((-3, -3, 0), (0, 0, 0)))",
    "lax.gather(x, i, lax.GatherDimensionNumbers((0, 0), (), (0,)), (1, 1))",
    "lax.gather(x, i, lax.GatherDimensionNumbers((0, 1), (), (0, 0)), (1, 1))",
    "lax.gather(x, i, lax.GatherDimensionNumbers((0, 1), (5,), (0,)), (1, 1))",
    "lax.scatter(x, i, x, lax.ScatterDimensionNumbers((0, 0), (), (0,)))",
    "lax.scatter_add(x, i, x, lax.ScatterDimensionNumbers((0, 1), (), (0, 0)))",
    "lax.scatter(x, i, y, lax.ScatterDimensionNumbers((0,), (7,), (0,)))",
    "lax.dot_general(x, x, (((0, 0), (0, 0)), ((), ())))",
    "lax.dot_general(x, x, (((0,), (0,)), ((0,), (0,))))",
    "lax.conv_general_dilated(x, x, (1, 1, 1), 'SAME')", "lax.rev(x, (0, 0))",
    "lax.reduce_window(x, np.float32(0), lax.add, (9, 9), (1, 1), ((-1, -1), (-9, -9)))",
    "lax.reduce_window(x, np.float32(0), lax.add, (0, 1), (1, 1), 'VALID')",
    "lax.dynamic_update_slice(x, np.ones((5, 5), np.float32), (0, 0))", "lax.split(x, (5,))",
    "lax.bitcast_convert_type(x, 'float64')", "lax.fft(x, 'FFT', (9,))",
    "api.ffi.ffi_call('no_such', api.ShapeDtypeStruct((5,), 'float32'),"
    " input_output_aliases={0: 0})(x)",
    "api.jit(lambda v: api.make_array_from_callback((2, 3), "
    "api.sharding.SingleDeviceSharding(api.devices()[0]), lambda i: v[i]))(x)", "lax.cond(1, 2, 3)",
    "lax.cond(x, lambda: 1, lambda: 2)",
    "lax.cond(True, lambda: 1., lambda: x)", "lax.switch(0.5, [lambda: 1])", "lax.switch(0, [])",
    "lax.fori_loop(0, 3, None, x)", "lax.fori_loop(0.5, 3, lambda i, v: v, x)",
    "lax.while_loop(lambda v: True, lambda v: (v, v), x)",
    "lax.while_loop(lambda v: v, lambda v: v, x)", "lax.scan(lambda c, v: c, x, x)",
    "lax.scan(None, x, x)", "lax.scan(lambda c, v: (c, v), 0., x, length=5)",
    "lax.psum(x, 'unbound')", "lax.map(None, x)", "random.normal(None, (2,))",
    "random.normal(key, 'a')", "random.normal(key, (-1,))",
    "random.normal(key, (2,), dtype='int32')", "random.split(key, -1)", "random.PRNGKey('a')",
    "random.PRNGKey(1.5)", "random.randint(key, (2,), 0.5, 1)",
    "random.choice(key, 3, (9,), replace=False)", "api.jit(3)", "api.jit(lambda v: v)(None, 1)",
    "api.jit(lambda v: v)('text')", "api.jit(lambda v: v)(object())",
    "api.jit(lambda v: v, static_argnums=0)([1])", "api.jit(lambda v: v if v else 0)(x)",
    "api.jit(lambda v: int(v))(1)", "api.jit(lambda v: 'text')(x)",
    "api.jit(lambda v: v, donate_argnums='a')", "api.jit(lambda v: v, static_argnums='a')",
    "api.pmap(3)", "api.pmap(lambda v: v)(np.ones((99, 2)))", "api.pmap(lambda v: v)(1.0)",
    "api.pmap(lambda v: v)(x, y)", "api.pmap(lambda v: v, in_axes=9)(x)", "api.device_put('text')",
    "api.device_put(object())", "api.device_put(x, 'cpu')", "api.device_put(x, 3)",
    "api.devices('no_such_platform')", "api.local_devices(process_index=9)",
    "api.local_devices(process_index='a')", "xp.asarray(x)[9]", "xp.asarray(x)['a']",
    "xp.asarray(x)[0, 0, 0]", "xp.asarray(x)[1.5]",
    "xp.asarray(x).at[0].set('a')", "xp.asarray(x) + 'a'", "xp.asarray(x).reshape('a')",
    "xp.asarray(x).sum(axis=9)", "bool(xp.asarray(x))", "float(xp.asarray(x))",
    "xp.asarray(x).item()", "len(xp.asarray(1.0))", "list(xp.asarray(1.0))",
    "range(xp.asarray(1.5))", "[xp.asarray(x).delete(), 1]",
    "(lambda a: (a.delete(), a + 1))(xp.asarray(x))", "api.jit(lambda v: v).lower(x).compile()(y)",
    "api.jit(lambda v: v).lower(x).compile()(x, x)",
]  # fmt: skip
"""Expressions with the same meaning in JAX (there ``xp`` is jax.numpy, ``api`` jax)."""

ASK_JAX = """
import json, sys, warnings
import numpy as np, jax as api, jax.numpy as xp
from jax import lax, random
warnings.simplefilter("ignore")
x, y, key = np.ones((2, 3), np.float32), np.ones((4,), np.float32), random.PRNGKey(0)
i = np.zeros((1, 1), np.int32)
found = []
for expression in json.load(sys.stdin):
    try:
        eval(expression)
        found.append(None)
    except Exception as error:
        found.append([c.__name__ for c in type(error).__mro__])
print(json.dumps(found))
"""

PYTHONS_OWN = {"xp.asarray(x) + 'a'", "api.jit(lambda v: v)(None, 1)"}
"""Python's own errors: for an operator that neither operand has, and from the user's function."""
BUILT_IN = (
    TypeError,
    ValueError,
    IndexError,
    KeyError,
    OverflowError,
    NotImplementedError,
    NameError,
)
GIVEN = {
    "x": np.ones((2, 3), np.float32), "y": np.ones((4,), np.float32),
    "i": np.zeros((1, 1), np.int32),
}  # fmt: skip


@pytest.fixture(scope="module")
def jax_raises() -> dict[str, list[str] | None]:
    done = subprocess.run(
        [sys.executable, "-c", ASK_JAX], input=json.dumps(AS_JAX), capture_output=True, text=True,
        timeout=250, check=True,
    )  # fmt: skip
    answers = done.stdout.splitlines()[-1]  # JAX 0.12 prints a line before it
    return dict(zip(AS_JAX, json.loads(answers), strict=True))


@pytest.mark.parametrize("expression", AS_JAX)
def test_errors_can_be_caught_by_the_class_that_jax_raises(
    expression: str, jax_raises: dict[str, list[str] | None]
) -> None:
    names = {"np": np, "api": plugrt, "xp": xp, "lax": lax, "random": random, **GIVEN}
    error = raised(lambda: eval(expression, {**names, "key": random.PRNGKey(0)}), [], {})
    theirs = jax_raises[expression]
    if theirs is None:
        return
    assert error is not None, "JAX raises, and plugrt does not"
    assert isinstance(error, PlugrtError) or expression in PYTHONS_OWN
    wanted = [cls for cls in BUILT_IN if cls.__name__ in theirs]
    assert all(isinstance(error, cls) for cls in wanted), (type(error), theirs, str(error))
