"""The compiled core's calls on a real PJRT library."""

from __future__ import annotations

import _thread
import copy
import gc
import inspect
import itertools
import pickle
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import tree as pytrees
from plugrt.capi import create_client, load_library
from plugrt.errors import ArgumentMismatch, DeletedBuffer, NotAnArray, UnhashableStaticArgument
from plugrt.interface import Client
from plugrt.native.native_core import core
from support.alone import alone
from support.native_core import runs_in_c, warm_calls
from support.xla_cpu import library_path, needs_library

pytestmark = [needs_library, runs_in_c]
H = np.arange(4, dtype=np.float32)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    path = library_path()
    assert path is not None
    made = create_client(load_library(path), {"cpu_device_count": 1}, name="core")
    yield made
    plugrt.clear_caches()
    made.close()


def _put(client: Client, value: Any = H) -> plugrt.Array:
    made: plugrt.Array = plugrt.device_put(value, client.devices()[0])
    return made


def test_calls_of_every_form_are_flattened_in_the_core(client: Client) -> None:
    x, y = _put(client), _put(client, 2 * H)
    plus = plugrt.jit(lambda a, b=None: a + b)
    tree = plugrt.jit(lambda t, u: {"sum": t["a"] + t["b"][0] * u})
    static = plugrt.jit(lambda a, n, m=1: a * n + m, static_argnums=1, static_argnames=("n", "m"))
    assert not warm_calls(partial(plus, x, b=y))
    assert not warm_calls(partial(plus, b=y, a=x))
    assert not warm_calls(partial(tree, {"a": x, "b": [y]}, y))
    assert not warm_calls(partial(tree, {"b": (y,), "a": x}, u=y))
    mixed = plugrt.jit(lambda t, u: plugrt.tree.leaves(t)[0] - plugrt.tree.leaves(u)[0])
    for first, second in (([x], y), (x, [y]), ((x,), y), (x, {"k": y})):
        assert not warm_calls(partial(mixed, first, second))
        assert not warm_calls(partial(mixed, first, u=second))
    for value in (3, 2.5, True, -0.0):  # Python makes the keys of floats
        assert not warm_calls(partial(static, x, value))
        assert not warm_calls(partial(static, x, n=value, m=2))
        assert not warm_calls(partial(static, m=2, a=x, n=value))
        np.testing.assert_array_equal(np.asarray(static(x, value, m=2)), H * value + 2)
    np.testing.assert_array_equal(np.asarray(tree({"b": (y,), "a": x}, u=y)["sum"]), H + 4 * H * H)
    many = {f"k{i}": _put(client, i * H) for i in reversed(range(40))}
    last = plugrt.jit(lambda t: [t["k39"] * 1, t["k0"] + 1])
    assert not warm_calls(partial(last, many))
    np.testing.assert_array_equal(np.asarray(last(many)), [39 * H, H * 0 + 1])
    kind = plugrt.jit(lambda t: t[0] + (1 if isinstance(t, list) else 2))
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(kind([x])), H + 1)
        np.testing.assert_array_equal(np.asarray(kind((x,))), H + 2)
    deep: Any = x
    for _ in range(60):  # deeper than the core flattens
        deep = [deep]
    inner = plugrt.jit(lambda t: plugrt.tree.leaves(t)[0] + 1)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(inner(deep)), H + 1)
    with pytest.raises(UnhashableStaticArgument, match="'n' of '<lambda>' is of type list"):
        static(x, [1])


def test_internal_donations_name_the_users_line(client: Client) -> None:
    step = plugrt.jit(lambda a: a + 1, donate_argnums=0)
    for _ in range(3):
        x = _put(client)
        plugrt.tree.map(step, [x])
    with pytest.raises(DeletedBuffer, match=f"called at {re.escape(__file__)}:"):
        np.asarray(x)


