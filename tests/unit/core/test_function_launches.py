"""Calls in the compiled core through functions of a backend: jaxlib's, and the tests'."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.errors import DeletedBuffer, FailedPrecondition
from plugrt.native.native_core import core
from support.native_core import runs_in_c

pytestmark = runs_in_c
H = np.arange(4, dtype=np.float32)


def _runner(function: Any) -> Any:
    [runner] = set(function._pipeline.calls.values())
    return runner


@pytest.mark.parametrize("devices", [1, 2])
def test_calls_run_in_the_core_on_one_device_and_on_several(devices: int) -> None:
    sharding: Any = plugrt.devices()[0]
    if devices == 2:
        if len(plugrt.devices()) < 2:
            pytest.skip("no second device here")
        mesh = plugrt.make_mesh((2,), ("i",), devices=plugrt.devices()[:2])
        spec = plugrt.sharding.PartitionSpec("i")
        sharding = plugrt.sharding.NamedSharding(mesh, spec)
    add = plugrt.jit(lambda a, b: (a + b, a - b))
    x, y = (plugrt.device_put(value, sharding) for value in (3 * H, H))
    for _ in range(3):
        total, difference = add(x, y)
        np.testing.assert_array_equal(np.asarray(total), 4 * H)
        np.testing.assert_array_equal(np.asarray(difference), 2 * H)
        assert total.sharding.is_equivalent_to(x.sharding, 1)
    assert type(_runner(add)) is core.Runner
    y.delete()
    with pytest.raises(DeletedBuffer, match="argument b of"):
        add(x, y)


def test_errors_of_a_launch_are_explained_as_in_python() -> None:
    add = plugrt.jit(lambda a, b: a + b)
    x, y = plugrt.device_put(H), plugrt.device_put(H)
    add(x, y)
    y.addressable_shards[0].data.delete()  # without notice to the array
    with pytest.raises(DeletedBuffer, match=r"deleted|donated"):
        add(x, y)
    [traced] = add._pipeline.traces.values()
    [[executable]] = traced.loaded.values()
    executable.delete()
    with pytest.raises(FailedPrecondition, match="was deleted"):
        add(x, x)


class _Given:
    """The functions that a program of another backend may provide."""


def _run(x: Any, **given: Any) -> Any:
    """Calls a runner of the given functions with one array; "slow" means a call left to Python."""
    steps = {
        "take": None,
        "take_arguments": (),
        "argument_class": None,
        "unless": (),
        "explain": None,
        **given,
    }
    launcher = core.FunctionLauncher(results=2, **steps)

    def explain(values: Any, error: Exception) -> Any:
        raise error

    pair, avals = core.Tree(2, (0, 1), None), (x._aval, x._aval)
    outputs = core.Outputs(avals, (-1, -1), (), None, pair)
    return core.Runner(
        launcher, 1, (0,), (None,), (), (), "it", outputs, lambda _: "slow", explain
    )((x,))


def test_a_runner_takes_what_a_backends_functions_give() -> None:
    x = plugrt.device_put(H)
    held, full = x._shards, [1]
    empty: list[int] = []
    for take in (None, tuple):
        one, other = _run(x, launch=lambda given: [*given, "other"], take=take)
        assert one._shards is held
        assert other._shards == "other"
    one, other = _run(x, launch=list, take=lambda *all: [*all[0], all[1]], take_arguments=("a",))
    assert (one._shards, other._shards) == (held, "a")
    assert _run(x, launch=list, unless=(empty, full)) == "slow"
    assert _run(x, launch=list, argument_class=_Given) == "slow"
    assert len(_run(x, launch=lambda g: g * 2, unless=(empty,), argument_class=type(held))) == 2


def test_a_runner_refuses_what_a_backends_functions_must_not_give() -> None:
    x = plugrt.device_put(H)

    def fail(given: Any) -> Any:
        raise KeyError(len(given))

    with pytest.raises(ValueError, match="gave 1 results where its program has 2"):
        _run(x, launch=list)
    with pytest.raises(KeyError, match="1"):
        _run(x, launch=fail)
    with pytest.raises(LookupError, match="explained") as caught:
        _run(x, launch=fail, explain=lambda error, given: LookupError("explained", error, given))
    assert caught.value.args[2] == [x._shards]
    with pytest.raises(TypeError, match="is no exception: 'a text'"):
        _run(x, launch=fail, explain=lambda error, given: "a text")
    with pytest.raises(ValueError, match="at most two further"):
        _run(x, launch=list, take=list, take_arguments=(1, 2, 3))
    with pytest.raises(TypeError, match="has no len"):
        _run(x, launch=list, unless=(1,))
    outputs = core.Outputs((None,), (-1,), (), None, None)
    with pytest.raises(TypeError, match="a launcher of the core; got"):
        core.Runner(fail, 1, (0,), (None,), (), (), "it", outputs, list, list)
    made = core.FunctionLauncher.__new__(core.FunctionLauncher)
    with pytest.raises(TypeError, match="of a launcher that is made"):
        core.Runner(made, 1, (0,), (None,), (), (), "it", outputs, list, list)
