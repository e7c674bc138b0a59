"""The transfer guard: logged and refused transfers, by direction and level."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import Array, config, devices, jit, pmap
from plugrt import array_api as xp
from plugrt.errors import ConfigError, InvalidArgument
from plugrt.sharding import NamedSharding, PartitionSpec
from support.behaviour import behaviour

X = np.arange(3, dtype=np.float32)
LOGGER = "plugrt.transfer_guard"


def add(x: Any, y: Any) -> Any:
    return x + y


def put(number: int) -> Array:
    found: Array = plugrt.device_put(X, devices()[number])
    return found


def refused(call: Callable[[], Any], says: str) -> None:
    """Asserts that a call is refused; the error has these words and a line of this file."""
    with pytest.raises(InvalidArgument, match=says) as error:
        call()
    assert re.search(rf"called at {re.escape(__file__)}:\d+", str(error.value))


@pytest.mark.parametrize("level", ["disallow", "disallow_explicit"])
def test_numbers_in_indices_and_arithmetic_are_no_implicit_transfers(level: str) -> None:
    """Differs from JAX: numbers under `transfer_guard("disallow")` | refused | counted as explicit.

    If they were refused, nobody could leave the guard on in a program.
    """
    f, a = jit(add), plugrt.device_put(np.arange(12, dtype=np.float32).reshape(3, 4))
    zero = plugrt.device_put(np.float32(0))
    calls: list[Callable[[], Any]] = [
        lambda: a[1:, :3], lambda: a[2], lambda: a[-1, ::2], lambda: a[None, 0], lambda: a + 4,
        lambda: a * 2.5, lambda: a > 1, lambda: xp.where(a > 1, a, 0.0), lambda: f(a, 2.0),
        lambda: xp.full((2,), 1.5), lambda: np.float32(7) - a, lambda: a * 0.8125,
        lambda: a.at[1].set(zero),
    ]  # fmt: skip
    for call in calls:
        with plugrt.transfer_guard(level):
            if level == "disallow":
                call()
            else:
                refused(call, "host-to-device transfer")


def test_exchanges_among_the_same_devices_are_no_transfers() -> None:
    """Same as JAX: an exchange of parts among the same devices passes the transfer guard."""
    if plugrt.local_device_count() < 4:
        pytest.skip("no 4 devices here")
    one, two = plugrt.make_mesh((4,), ("x",)), plugrt.make_mesh((4,), ("y",))
    rows, same = (NamedSharding(m, PartitionSpec(n)) for m, n in ((one, "x"), (two, "y")))
    columns = NamedSharding(one, PartitionSpec(None, "x"))
    x = plugrt.device_put(np.arange(32, dtype=np.float32).reshape(8, 4), rows)
    with plugrt.transfer_guard_device_to_device("disallow_explicit"):
        aliased = plugrt.device_put(x, same, may_alias=True)
        exchanged = plugrt.device_put(x, columns)
        summed = jit(add)(x, exchanged)
        with pytest.raises(InvalidArgument, match="device-to-device"):
            plugrt.device_put(x, plugrt.devices()[0])
    for found in (aliased, exchanged, summed):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(x) * (1 + (found is summed)))


@behaviour(11, "`disallow` refuses host data as arguments, at first and warm calls, and says where")
@pytest.mark.parametrize("warm", [False, True])
def test_host_data_as_arguments(warm: bool) -> None:
    f, mapped, there = jit(add), pmap(lambda x: x + 1), put(0)
    compiled = jit(add).lower(X, X).compile()
    calls: dict[str, Callable[[], Any]] = {
        r"argument x of 'add', float32\[3\], to": lambda: f(X, X),
        r"argument x of '<lambda>', float32\[1,3\]": lambda: mapped(X[None]),
        r"Disallowed host-to-device transfer: .*float32\[3\]": lambda: there * X,
        r"argument x of 'add', float32": lambda: compiled(X, X),
        r"argument index of 'getitem', int32\[2\]": lambda: there[np.int32([0, 1])],
        r"argument x of 'fft', complex64": lambda: xp.fft.fft(np.complex64(X)),
    }
    for says, call in calls.items():
        if warm:
            call()
        with plugrt.transfer_guard("disallow"):
            refused(call, says)
        call()


@behaviour(11, "arrays that are where they are needed pass, and so do device_put and device_get")
def test_arrays_in_place_and_explicit_transfers_pass() -> None:
    x, y = put(0), put(0)
    with plugrt.transfer_guard("disallow"):
        np.testing.assert_array_equal(plugrt.device_get(jit(add)(x, y)), 2 * X)
        assert plugrt.device_put(X, devices()[1]).device == devices()[1]
        assert plugrt.device_put(x, devices()[1]).device == devices()[1]
        assert plugrt.device_put(x) is x
        np.testing.assert_array_equal(plugrt.device_get([xp.add(x, y)])[0], 2 * X)


@behaviour(11, "an array on another device is refused as device-to-device")
def test_arrays_on_another_device() -> None:
    here, there = plugrt.device_put(X), put(1)
    with plugrt.transfer_guard("disallow"):
        refused(lambda: jit(add)(here, there), r"device-to-device transfer: argument x of 'add'")
    with plugrt.transfer_guard_host_to_device("disallow"):
        np.testing.assert_array_equal(jit(add)(here, there), 2 * X)


@behaviour(11, "`disallow_explicit` refuses device_put and device_get as well")
def test_explicit_transfers() -> None:
    x = put(0)
    with plugrt.transfer_guard("disallow_explicit"):
        refused(lambda: plugrt.device_put(X), r"host-to-device.*transfer_guard\('allow'\)")
        refused(lambda: plugrt.device_put({"a": 1.0}), "host-to-device transfer: 1.0")
        refused(lambda: plugrt.device_put(x, devices()[1]), r"device-to-device .*to .*1")
        assert plugrt.device_put(x) is x
        with plugrt.transfer_guard("allow"):
            plugrt.device_put(X)


@pytest.fixture
def declare_read(declare: Callable[..., None]) -> Iterator[Callable[[bool], None]]:
    """Returns a function that declares whether the host can address the devices' memory.

    Meanwhile the type of X has no reader.
    """
    aval: Any = put(0).aval
    aval.reader, before = None, aval.reader
    yield lambda whether: declare(zero_copy_get=whether)
    aval.reader = before


@behaviour(
    11,
    "reading is refused and logged on backends whose memory the host does not see",
    jax="the same: on JAX's cpu reading is no transfer",
)
def test_reads(declare_read: Callable[[bool], None], caplog: pytest.LogCaptureFixture) -> None:
    declare_read(False)
    reads = [np.asarray, repr, lambda x: x.tolist(), lambda x: x.tobytes()]
    for read in reads:
        with plugrt.transfer_guard_device_to_host("disallow"):
            refused(lambda read=read: read(put(0)), r"device-to-host transfer: float32\[")  # type: ignore[misc]
    with plugrt.transfer_guard("disallow"):
        np.testing.assert_array_equal(plugrt.device_get(put(0)), X)
    with plugrt.transfer_guard("disallow_explicit"):
        refused(lambda: plugrt.device_get([put_before]), "device-to-host")
    with caplog.at_level(logging.WARNING, LOGGER), plugrt.transfer_guard("log"):
        np.asarray(put(0))
    assert "device-to-host transfer: float32[3], from" in caplog.text


put_before = put(0)


def test_reads_of_the_hosts_memory_are_no_transfers(declare_read: Callable[[bool], None]) -> None:
    declare_read(True)
    x = put(0)
    with plugrt.transfer_guard("disallow_explicit"):
        np.testing.assert_array_equal(np.asarray(x), X)
        np.testing.assert_array_equal(plugrt.device_get(x), X)


@behaviour(11, "`log` and `log_explicit` log each transfer with its line, and the call goes on")
def test_levels_that_log(caplog: pytest.LogCaptureFixture) -> None:
    f = jit(add)
    with caplog.at_level(logging.WARNING, LOGGER):
        with plugrt.transfer_guard("log"):
            np.testing.assert_array_equal(f(X, put(0)), 2 * X)
        [record] = caplog.records
        assert record.levelno == logging.WARNING
        assert "host-to-device transfer: argument x of 'add'" in record.getMessage()
        assert f"called at {__file__}:" in record.getMessage()
        caplog.clear()
        with plugrt.transfer_guard("log_explicit"):
            plugrt.device_put(X)
        assert "host-to-device transfer" in caplog.text


@behaviour(11, "the innermost guard holds; a direction's own setting wins; threads have their own")
def test_settings_and_blocks() -> None:
    f, there = jit(add), put(0)
    with plugrt.transfer_guard_host_to_device("disallow"), plugrt.transfer_guard("allow"):
        f(X, there)
    with plugrt.transfer_guard("disallow"), plugrt.transfer_guard_host_to_device("allow"):
        f(X, there)
    config.update("transfer_guard", "disallow")
    try:
        refused(lambda: f(X, there), "transfer_guard is 'disallow'")
    finally:
        config.update("transfer_guard", None)
    f(X, there)


@behaviour(11, "under `disable_jit` the operations' own transfers are guarded")
def test_without_jit() -> None:
    with plugrt.disable_jit(), plugrt.transfer_guard("disallow"):
        refused(lambda: jit(add)(put(0), X), "host-to-device")


@pytest.mark.parametrize("wrong", ["deny", "", 1, True])
def test_wrong_levels(wrong: Any) -> None:
    for context in (
        plugrt.transfer_guard,
        plugrt.transfer_guard_host_to_device,
        plugrt.transfer_guard_device_to_device,
        plugrt.transfer_guard_device_to_host,
    ):
        with pytest.raises(ConfigError, match=r"allow \| log \| disallow"), context(wrong):
            pass