def test_calls_of_compiled_objects_with_arrays_are_the_cores(client: Client) -> None:
    x, y = _put(client), _put(client, 2 * H)
    compiled = plugrt.jit(lambda a, b: a + b).lower(x, x).compile()
    assert not warm_calls(partial(compiled, x, y))
    assert [*inspect.signature(compiled).parameters] == ["args", "kwargs"]
    tree = plugrt.jit(lambda t, *, k: t["a"] + t["b"] * k)
    of_tree = tree.lower({"a": x, "b": x}, k=x).compile()
    assert not warm_calls(partial(of_tree, {"a": x, "b": y}, k=y))
    assert not warm_calls(partial(of_tree, {"b": y, "a": x}, k=y))
    np.testing.assert_array_equal(np.asarray(of_tree({"b": y, "a": x}, k=y)), H + 4 * H * H)
    for other in (2 * H, 2 * H, y):
        np.testing.assert_array_equal(np.asarray(compiled(x, other)), 3 * H)
        np.testing.assert_array_equal(np.asarray(of_tree({"a": H, "b": x}, k=other)), H + 2 * H * H)
    scaled = plugrt.jit(lambda a, b: a * b).lower(x, 2.0).compile()
    scaled(x, 2.0)
    for called, args, kwargs in (
        (compiled, (x, H), {}),
        (scaled, (x, 3.0), {}),
        (of_tree, ({"a": H, "b": x},), {"k": H}),
    ):
        assert not warm_calls(partial(called, *args, **kwargs))
    for wrong in (H.astype(np.int32), np.float32(2), 1):  # also the second time
        for _ in range(2):
            with pytest.raises(ArgumentMismatch, match="other types:\n  argument b"):
                compiled(x, wrong)
    with pytest.raises(ArgumentMismatch, match="other types"):
        compiled(x, _put(client, np.arange(4)))
    with pytest.raises(ArgumentMismatch, match="of the structure"):
        of_tree([x, y], k=y)
    with pytest.raises(NotAnArray, match="was called within a traced function"):
        plugrt.jit(lambda a: compiled(a, a))(x)
    y.delete()
    with pytest.raises(DeletedBuffer, match="argument b of"):
        compiled(x, y)


def test_a_donation_in_a_thread_without_a_frame_of_python_names_no_line(client: Client) -> None:
    step = plugrt.jit(lambda a: a + 1, donate_argnums=0)
    step(_put(client))
    x = _put(client)
    _thread.start_new_thread(step, (x,))
    while not x.is_deleted():
        time.sleep(0.001)
    with pytest.raises(DeletedBuffer, match="was donated to '<lambda>', which took its memory"):
        np.asarray(x)


def test_other_threads_see_no_key_that_is_not_filled_yet(client: Client) -> None:
    """Python code runs in between to read settings: another thread may then list all objects."""
    jitted = plugrt.jit(lambda a, b: a - b)
    x, y = _put(client, 3 * H), _put(client)
    jitted(x, y)
    seen: list[Any] = []

    def list_objects() -> Any:
        seen[:] = gc.get_objects()
        return plugrt.config.token()

    attributes = vars(plugrt.config)
    core.set_settings_hooks(attributes, list_objects)
    try:
        with plugrt.config.override():  # makes a new token
            found = jitted(x, y)
    finally:
        core.set_settings_hooks(attributes, plugrt.config.token)
    assert seen
    np.testing.assert_array_equal(np.asarray(found), 2 * H)


def test_objects_that_were_never_made_refuse_to_be_called() -> None:
    with pytest.raises(TypeError, match="not made by its class"):
        core.Runner.__new__(core.Runner)(())
    with pytest.raises(TypeError, match="not made by its class"):
        core.Launcher.__new__(core.Launcher)(())
    with pytest.raises(TypeError, match="of an executable that is made"):
        core.Launcher(core.Executable.__new__(core.Executable), None, None)
    with pytest.raises(TypeError, match="of a client that is made"):
        core.Executable(core.Client.__new__(core.Client), 0, None, 1, ())


