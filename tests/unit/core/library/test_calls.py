"""The compiled core's calls on a real PJRT library."""

from __future__ import annotations

import _thread
import collections
import copy
import gc
import inspect
import itertools
import pickle
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import plugrt
from plugrt import tree as pytrees
from plugrt.capi import create_client, load_library
from plugrt.errors import (
    ArgumentMismatch,
    DeletedBuffer,
    InvalidArgument,
    NotAnArray,
    UnhashableStaticArgument,
)
from plugrt.interface import Client
from plugrt.native.native_core import core
from support.alone import alone
from support.native_core import runs_in_c, warm_calls
from support.xla_cpu import library_path, needs_library

pytestmark = [
    needs_library,
    runs_in_c,
]
H = np.arange(4, dtype=np.float32)
CALLS = 20_000


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


def test_calls_of_arrays_are_the_cores_whatever_form_the_results_have(client: Client) -> None:
    x, y = _put(client), _put(client, 2 * H)
    functions: dict[str, Any] = {
        "leaf": lambda a, b: a + b,
        "tuple": lambda a, b: (a - b, a * b),
        "list": lambda a, b: [a * b],
        "dict": lambda a, b: {"z": a + b, "a": a - b},
        "unused": lambda a, b: b + 1,
        "many": lambda *values: [value + i for i, value in enumerate(values)],
    }
    for name, function in functions.items():
        jitted = plugrt.jit(function)
        arguments = [x, y] * 20 if name == "many" else [x, y]
        assert not warm_calls(partial(jitted, *arguments)), name
        found = jitted(*arguments)
        expected = function(*[np.asarray(v) for v in arguments])
        assert type(found) is (plugrt.Array if name in ("leaf", "unused") else type(expected))
        if isinstance(found, dict):
            assert [*found] == [*expected]
            found, expected = [*found.values()], [*expected.values()]
        np.testing.assert_array_equal(np.asarray(found), expected)


class Pair(NamedTuple):
    w: Any
    b: Any


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
    for value in (3, 2.5, True, -0.0):  # floats have keys of Python's making
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
    for _ in range(60):  # more than the core opens
        deep = [deep]
    inner = plugrt.jit(lambda t: plugrt.tree.leaves(t)[0] + 1)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(inner(deep)), H + 1)
    with pytest.raises(UnhashableStaticArgument, match="'n' of '<lambda>' is of type list"):
        static(x, [1])


def test_a_warm_call_within_a_traced_function_is_traced(client: Client) -> None:
    x = _put(client)
    twice = plugrt.jit(lambda a: a * 2)
    for _ in range(3):
        twice(x)
    seen: list[Any] = []

    def outer(a: Any) -> Any:
        seen.append(twice(x))  # an array, and no tracer
        return a + seen[-1]

    text = plugrt.jit(outer).lower(x).as_text()
    assert text.count("multiply") == 1
    assert type(seen[0]) is not plugrt.Array


def test_errors_of_warm_calls_show_the_users_frames_alone(client: Client) -> None:
    x, gone = _put(client), _put(client)
    jitted = plugrt.jit(lambda a, b: a + b)
    for _ in range(3):
        jitted(x, x)
    gone.delete()
    with pytest.raises(DeletedBuffer) as error:
        jitted(x, gone)
    assert {frame.filename for frame in traceback.extract_tb(error.tb)} == {__file__}


def test_what_plugrt_donates_on_its_way_names_the_users_line(client: Client) -> None:
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
    for wrong in (H.astype(np.int32), np.float32(2), 1):  # at first, and again
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


def test_results_of_every_form_are_made_in_the_core(client: Client) -> None:
    x = _put(client)
    ordered = collections.OrderedDict
    functions: dict[str, Any] = {
        "nested": lambda a: {"p": Pair(a + 1, [a * 2]), "n": None, "c": (a - 1, {})},
        "unsorted": lambda a: [{"z": a + 1, "a": {"y": a * 2, "b": ()}}],
        "by optree": lambda a: ordered(z=a + 1, a=[a * 2]),
        "many": lambda a: [[a * i, None] for i in range(40)],
        "passed": lambda a: (a, a + 1, [a]),
        "closed over": lambda a: {"c": x, "s": a + x},
    }
    for name, function in functions.items():
        jitted = plugrt.jit(function)
        in_python = warm_calls(partial(jitted, x))
        assert not in_python or name in ("by optree", "passed", "closed over"), name
        found, expected = jitted(x), function(H if name != "closed over" else x)
        assert plugrt.tree.structure(found) == plugrt.tree.structure(expected)
        assert str(plugrt.tree.map(lambda v: 0, found)) == str(
            plugrt.tree.map(lambda v: 0, expected)
        )
        leaves = zip(*map(plugrt.tree.leaves, (found, expected)), strict=True)
        assert all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in leaves), name
    passed = plugrt.jit(functions["passed"])
    first, _, [second] = passed(x)
    first.delete()
    assert not x.is_deleted()
    assert not second.is_deleted()
    with pytest.raises(ValueError, match="of this class"):
        core.Tree(1, {0}, None)
    with pytest.raises(ValueError, match="another number"):
        core.Tree(1, [1], None)


