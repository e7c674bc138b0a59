"""Functions for the processes of `support.processes.run_together`; each returns JSON."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.distributed.initialization import current_run
from plugrt.layout import Format, Layout
from plugrt.sharding import NamedSharding, PartitionSpec
from support.processes import outcome
from support.traffic import watch

HEARTBEAT = 6


def join(**arguments: Any) -> None:
    """Initialises from the variables that `run_together` sets."""
    plugrt.distributed.initialize(**{"heartbeat_timeout_seconds": HEARTBEAT, **arguments})


def membership() -> dict[str, Any]:
    """Joins, clears the backends, shuts down and joins late; returns the result of each step."""
    found: dict[str, Any] = {"before": plugrt.distributed.is_initialized()}
    join()
    found["again"] = outcome(join)
    found["initialized"] = plugrt.distributed.is_initialized()
    found["indices"] = [plugrt.process_index(), plugrt.process_count(), *plugrt.process_indices()]
    found["devices"] = [d.process_index for d in plugrt.devices()]
    found["local"] = [d.process_index for d in plugrt.local_devices()]
    me = plugrt.process_index()
    found["local of"] = [plugrt.local_devices(i) == plugrt.local_devices() for i in (me, 1 - me)]
    found["counts"] = [plugrt.device_count(), plugrt.local_device_count()]
    found["alone"] = outcome(lambda: plugrt.get_backend("alone"))
    plugrt.clear_backends()
    found["after clearing"] = outcome(plugrt.devices)
    plugrt.clear_backends()
    plugrt.distributed.shutdown()
    found["after"] = plugrt.distributed.is_initialized()
    plugrt.devices()
    found["late"] = outcome(join)
    return found


def take_an_index() -> str:
    """Returns the error of joining, in five processes; the last three have wrong parameters.

    The three join when the first two have joined, and those wait until the three were refused, by
    files beside that named by MET. Then the two compute undisturbed, and leave.
    """
    met = Path(os.environ["MET"])
    who = os.environ["WHO"]
    late = who.startswith("late")
    while late and not met.exists():
        time.sleep(0.05)
    message = outcome(join)
    if late:
        met.with_suffix(f".{who}").touch()
        return message
    met.touch()
    while not all(met.with_suffix(f".late{i}").exists() for i in (0, 1, 2)):
        time.sleep(0.05)
    time.sleep(HEARTBEAT / 2)  # enough time for several checks of the watch
    message += f", {float(plugrt.process_allgather(np.ones(3)).sum())}"
    plugrt.distributed.shutdown()
    return message


def join_in_vain() -> str:
    """Returns the error of joining while the other processes do not start."""
    return outcome(lambda: join(initialization_timeout=int(os.environ["WAITS"])))


def exchange_and_end() -> str:
    """Computes with the other processes until one ends as ENDS states, and continues.

    Only a killed process is noticed by heartbeats: one that raises, or leaves, reports it.
    """
    index, how, *waits = os.environ["ENDS"].split(":")
    join(
        heartbeat_timeout_seconds=HEARTBEAT if how == "kill" else 10_000,
        shutdown_timeout_seconds=1 if how == "leave" else 300,
    )
    mesh = plugrt.make_mesh((plugrt.device_count(),), ("x",))
    whole = NamedSharding(mesh, PartitionSpec())
    rows = NamedSharding(mesh, PartitionSpec("x"))
    x = plugrt.make_array_from_process_local_data(rows, np.ones(2, np.float32))
    total = plugrt.jit(xp.sum, out_shardings=whole)
    assert float(np.asarray(total(x))) == plugrt.device_count()
    if plugrt.process_index() == int(index):
        if how == "leave":
            return how
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("there are no more data")
    if waits == ["sleeping"]:
        time.sleep(10_000)
    if waits == ["in Python"]:
        while True:
            signal.sigtimedwait([], 0.05)
    while True:
        np.asarray(total(x))


def end_at_once() -> str:
    """Joins; process 1 exits at once, process 0 some seconds later."""
    join()
    if plugrt.process_index() == 0:
        time.sleep(3.0)  # longer than the interval of checks for ended processes
    return "done"


def join_with_a_secret() -> str:
    """Returns the error of joining; the two with the secret wait until others were refused."""
    who, met = os.environ["WHO"], Path(os.environ["MET"])
    if who == "first" or who == "second":
        join()
        _await(lambda: met.with_name("refused-1").exists() and met.with_name("refused-2").exists())
        return "joined"
    secret = os.environ.get("SECRET") or None
    said = outcome(lambda: join(secret=secret))
    met.with_name(f"refused-{who}").touch()
    return said


def _await(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.05)


def lose_the_coordinator() -> None:
    """Joins; process 0 ends the coordinator's process as HOW states; all continue until killed.

    One process is in Python code, the other waits in native code for data that the first never
    sends.
    """
    join(heartbeat_timeout_seconds=2 * HEARTBEAT)
    if (run := current_run()) is not None:
        run.connection.wait_at_barrier("both have joined", 60_000)
    if os.environ["WAITS"] == "for the other":
        plugrt.device_put(np.ones(2), _whole_mesh())
    coordinator = _coordinator()
    os.kill(coordinator, getattr(signal, os.environ["HOW"]))
    if os.environ["HOW"] == "SIGSTOP":  # otherwise the stopped process would stay
        until = ["sh", "-c", f"sleep {2 * HEARTBEAT}; kill -9 {coordinator}"]
        subprocess.Popen(until, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        time.sleep(0.05)


def _coordinator() -> int:
    """Returns the pid of the coordinator's process, this process's child."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process has ended
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            command = (entry / "cmdline").read_bytes()
            if (
                int(parent) == os.getpid()
                and b"plugrt_cpu.distributed.coordinator_process" in command
            ):
                return int(entry.name)
    raise AssertionError("this process has no such child")


