"""`distributed_debug`: the log of launches on several devices."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import config, lax
from plugrt.sharding import NamedSharding, PartitionSpec
from support.behaviour import behaviour

LOGGER = "plugrt.distributed_debug"


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[dict[str, str]]]]:
    """Returns the logged facts since the last call, with the setting on."""

    def take() -> list[dict[str, str]]:
        found = [r for r in caplog.records if r.name == LOGGER]
        caplog.clear()
        assert {r.levelno for r in found} <= {logging.WARNING}
        return [_read(r.getMessage()) for r in found]

    with config.override(distributed_debug=True), caplog.at_level(logging.WARNING, LOGGER):
        yield take


def _read(message: str) -> dict[str, str]:
    heading, *lines = message.split("\n  ")
    return {"heading": heading, **dict(line.split(": ", 1) for line in lines)}


def rows_of(count: int) -> NamedSharding:
    mesh = plugrt.sharding.Mesh(np.array(plugrt.devices()[:count]), ("x",))
    return NamedSharding(mesh, PartitionSpec("x"))


def doubled(x: Any, y: Any) -> Any:
    return xp.sum(x * 2 + y)


@behaviour(
    114,
    "`distributed_debug` logs each launch on several devices: function, number, devices, process, "
    "arguments and fingerprint",
    jax="a function is logged once, when it is compiled",
)
def test_each_launch_on_several_devices_is_logged(
    logged: Callable[[], list[dict[str, str]]],
) -> None:
    rows = rows_of(4)
    x = plugrt.device_put(np.arange(8, dtype=np.float32).reshape(4, 2), rows)
    fun = plugrt.jit(doubled)
    logged()
    for _ in range(3):
        fun(x, np.float32(1))
    first, second, third = logged()
    numbers = [int(one.pop("launch")) for one in (first, second, third)]
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]
    assert first == second == third
    assert first["heading"] == "launching 'doubled'"
    platform = plugrt.default_backend()
    assert first["devices"] == f"{platform} {[d.id for d in plugrt.devices()[:4]]}"
    assert first["process"] == "0 of 1"
    assert re.fullmatch(
        r"argument x: float32\[4,2\] committed to NamedSharding.*; "
        r"argument y: float32\[\]",
        first["arguments"],
    )
    executable = fun.lower(x, np.float32(1)).compile()
    if plugrt.devices()[0].client.capabilities.fingerprint:
        assert first["fingerprint"] == executable.fingerprint().hex()
    else:
        assert first["fingerprint"].startswith("none (Unimplemented: ")


@behaviour(
    114,
    "so are pmap, operators and programs compiled ahead of time; launches on one device are not",
    jax="functions of jit alone",
)
def test_pmap_operators_and_compiled_programs_are_logged(
    logged: Callable[[], list[dict[str, str]]],
) -> None:
    x = plugrt.device_put(np.ones((4, 2), np.float32), rows_of(4))
    ahead = plugrt.jit(lambda v: v - 1).lower(x).compile()
    logged()
    plugrt.pmap(lambda v: lax.psum(v, "i"), "i", devices=plugrt.devices()[:2])(np.ones((2, 3)))
    [mapped] = logged()
    assert mapped["heading"] == "launching '<lambda>'"
    assert mapped["devices"].endswith(f" {[d.id for d in plugrt.devices()[:2]]}")
    ahead(x)
    ahead(x)
    assert [one["heading"] for one in logged()] == ["launching '<lambda>'"] * 2
    x + x
    [added] = logged()
    assert added["devices"].endswith(f" {[d.id for d in plugrt.devices()[:4]]}")
    plugrt.jit(lambda v: v * 5)(np.ones(3))
    assert logged() == []


@behaviour(
    114,
    "a launch is logged before it is made, so that the last line names the one that hangs or fails",
)
def test_a_launch_that_fails_is_logged(logged: Callable[[], list[dict[str, str]]]) -> None:
    x = plugrt.device_put(np.ones((4, 2), np.float32), rows_of(4))
    gone = plugrt.device_put(np.ones((4, 2), np.float32), rows_of(4))
    add = plugrt.jit(lambda a, b: a + b)
    add(x, gone)
    gone.delete()
    logged()
    with pytest.raises(plugrt.errors.DeletedBuffer):
        add(x, gone)
    assert [one["heading"] for one in logged()] == ["launching '<lambda>'"]


def test_nothing_is_logged_without_it(caplog: pytest.LogCaptureFixture) -> None:
    x = plugrt.device_put(np.ones((4, 2), np.float32), rows_of(4))
    fun = plugrt.jit(lambda v: v * 7)
    with caplog.at_level(logging.WARNING, LOGGER):
        fun(x)
        with config.override(distributed_debug=True):
            fun(x)
        assert len(caplog.records) == 1
        fun(x)
    assert len(caplog.records) == 1