def test_donated_arguments_are_taken_in_the_core_and_say_who_took_them(client: Client) -> None:
    step = plugrt.jit(lambda a, b: (a + b, a - b), donate_argnums=0)
    state, other = _put(client), _put(client)
    for i in range(3):
        taken, buffer = state, state._shards
        state, _ = step(state, other)
        assert (taken.is_deleted(), buffer.is_deleted()) == (True, True), i
        assert buffer.deletion_reason == "was donated to a launch of 'jit__lambda_'"
        with pytest.raises(DeletedBuffer, match=r"donated to '<lambda>', called at .*\.py:\d+"):
            step(taken, other)
    np.testing.assert_array_equal(np.asarray(state), 4 * H)
    with pytest.raises(InvalidArgument, match="a of '<lambda>' is donated, and the same array is"):
        step(state, state)
    same = plugrt.jit(lambda a: a)(state)  # it shares the buffers, which the launch must not take
    step(state, other)
    assert state.is_deleted()
    np.testing.assert_array_equal(np.asarray(same), 4 * H)


def test_a_donation_in_a_thread_without_a_frame_of_python_names_no_line(client: Client) -> None:
    step = plugrt.jit(lambda a: a + 1, donate_argnums=0)
    step(_put(client))
    x = _put(client)
    _thread.start_new_thread(step, (x,))
    while not x.is_deleted():
        time.sleep(0.001)
    with pytest.raises(DeletedBuffer, match="was donated to '<lambda>', which took its memory"):
        np.asarray(x)


def test_what_is_unusual_is_left_to_python(client: Client) -> None:
    jitted = plugrt.jit(lambda a, b: a + b)
    x, gone = _put(client), _put(client)
    jitted(x, x)
    gone.delete()
    with pytest.raises(DeletedBuffer, match="argument b of"):
        jitted(x, gone)
    with pytest.raises(TypeError):
        jitted(x)  # type: ignore[call-arg]
    with plugrt.config.override(debug_nans=True), pytest.raises(FloatingPointError):
        plugrt.jit(lambda a, b: a / b)(x, x)
    outer = plugrt.jit(lambda a: jitted(a, a))
    np.testing.assert_array_equal(np.asarray(outer(x)), 2 * H)


def test_other_threads_see_no_key_that_is_not_filled_yet(client: Client) -> None:
    """What asks for the settings is Python's: another thread may list all objects meanwhile."""
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
        with plugrt.config.override():  # the token is made again
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
        # Results that are kept leave no memory of theirs for the next ones.
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


def test_references_stay_the_same_over_many_calls(client: Client) -> None:
    jitted = plugrt.jit(lambda a, b: (a + b, a - b))
    x, gone = _put(client), _put(client)
    aval, spec, shards = x._aval, x._shards._spec, x._shards
    kept = (aval, spec, shards, spec.handle, plugrt.config.token(), plugrt.Array, jitted)
    jitted(x, x)
    gone.delete()

    def count() -> list[int]:
        gc.collect()
        return [*map(sys.getrefcount, kept), len(gc.get_objects())]

    for _ in range(4):  # the first round fills caches, and garbage of others may go in one
        before = count()
        for i in range(CALLS):
            jitted(x, x)
            if i % 100 == 0:
                with pytest.raises(DeletedBuffer):
                    jitted(x, gone)
        grown = [b - a for a, b in zip(before, count(), strict=True)]
        if max(map(abs, grown)) < 50:
            break
    assert max(map(abs, grown)) < 50, grown


def test_objects_of_derived_classes_are_freed_as_what_they_are() -> None:
    """A class made by ``class`` is collected and larger: its own type has to free it."""

    class Larger(core.Array):  # type: ignore[misc]
        __slots__ = ("__dict__", "__weakref__", "more")

    for _ in range(200):
        made = [Larger() for _ in range(100)]
        for one, other in itertools.pairwise(made):
            one._extra, one.more, one.anything = other, [one], object()
        made[-1]._extra = made[0]  # a cycle through the core's field alone
        del one, other, made
    gc.collect()
    assert not [x for x in gc.get_objects() if type(x) is Larger]
    alive = Larger()
    for name in ("_shards", "_aval", "_extra"):  # as slots of Python's that were never set
        with pytest.raises(AttributeError, match=f"Larger' object has no attribute '{name}'"):
            getattr(alive, name)
    alive._aval = "type"
    assert (alive._shards, alive._extra) == (None, None)


def test_an_argument_is_deleted_while_others_launch_with_it(client: Client) -> None:
    jitted = plugrt.jit(lambda a: a @ a)
    big = np.ones((128, 128), np.float32)
    current = [_put(client, big)]
    jitted(current[0])
    faults: list[BaseException] = []
    done = threading.Event()

    def call() -> None:
        while not done.is_set():
            try:
                assert np.asarray(jitted(current[0]))[0, 0] == 128
            except DeletedBuffer:
                pass
            except BaseException as fault:  # noqa: BLE001  # whatever it is fails the test
                faults.append(fault)
                return

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        old, current[0] = current[0], _put(client, big)
        old.delete()
    done.set()
    for thread in threads:
        thread.join()
    assert not faults
    assert core.calls_under_way() == 0


def test_what_makes_the_containers_of_results_may_fail_and_finds_donated_arrays_gone(
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


def test_compiled_functions_are_copied_as_themselves_and_refused_by_pickle(client: Client) -> None:
    x = _put(client)
    compiled = plugrt.jit(lambda a: a + 1).lower(x).compile()
    assert copy.copy(compiled) is compiled
    assert copy.deepcopy([compiled])[0] is compiled
    with pytest.raises(TypeError, match="cannot pickle compiled '<lambda>', which is loaded"):
        pickle.dumps(compiled)


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