def _whole_mesh() -> NamedSharding:
    return NamedSharding(plugrt.make_mesh((plugrt.device_count(),), ("x",)), PartitionSpec())


def share_a_mesh() -> dict[str, Any]:
    """Computes over four devices, of one process or of several; the results are the same."""
    if os.environ["JAX_NUM_PROCESSES"] != "1":
        join()
    me, count = plugrt.process_index(), plugrt.process_count()
    local = plugrt.local_device_count()
    assert plugrt.device_count() == local * count == 4
    mesh = plugrt.make_mesh((2, 2), ("x", "y"))
    tiles, rows = (
        NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("x", "y"), (("x", "y"),))
    )
    whole = NamedSharding(mesh, PartitionSpec())
    found: dict[str, Any] = {}

    def keep(name: str, x: Any) -> None:
        found[name] = plugrt.process_allgather(x, tiled=True).tolist()

    host = np.arange(64, dtype=np.float32).reshape(8, 8)
    a = plugrt.device_put(host, tiles)
    own = host[me * (8 // count) : (me + 1) * (8 // count)]
    b = plugrt.make_array_from_process_local_data(rows, own)
    keep("put", a)
    keep("of each process", b)
    assert a.is_fully_addressable == (count == 1)
    assert a.addressable_shards[0].data.shape == (4, 4)

    step = plugrt.jit(
        lambda p, q: (xp.tanh(p @ q.T / 64), xp.sum(q, axis=0)), out_shardings=(tiles, whole)
    )
    state = b
    for _ in range(3):  # results are fed back
        state, total = step(state, a)
    keep("sharded jit", state)
    found["whole"] = np.asarray(total).tolist()
    keep("follows its arguments", plugrt.jit(lambda p: p[::-1] * 2)(a))
    keep("operators", (a + b) * 2 - xp.ones((8, 8)))

    def ring(block: Any) -> Any:
        return lax.ppermute(lax.psum(block, "y"), "x", [(0, 1), (1, 0)])

    keep("shard_map", plugrt.shard_map(
        ring, mesh=mesh, in_specs=PartitionSpec("x", "y"), out_specs=PartitionSpec("x", None)
    )(a))  # fmt: skip

    slices = np.arange(12, dtype=np.float32).reshape(4, 3)[me * local : (me + 1) * local]
    mapped = plugrt.pmap(
        lambda v: (lax.psum(v, "i"), lax.axis_index("i"), lax.axis_size("i")), axis_name="i"
    )
    total, index, size = mapped(slices)
    keep("pmap psum", total)
    keep("pmap of its results", mapped(total)[0])
    keep("pmap index", index)
    keep("pmap size", size)
    alone = plugrt.pmap(lambda v: lax.psum(v, "i"), "i", devices=plugrt.local_devices())
    np.testing.assert_array_equal(alone(slices)[0], slices.sum(0))
    found |= _donate(plugrt.device_put(host, rows), total)
    found |= _call_python(plugrt.device_put(host, rows))
    found |= _lay_out(host, own, tiles, rows)

    backwards = plugrt.sharding.Mesh(np.array(plugrt.devices())[::-1].reshape(4), ("z",))
    columns = NamedSharding(backwards, PartitionSpec(None, "z"))
    moved = plugrt.device_put(a, columns)
    assert moved.sharding == columns
    for shard in moved.addressable_shards:
        np.testing.assert_array_equal(shard.data, host[shard.index])
    keep("another order", moved)
    keep("another spec", plugrt.device_put(a, rows))
    np.testing.assert_array_equal(plugrt.device_put(a, whole), host)

    many = plugrt.jit(lambda v: v + xp.sum(v), out_shardings=rows)
    for _ in range(100):  # without waiting: jaxlib hangs if too many are in flight
        b = many(b)
    found["in flight"] = bool(np.isinf(b.addressable_shards[0].data).all())
    # The two that compile one program raise as well: otherwise they would wait for the third.
    if count > 2:
        other = lambda v: v * (3 if me == 2 else 2)  # noqa: E731
        told = outcome(lambda: plugrt.jit(other, out_shardings=rows)(a))
        assert re.search(r"process 0 and 2 others: compiling .*, process 2: compiling", told), told
    if count > 1:
        plugrt.distributed.shutdown()
    return found


def _donate(x: Any, slices: Any) -> dict[str, Any]:
    """Donates results of jit and of pmap to the next launch, and deletes the last ones."""
    found: dict[str, Any] = {}
    step = plugrt.jit(lambda v: v + xp.sum(v), donate_argnums=0, out_shardings=x.sharding)
    mapped = plugrt.pmap(lambda v: v + lax.psum(v, "i"), "i", donate_argnums=0)
    for name, function, y in (("jit", step, x), ("pmap", mapped, slices)):
        for _ in range(3):
            parts, given, y = [s.data for s in y.addressable_shards], y, function(y)
            assert given.is_deleted()
            assert all(part.is_deleted() for part in parts)
        found[f"donated to {name}"] = plugrt.process_allgather(y, tiled=True).tolist()
        parts = [s.data for s in y.addressable_shards]
        y.delete()
        assert all(part.is_deleted() for part in parts)
    return found


def _lay_out(host: Any, own: Any, tiles: Any, rows: Any) -> dict[str, Any]:
    """Puts and computes arrays in a layout over the devices of all processes."""
    turned, by_row = (Format(Layout((1, 0)), sharding) for sharding in (tiles, rows))
    aval = plugrt.ShapeDtypeStruct(host.shape, host.dtype, tiles)
    auto = Format(Layout.AUTO)
    made = {
        "put": plugrt.device_put(host, turned),
        "of an array": plugrt.device_put(plugrt.device_put(host, tiles), turned),
        "of another": plugrt.device_put(plugrt.device_put(host, turned), by_row),
        "of a callback": plugrt.make_array_from_callback((8, 8), turned, lambda i: host[i]),
        "of each process": plugrt.make_array_from_process_local_data(by_row, own),
        "of a program": plugrt.jit(lambda v: v * 1, out_shardings=turned)(host),
        "of a constraint": plugrt.with_sharding_constraint(host, turned),
    }
    for x in made.values():
        assert x.format.layout.major_to_minor == (1, 0)
        assert {shard.data.format.layout for shard in x.addressable_shards} == {x.format.layout}
        for shard in x.addressable_shards:
            np.testing.assert_array_equal(shard.data, host[shard.index])
    step = (
        plugrt.jit(lambda v: v.T @ v, in_shardings=auto, out_shardings=auto).lower(aval).compile()
    )
    (where,), _ = step.input_formats
    made["chosen"] = step(plugrt.device_put(host, where))
    assert made["chosen"].format == step.output_formats
    made["taken so"] = plugrt.jit(lambda v: v[::-1] + 1, donate_argnums=0)(made.pop("put"))
    return {
        f"in a layout, {name}": plugrt.process_allgather(x, tiled=True).tolist()
        for name, x in made.items()
    }


def _call_python(x: Any) -> dict[str, Any]:
    """Runs programs over devices of all processes that call Python.

    Process 0 traces another program first, so that its functions have other numbers.
    """
    if plugrt.process_index() == 0:
        one = plugrt.ShapeDtypeStruct((), np.dtype(np.float32))
        assert plugrt.jit(lambda: plugrt.pure_callback(lambda: np.float32(1), one))() == 1
    seen: list[Any] = []

    def see(v: Any) -> Any:
        seen.append(v)
        return v * 2

    whole = plugrt.ShapeDtypeStruct(x.shape, x.dtype)
    part = plugrt.ShapeDtypeStruct(x.sharding.shard_shape(x.shape), x.dtype)
    axes = x.sharding.spec
    jitted = plugrt.jit(
        lambda v: plugrt.io_callback(see, whole, v) + plugrt.io_callback(see, whole, v + 1)
    )
    mapped = plugrt.shard_map(
        lambda v: plugrt.io_callback(see, part, v),
        mesh=x.sharding.mesh, in_specs=axes, out_specs=axes,
    )  # fmt: skip
    results = {"python in jit": jitted(x), "python in shard_map": mapped(x)}
    found = {name: plugrt.process_allgather(y, tiled=True).tolist() for name, y in results.items()}
    plugrt.effects_barrier()
    calls_for_all = 2 if x.sharding.devices[0].is_addressable else 0
    assert len(seen) == calls_for_all + plugrt.local_device_count()
    return found


def call_in_order() -> dict[str, Any]:
    """Runs programs with ordered calls over all devices, and over them in the reverse order.

    Returns the calls by this process, and the results of `plugrt.io_callback`, which are random.
    """
    join()
    every = plugrt.devices()
    kept: list[list[int]] = []
    index, bits = plugrt.ShapeDtypeStruct((), "int32"), plugrt.ShapeDtypeStruct((2,), "uint32")
    number = plugrt.ShapeDtypeStruct((), "float32")

    def note(*values: Any) -> None:
        kept.append([int(value) for value in values])

    def draw(n: Any) -> Any:
        note(n, 0)
        return np.random.default_rng().integers(0, 1 << 32, 2, np.uint32)

    def whole(x: Any, n: Any) -> tuple[Any, Any]:
        found = plugrt.io_callback(draw, bits, n, ordered=True)
        zero = plugrt.io_callback(lambda: np.float32(-0.0), number, ordered=True)
        plugrt.io_callback(note, None, n, 1, ordered=True)
        return x + 0 * found.sum(), (found, xp.signbit(zero))

    def parts(x: Any, n: Any) -> Any:
        place = lax.axis_index("x")
        plugrt.io_callback(note, None, place, n, 0, ordered=True)
        return x + plugrt.io_callback(
            lambda i, n: (note(i, n, 1), n)[1], index, place, n, ordered=True
        )

    found: dict[str, Any] = {"drawn": [], "negative": []}
    jitted = plugrt.jit(whole)
    for n, devices in enumerate((every, every[::-1], every)):
        mesh = plugrt.sharding.Mesh(np.array(devices), ("x",))
        x = plugrt.device_put(np.arange(8.0), NamedSharding(mesh, PartitionSpec("x")))
        drawn, negative = jitted(x, np.int32(n))[1]
        found["drawn"].append(np.asarray(drawn).tolist())
        found["negative"].append(bool(negative))
        specs = PartitionSpec("x")
        mapped = plugrt.shard_map(
            parts, mesh=mesh, in_specs=(specs, PartitionSpec()), out_specs=specs
        )
        mapped(x, np.int32(n)).block_until_ready()
    plugrt.effects_barrier()
    found["whole"] = [call for call in kept if len(call) == 2]
    places = sorted({call[0] for call in kept if len(call) == 3})
    found["parts"] = {i: [call[1:] for call in kept if len(call) == 3 and call[0] == i]
                      for i in places}  # fmt: skip
    return found


def fail_in_one() -> list[str]:
    """Runs programs whose function fails in the process FAILS, twice each; returns the errors.

    The function is called once for all devices (``jit``), or by each before an exchange
    (``shard_map``).
    """
    join()
    me, fails = plugrt.process_index(), int(os.environ["FAILS"])
    fail, mesh = [False], plugrt.make_mesh((plugrt.device_count(),), ("x",))
    x = plugrt.device_put(np.arange(8.0), NamedSharding(mesh, PartitionSpec("x")))

    def call(value: Any) -> Any:
        if fail[0] and me == fails:
            raise ValueError("a user's mistake")
        return value

    def part(v: Any) -> Any:
        same = plugrt.ShapeDtypeStruct(v.shape, v.dtype)
        for _ in range(2):
            v = plugrt.io_callback(call, same, v, ordered=True) + 0 * v
        return v if os.environ["BY"] == "jit" else v + 0 * lax.psum(v, "x")

    f = plugrt.jit(part)
    if os.environ["BY"] != "jit":
        specs = PartitionSpec("x")
        f = plugrt.jit(plugrt.shard_map(part, mesh=mesh, in_specs=specs, out_specs=specs))
    said = []
    for fail[0] in (False, True, False, True):
        said.append(outcome(lambda: f(x).block_until_ready()).splitlines()[0])
    return said


def copy_between_processes() -> dict[str, Any]:
    """Copies arrays to devices of other processes, and returns this process's parts."""
    join()
    me, count = plugrt.process_index(), plugrt.process_count()
    own = [plugrt.local_devices(index) for index in range(count)]
    first, last = own[0][0], own[-1][-1]
    found: dict[str, Any] = {}

    def make(sharding: Any, host: Any) -> Any:
        return plugrt.make_array_from_callback(
            host.shape, sharding, lambda index: host[index], dtype=host.dtype
        )

    def keep(name: str, x: Any) -> None:
        shards = x.addressable_shards
        found[name] = [[s.device.id, np.asarray(s.data).astype(float).tolist()] for s in shards]

    def over(devices: Any) -> Any:
        return NamedSharding(plugrt.sharding.Mesh(np.array(devices), ("x",)), PartitionSpec("x"))

    host = np.arange(6, dtype=np.float32).reshape(2, 3)
    found["declared"] = plugrt.local_devices()[0].client.capabilities.copies_between_processes
    buffer = own[me][0].client.buffer_from_host(host, own[me][0])
    [copy] = buffer.device.client.copy_between_processes(
        buffer.type, [(buffer.device, buffer.device)], [buffer]
    )
    found["within"] = bool((copy.to_host() == host).all()) and copy.device is buffer.device
    x = make(plugrt.sharding.SingleDeviceSharding(first), host)
    with watch(plugrt.get_backend(), "put", "read") as traffic:
        y = plugrt.device_put(x, last)
        plugrt.block_until_ready(y)
    found["through the host"] = [transfer.method for transfer in traffic]
    assert y.sharding == plugrt.sharding.SingleDeviceSharding(last)
    assert y.committed
    keep("one", y)
    found["read"] = outcome(lambda: np.asarray(y))
    found["format"] = y.format.layout is None
    keep("and back", plugrt.device_put(y, plugrt.sharding.SingleDeviceSharding(first)))
    for dtype in ("bool", "int8", "bfloat16", "complex64"):
        z = make(over(own[0]), np.arange(4).astype(dtype))
        keep(f"{dtype} over devices", plugrt.device_put(z, over(own[-1])))
    keep("empty", plugrt.device_put(make(over(own[0]), np.ones((0, 2))), over(own[-1])))
    half, other = over([d[0] for d in own]), over([d[-1] for d in own][::-1])
    keep("crossing", plugrt.device_put(make(half, np.arange(count)), other))
    # From each process to the next one: the others make the same calls, without data.
    for step in range(1, count):
        x = plugrt.device_put(x, own[step][0])
    keep("relay", x)
    tiny = make(over(own[0]), np.ones(4, "int4"))
    found["int4"] = outcome(lambda: plugrt.device_put(tiny, over(own[-1])))
    uneven = [make(over(own[0]), np.ones(8, np.int32)), make(over(own[0]), np.ones(4, np.int32))]
    found["other arrays"] = outcome(lambda: plugrt.device_put(uneven[min(me, 1)], over(own[-1])))
    found["uncommitted"] = outcome(lambda: plugrt.device_put(xp.ones(2), own[me - 1][0]))
    plugrt.distributed.shutdown()
    return found


def copy_where_only_one_is_set_up() -> str:
    """Returns the error of a copy if only one process has the setting."""
    join()
    message = outcome(lambda: plugrt.device_put(_first_has(), plugrt.local_devices(1)[0]))
    plugrt.distributed.shutdown()
    return message


def gather_from_processes() -> dict[str, Any]:
    """Gathers data that differ between processes."""
    join()
    me = plugrt.process_index()
    rows = NamedSharding(plugrt.make_mesh((4,), ("x",)), PartitionSpec("x"))
    divided = plugrt.make_array_from_process_local_data(rows, np.int32([me, me]))
    found = {
        "stacked": plugrt.process_allgather({"a": np.int32([me, 7]), "b": me + 0.5}),
        "tiled": plugrt.process_allgather((np.int8([[me, 7]]), me), tiled=True),
        "array": plugrt.process_allgather(xp.asarray([me])),
        "of 0": plugrt.broadcast_one_to_all({"a": np.int32([me, 7]), "b": me + 0.5}),
        "of 1": plugrt.broadcast_one_to_all(xp.asarray([[me]]), is_source=me == 1),
        "parts": plugrt.broadcast_one_to_all(divided),
    }
    plugrt.distributed.shutdown()
    return plugrt.tree.map(lambda leaf: leaf.tolist(), found)


def convert_and_compare() -> dict[str, Any]:
    """Makes arrays over all processes from the parts of each, and back; compares values."""
    join(initialization_timeout=60)
    me, count = plugrt.process_index(), plugrt.process_count()
    own = plugrt.local_device_count()
    mesh = plugrt.make_mesh((count, own), ("p", "d"))
    rows, whole = PartitionSpec(("p", "d")), PartitionSpec()
    inputs = {"rows": np.full((own, 2), me, np.int32), "same": xp.asarray([7, 8])}
    specs = {"rows": rows, "same": whole}
    made = plugrt.host_local_array_to_global_array(inputs, mesh, specs)
    again = plugrt.global_array_to_host_local_array(made, mesh, specs)
    other = plugrt.global_array_to_host_local_array(made["rows"], mesh, PartitionSpec("d"))
    unmoved = plugrt.host_local_array_to_global_array(made, mesh, specs)
    plugrt.sync_global_devices("made")
    plugrt.assert_equal({"same": made["same"], "step": 3, "host": np.ones(2)})
    found = {
        "whole": plugrt.process_allgather(made, tiled=True),
        "sums": plugrt.jit(lambda x: x.sum())(made["rows"]),
        "again": again,
        "other": other,
        "unmoved": [unmoved["rows"] is made["rows"], unmoved["same"] is made["same"]],
        "kept": plugrt.global_array_to_host_local_array(again, mesh, specs)["rows"]
        is again["rows"],
        "local": again["rows"].is_fully_addressable,
        "shapes": [list(x.shape) for x in (made["rows"], made["same"])],
        "different": outcome(lambda: plugrt.assert_equal({"a": 1, "b": me}, "not the same b")),
        "names": outcome(lambda: plugrt.sync_global_devices(f"step {me}")),
        "divided": outcome(lambda: plugrt.assert_equal(made["rows"])),
        "uneven": outcome(
            lambda: plugrt.host_local_array_to_global_array(np.ones(2 * own + 1), mesh, rows)
        )
        if own > 1
        else "ShapeError: ",
    }
    turned = np.array(plugrt.devices(), object)[[0, 2, 1, 3]]
    scattered = plugrt.sharding.Mesh(turned, ("x",))
    found["scattered"] = outcome(
        lambda: plugrt.host_local_array_to_global_array(1, scattered, whole)
    )
    plugrt.distributed.shutdown()
    return plugrt.tree.map(lambda x: x.tolist() if hasattr(x, "tolist") else x, found)


def map_over_processes() -> dict[str, Any]:
    """Calls pmap on the devices of all processes, with this process's slices of the mapped axis.

    Each of the two processes has two devices.
    """
    join(initialization_timeout=60)
    me, devices = plugrt.process_index(), plugrt.devices()
    slices = np.arange(12, dtype=np.float32).reshape(4, 3)[2 * me : 2 * me + 2]
    row = np.float32([[1, 2], [3, 4]])[me : me + 1]

    def total(v: Any) -> Any:
        return lax.psum(v, "i")

    def both(v: Any) -> Any:
        return lax.psum(v, "j"), lax.psum(v, "i"), lax.psum(v, ("i", "j")), lax.axis_size("i")

    def nested(r: Any) -> Any:
        return plugrt.pmap(both, "j")(r)

    stated = plugrt.pmap(total, "i", global_axis_size=4)
    ahead = stated.lower(slices).compile()
    within = plugrt.pmap(nested, "i", global_axis_size=2)
    with plugrt.config.override(debug_nans=True):
        invalid = outcome(lambda: plugrt.pmap(xp.sqrt)(slices if me == 0 else -slices))
    found = {
        "stated": stated(slices).tolist(),
        "shape": list(stated.eval_shape(slices).shape),
        "ahead": ahead(slices).tolist(),
        "within": [x.tolist() for x in within(row)],
        "within, listed": [x.tolist() for x in plugrt.pmap(nested, "i", devices=devices)(row)],
        "invalid": invalid,
    }
    turned = [devices[i] for i in (0, 2, 1, 3)]
    wrong = {
        "global size": lambda: plugrt.pmap(total, "i", global_axis_size=2)(slices),
        "global size within": lambda: plugrt.pmap(nested, "i", global_axis_size=4)(row),
        "size around": lambda: plugrt.pmap(nested, "i")(slices[:, :2]),
        "size": lambda: plugrt.pmap(total, "i")(slices[:1]),
        "groups": lambda: plugrt.pmap(nested, "i", devices=turned)(row),
    }
    found |= {name: outcome(call) for name, call in wrong.items()}
    with plugrt.disable_jit():
        found["by operation"] = outcome(lambda: plugrt.pmap(total, "i")(slices))
    plugrt.distributed.shutdown()
    return found


def do_what_is_refused() -> dict[str, str]:
    """Returns the error of each wrong use; all processes continue after it."""
    join(initialization_timeout=60)
    me, other = plugrt.process_index(), 1 - plugrt.process_index()
    mesh = plugrt.make_mesh((4,), ("x",))
    rows = NamedSharding(mesh, PartitionSpec("x"))
    x = plugrt.device_put(np.ones((4, 2), np.float32), rows)
    there = plugrt.local_devices(other)[0]
    half = plugrt.sharding.Mesh(np.array(plugrt.devices())[[0, 2]], ("x",))
    programs = [lambda v: v + 1, lambda v: v * 2]
    pair = np.ones((3, 2), np.float32)
    found = {
        "read": lambda: np.asarray(x),
        "remote": lambda: plugrt.device_put(pair, there),
        "remote sharding": lambda: plugrt.device_put(
            x, plugrt.sharding.SingleDeviceSharding(there)
        ),
        "remote jit": lambda: plugrt.jit(lambda v: v, device=there)(pair),
        "remote default": lambda: _under_default(there),
        "not set up": lambda: plugrt.device_put(_first_has(), plugrt.local_devices(1)[0]),
        "values": lambda: plugrt.device_put(np.float32([1, 2, 3, 4 + me]), rows),
        "shapes": lambda: plugrt.device_put(np.ones((4, 1 + me), np.float32), rows),
        "devices": lambda: plugrt.device_put(x, NamedSharding(half, PartitionSpec("x"))),
        "pmap": lambda: plugrt.pmap(lambda v: v)(pair),
        "pmap remote": lambda: plugrt.pmap(lambda v: v, devices=[there]),
        "programs": lambda: plugrt.jit(programs[me], out_shardings=rows)(x),
        "batches": lambda: plugrt.jit(lambda v: v - 1)(
            plugrt.make_array_from_process_local_data(rows, np.ones((2 + 2 * me, 3), np.float32))
        ),
        "stated batches": lambda: plugrt.make_array_from_process_local_data(
            rows, np.ones((2 + me, 3), np.float32), (4, 3)
        ),
        "nan": lambda: _under_debug_nans(rows),
        "no source": lambda: plugrt.broadcast_one_to_all(pair, is_source=False),
        "two sources": lambda: plugrt.broadcast_one_to_all(pair, is_source=True),
    }
    told = {name: outcome(call) for name, call in found.items()}
    told |= _in_threads(rows)
    assert float(plugrt.process_allgather(programs[0](x)).sum()) == 16.0
    plugrt.distributed.shutdown()
    return told


def _in_threads(sharding: Any) -> dict[str, str]:
    """Makes arrays of two sizes in two threads, whose order differs between the processes.

    Further threads, with a time limit of 3 seconds, make an array whose parts differ in size.
    """
    me, run = plugrt.process_index(), current_run()
    assert run is not None
    told: dict[str, str] = {}

    def make(name: str, size: int) -> None:
        def from_parts() -> None:
            part = np.full((size, 2), me, np.float32)
            whole = plugrt.make_array_from_process_local_data(sharding, part)
            assert whole.shape == (2 * size, 2)

        told[name] = outcome(from_parts)

    threads = []
    for size in (2, 4) if me else (4, 2):
        before = sum(run.comparisons.values())
        threads.append(threading.Thread(target=make, args=(f"in threads, {size}", size)))
        threads[-1].start()
        while sum(run.comparisons.values()) == before and threads[-1].is_alive():
            time.sleep(0.01)
    for thread in threads:
        thread.join()
    told_of = run.connection.membership
    run.connection.membership = replace(told_of, initialization_timeout=3)
    late = threading.Thread(
        target=make, args=("in threads, other parts", 6 + 2 * me), name="loader"
    )
    late.start()
    late.join()
    run.connection.membership = told_of
    return told


def _first_has() -> Any:
    """Returns an array on the run's first device, which belongs to process 0."""
    there = plugrt.sharding.SingleDeviceSharding(plugrt.devices()[0])
    return plugrt.make_array_from_callback(
        (2,), there, lambda _: np.ones(2, np.float32), dtype=np.float32
    )


def _under_default(device: Any) -> Any:
    with plugrt.default_device(device):
        return plugrt.device_put(np.ones(2))


def _under_debug_nans(sharding: Any) -> Any:
    """Computes roots, of negative numbers in process 1, by jit under `debug_nans`."""
    here = np.full((plugrt.local_device_count(), 2), 1 - 2.0 * plugrt.process_index(), np.float32)
    with plugrt.config.override(debug_nans=True):
        x = plugrt.make_array_from_process_local_data(sharding, here) + 0
        return plugrt.jit(lambda v: xp.sqrt(v) + 1)(x)