@alone
def test_calls_without_memory_raise_and_leave_the_next_ones_whole(client: Client) -> None:
    testcapi = pytest.importorskip("_testcapi")
    x, y = _put(client), _put(client, 2 * H)
    many = plugrt.jit(
        lambda t, n, k: {"s": t["a"] * n + k, "p": [(t["b"], None)]}, static_argnums=1
    )
    flat = plugrt.jit(lambda a, b: (a + b, a - b))
    calls: list[Callable[[], Any]] = [
        lambda: flat(x, y),
        lambda: many({"b": x, "a": y}, 2.5, k=x),
        lambda: many({"a": x, "b": y}, 2, k=y),
    ]
    for call in calls:
        # Keeping results prevents the next ones from reusing their memory.
        kept = [call() for _ in range(100)]
        failed = 0
        for n in range(60):  # the n-th allocation fails
            testcapi.set_nomemory(n, n + 1)
            try:
                kept[n] = call()
            except MemoryError:
                failed += 1
            finally:
                testcapi.remove_mem_hooks()
        assert failed
        np.testing.assert_array_equal(np.asarray(plugrt.tree.leaves(call())[0]).shape, (4,))
    assert core.calls_under_way() == 0


def test_objects_of_derived_classes_are_freed_as_what_they_are() -> None:
    """Instances of Python subclasses are larger, and are tracked: their own type must free them."""

    class Larger(core.Array):  # type: ignore[misc]
        __slots__ = ("__dict__", "__weakref__", "more")

    for _ in range(200):
        made = [Larger() for _ in range(100)]
        for one, other in itertools.pairwise(made):
            one._extra, one.more, one.anything = other, [one], object()
        made[-1]._extra = made[0]  # a cycle only through a field of the core
        del one, other, made
    gc.collect()
    assert not [x for x in gc.get_objects() if type(x) is Larger]
    alive = Larger()
    for name in ("_shards", "_aval", "_extra"):  # like unset ``__slots__``
        with pytest.raises(AttributeError, match=f"Larger' object has no attribute '{name}'"):
            getattr(alive, name)
    alive._aval = "type"
    assert (alive._shards, alive._extra) == (None, None)


def test_containers_of_results_may_fail_and_see_donated_arguments(
    client: Client,
) -> None:
    x = _put(client)
    seen: list[bool] = []
    fails: list[bool] = [False]

    class Box:
        def __init__(self, value: Any) -> None:
            self.value = value

    def unflatten(_: None, values: Any) -> Box:
        seen.append(x.is_deleted())
        if fails[0]:
            raise LookupError("no box")
        return Box(*values)

    pytrees.register_node(Box, lambda box: ((box.value,), None), unflatten)
    jitted = plugrt.jit(lambda a: Box(a + 1), donate_argnums=0)
    for fails[0] in (False, False, True, True):
        x = _put(client)
        seen.clear()
        if fails[0]:
            with pytest.raises(LookupError, match="no box"):
                jitted(x)
        else:
            jitted(x)
        assert seen[-1]
        with pytest.raises(DeletedBuffer, match="donated to '<lambda>', called at"):
            np.asarray(x)


def test_an_interrupt_while_a_keyword_is_looked_up_is_not_lost(client: Client) -> None:
    x = _put(client)
    left = [-1]

    class Name(str):
        __slots__ = ()
        __eq__ = str.__eq__

        def __hash__(self) -> int:
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            return str.__hash__(self)

    jitted = plugrt.jit(lambda a, b, s=1: a + b * s, static_argnames="s")
    for _ in range(2):
        jitted(x, b=x)
    arguments = {Name("b"): x}
    for count in range(1, 4):
        left[0] = count
        with pytest.raises(KeyboardInterrupt):
            jitted(x, **arguments)
    left[0] = -1
    np.testing.assert_array_equal(np.asarray(jitted(x, **arguments)), 2 * H)


def test_compiled_functions_are_copied_as_themselves_and_refused_by_pickle(client: Client) -> None:
    x = _put(client)
    compiled = plugrt.jit(lambda a: a + 1).lower(x).compile()
    assert copy.copy(compiled) is compiled
    assert copy.deepcopy([compiled])[0] is compiled
    with pytest.raises(TypeError, match="cannot pickle compiled '<lambda>', which is loaded"):
        pickle.dumps(compiled)
