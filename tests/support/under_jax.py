"""Stock JAX with exported plugins: run in a child process, a function an argument.

``python -m support.under_jax BACKEND FUNCTION…``. BACKEND is ``adder``, ``late`` (2 devices) or
``cpu`` (plugrt's cpu plugin, 4 devices), registered as a capsule; ``numpy``, which JAX finds by the
entry point of plugrt-sdk; or ``np``, a library that PJRT_NAMES_AND_LIBRARY_PATHS names. The last
two are the NumPy backend with 4 devices; ``absent`` is its capsule, with topologies. Prints ``ok
FUNCTION`` for each that succeeded.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import os
import shutil
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plugrt.capi.extensions.ffi import address_of, make_c_handler
from plugrt.errors import ResourceExhausted, Unimplemented
from plugrt.interface import Client
from plugrt_numpy import plugin as numpy_plugin
from plugrt_sdk import BackendClient
from plugrt_sdk.export import _core, export_capsule
from support.effort import EFFORT
from support.exported import find_handles_left
from support.late_client import Adder, LateAdder
from support.markdown import load_script
from support.staged_handlers import StagedLibrary

BACKEND = sys.argv[1] if len(sys.argv) > 1 else "adder"
NAME = "exported" if BACKEND == "cpu" else BACKEND
IS_NUMPY = BACKEND in ("numpy", "np")
os.environ["JAX_PLATFORMS"] = f"{NAME},cpu"
if IS_NUMPY:
    os.environ["JAX_PJRT_CLIENT_CREATE_OPTIONS"] = "num_devices:4"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax._src import compiler, effects, xla_bridge  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
from jax.experimental import io_callback, topologies  # noqa: E402
from jax.extend.core import Primitive  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

made: list[Any] = []


def make(**options: Any) -> Client:
    """Makes the client of the exported plugin."""
    if BACKEND == "cpu":
        from plugrt_cpu import plugin as cpu_backend

        made.append(cpu_backend.create_client({"num_devices": 4}))
    elif BACKEND == "asynchronous":
        made.append(BackendClient(load_script("examples/asynchronous_backend.py").Asynchronous(2)))
    elif BACKEND == "absent":
        made.append(numpy_plugin.create_client(options))
    else:
        made.append(BackendClient(LateAdder(2) if BACKEND == "late" else Adder(2)))
    client: Client = made[-1]
    return client


if not IS_NUMPY:
    factory = numpy_plugin.create_topology if BACKEND == "absent" else None
    capsule = export_capsule(make, platform=NAME, topology_factory=factory)
    xla_bridge.register_plugin(NAME, c_api=capsule)
    if BACKEND == "cpu":
        from plugrt_sdk.export.jax_functions import connect_functions

        connect_functions(NAME, capsule)
ONE = np.float32([1, 2, 3])


def double(x: Any) -> Any:
    """A program that every backend here can run."""
    return jax.jit(_double)(x)


def _double(x: Any) -> Any:
    return x + x


def devices() -> None:
    found = jax.devices()
    assert len(found) == (4 if BACKEND == "cpu" or IS_NUMPY else 2)
    platform = "numpy" if IS_NUMPY else NAME  # the exported plugin's answer, under any name
    assert {d.platform for d in found} == {platform}
    assert [d.id for d in found] == list(range(len(found)))
    assert repr(found[0]) == f"{platform.capitalize()}Device(id=0)"
    assert jax.devices(NAME) == found


def dtypes() -> None:
    names = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64
    bfloat16 complex64 complex128 float8_e5m2 float8_e4m3fn float8_e4m3b11fnuz float8_e5m2fnuz
    float8_e4m3fnuz int4 uint4 int2 uint2 float8_e4m3 float8_e3m4 float8_e8m0fnu float4_e2m1fn"""
    with jax.enable_x64(True):
        for name in names.split():
            array = np.array([[0, 1, 1], [1, 0, 1]]).astype(getattr(ml_dtypes, name, None) or name)
            for view in (array, array.T, array[::-1, ::-1], array[:, :0], array[0, 0]):
                back = np.asarray(jax.device_put(view))
                assert back.dtype == view.dtype
                assert back.tobytes() == view.tobytes()


def jit_and_get() -> None:
    np.testing.assert_array_equal(double(ONE), 2 * ONE)


def beside_cpu() -> None:
    host = jax.device_put(jax.device_put(ONE), jax.devices("cpu")[0])
    np.testing.assert_array_equal(host * 3, 3 * ONE)
    back = jax.device_put(host, jax.devices()[1])
    assert back.devices() == {jax.devices()[1]}
    np.testing.assert_array_equal(double(back), 2 * ONE)


def pending_exception() -> None:
    for _ in range(200):
        with contextlib.suppress(NameError):
            double(ONE) + nosuchname  # type: ignore[name-defined]  # noqa: F821


def failures() -> None:
    """Each method of the author's fails: JAX reports code and message, and the process survives."""
    x, y = jax.device_put(ONE), jax.device_put(ONE)
    double(x)
    steps: dict[str, Callable[[], Any]] = {
        "put": lambda: jax.device_put(np.ones(3)),
        "get": lambda: np.asarray(y),
        "compile": lambda: jax.jit(lambda x: x * x)(x),
        "launch": lambda: double(x),
        "copy": lambda: jax.device_put(x, jax.devices()[1]).block_until_ready(),
    }
    for method, step in steps.items():
        made[-1].backend.failures = {method: ResourceExhausted(f"no room in {method}")}
        with pytest.raises((RuntimeError, ValueError)) as caught:
            step()
        assert f"RESOURCE_EXHAUSTED: no room in {method}" in str(caught.value)
        assert "late_client.py" in str(caught.value)
    made[-1].backend.failures = {"delete": KeyError("broken")}
    y.delete()
    made[-1].backend.failures = {}
    assert y.is_deleted()
    np.testing.assert_array_equal(double(x), 2 * ONE)


def late_failure() -> None:
    x = jax.device_put(ONE)
    double(x)
    made[-1].backend.late_error = ResourceExhausted("too late")
    for wait in (jax.block_until_ready, np.asarray):
        with pytest.raises(RuntimeError, match=r"^RESOURCE_EXHAUSTED: too late"):
            wait(double(x))
    made[-1].backend.late_error = None


def while_the_device_is_busy() -> None:
    """The worked example: arrays before they are ready, failures, and its second memory."""
    backend, busy = made[-1].backend, threading.Event()
    x = jax.device_put(ONE)
    double(x).block_until_ready()
    backend.workers[0].submit(lambda: [busy.wait()])
    y = double(double(x))
    assert not y.is_ready()
    busy.set()
    np.testing.assert_array_equal(y, 4 * ONE)
    assert y.is_ready()
    get = backend.workers[0].submit
    backend.workers[0].submit = lambda work, count=1: get(lambda: [1 // 0], count)
    failed = double(x)
    backend.workers[0].submit = get
    after = failed + failed  # so do dependent computations
    for wait in (failed.block_until_ready, after.block_until_ready, lambda: np.asarray(after)):
        with pytest.raises(RuntimeError, match="INTERNAL: ZeroDivisionError"):
            wait()
    np.testing.assert_array_equal(double(x), 2 * ONE)
    pinned = jax.sharding.SingleDeviceSharding(jax.devices()[1], memory_kind="pinned_host")
    moved = jax.device_put(x, pinned)
    assert moved.sharding.memory_kind == "pinned_host"
    np.testing.assert_array_equal(moved, ONE)


def two_threads_on_one_array() -> None:
    """``is_ready`` against ``block_until_ready`` and ``asarray``, with pending events."""
    x = jax.device_put(ONE)
    rounds = 1000 * EFFORT
    shared: list[Any] = [None]
    begin, end = threading.Barrier(2), threading.Barrier(2)

    def poll() -> None:
        for _ in range(rounds):
            begin.wait()
            array = shared[0]
            while not array.is_ready():
                pass
            end.wait()

    thread = threading.Thread(target=poll)
    thread.start()
    for i in range(rounds):
        shared[0] = double(x)
        begin.wait()
        jax.block_until_ready(shared[0]) if i % 2 else np.asarray(shared[0])
        end.wait()
    thread.join()


def eight_threads() -> None:
    x = jax.device_put(ONE)

    end = time.monotonic() + (6 * EFFORT if EFFORT > 1 else 0)

    def work() -> None:
        rounds = 0
        while rounds < 100 or time.monotonic() < end:
            rounds += 1
            y = double(x)
            y.is_ready()
            np.testing.assert_array_equal(double(y), 4 * ONE)
            jax.device_put(ONE, jax.devices()[1]).delete()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def no_handle_left() -> None:
    x = jax.device_put(ONE)
    np.asarray(double(x))
    gc.collect()
    before = _core.count_handles()
    for _ in range(1000):
        np.asarray(double(x))
    assert find_handles_left(before) == {}


def fork() -> None:
    x = jax.device_put(ONE)
    double(x)
    warnings.simplefilter("ignore")
    child = os.fork()
    if child == 0:
        os._exit(0 if np.asarray(double(x))[2] == 6 else 1)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(double(x), 2 * ONE)


def exit_with_live_arrays() -> None:
    sys.modules["__main__"].keep = [double(ONE) for _ in range(10)]  # type: ignore[attr-defined]


def transforms() -> None:
    gradient = jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 2)))(jnp.arange(4.0))
    np.testing.assert_allclose(gradient, np.sin(2 * np.arange(4.0)), rtol=1e-5)
    np.testing.assert_array_equal(jax.vmap(lambda x: x @ x)(jnp.ones((3, 4))), [4, 4, 4])
    assert jax.lax.fori_loop(0, 10, lambda i, c: c + i, 0) == 45
    assert jax.lax.while_loop(lambda c: c < 10, lambda c: c + 3, 0) == 12
    assert jax.lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(5.0))[0] == 10
    assert jax.lax.cond(True, lambda x: x + 1, lambda x: x - 1, 1) == 2


def random() -> None:
    """The numbers are equal to those on JAX's own CPU."""

    def draw() -> list[Any]:
        key = jax.random.key(7)
        bits = jax.random.bits(key, (5,))
        return [bits, jax.random.normal(key, (3,)), jax.random.permutation(key, 8)]

    with jax.default_device(jax.devices("cpu")[0]):
        expected = [np.asarray(drawn) for drawn in draw()]
    for drawn, wanted in zip(draw(), expected, strict=True):
        np.testing.assert_allclose(drawn, wanted, rtol=1e-5)


def donation() -> None:
    """A donated argument is deleted, if JAX donates on the platform at all; results are right."""
    donated, kept = jax.device_put(ONE), jax.device_put(ONE)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Some donated buffers were not usable")
        result = jax.jit(lambda x, y: x + y, donate_argnums=0)(donated, kept)
    np.testing.assert_array_equal(result, 2 * ONE)
    np.testing.assert_array_equal(kept, ONE)
    assert donated.is_deleted() == (NAME == "numpy"), "registered as one that donates"
    if donated.is_deleted():
        with pytest.raises(RuntimeError, match="deleted"):
            np.asarray(donated)
    else:
        np.testing.assert_array_equal(donated, ONE)


def errors() -> None:
    """A program that cannot be compiled or launched has its code and message at each wait."""
    with pytest.raises(RuntimeError, match="INVALID_ARGUMENT: No such compile option: 'nosuch'"):
        jax.jit(_double).lower(ONE).compile(compiler_options={"nosuch": 1, "xla_cpu_x": True})
    missing = jax.ffi.ffi_call("nosuch", jax.ShapeDtypeStruct((3,), np.float32))
    with pytest.raises(RuntimeError, match=r"^UNIMPLEMENTED: .*it has no custom call 'nosuch'"):
        jax.jit(missing)(ONE)
    too_large = jax.jit(lambda x: jnp.broadcast_to(x, (1 << 45,)) + 1)
    for wait in (jax.block_until_ready, np.asarray):
        with pytest.raises(RuntimeError, match=r"^RESOURCE_EXHAUSTED: .*Unable to allocate 128"):
            wait(too_large(ONE[0]))
    np.testing.assert_array_equal(double(ONE), 2 * ONE)


def linear_algebra() -> None:
    """By JAX's lowering rules for its CPU; only the singular matrix has NaNs."""
    rng = np.random.default_rng(0)
    square = rng.standard_normal((2, 3, 3)).astype(np.float32)
    symmetric = square + square.swapaxes(-1, -2)
    values, vectors = map(np.asarray, jnp.linalg.eigh(symmetric))
    np.testing.assert_allclose(symmetric @ vectors, vectors * values[:, None], atol=1e-5)
    values, vectors = map(np.asarray, jnp.linalg.eig(square))
    np.testing.assert_allclose(square @ vectors, vectors * values[:, None], atol=1e-5)
    for matrix in (square[0, :2], square[0, :2].T, square.astype(np.complex64) * 1j):
        u, s, v = map(np.asarray, jnp.linalg.svd(matrix, full_matrices=False))
        np.testing.assert_allclose(u * s[..., None, :] @ v, matrix, atol=1e-5)
        np.testing.assert_allclose(jnp.linalg.svd(matrix, compute_uv=False), s, atol=1e-5)
    large = rng.standard_normal((2, 70, 70)).astype(np.float32)
    for matrix in (square, large, large[:, :, :40], large[0, :40], large.astype(np.complex64) * 1j):
        packed, _, order = map(np.asarray, jax.lax.linalg.lu(matrix))
        size = min(matrix.shape[-2:])
        lower = np.tril(packed[..., :size], -1) + np.eye(packed.shape[-2], size, dtype=packed.dtype)
        exchanged = np.take_along_axis(matrix, order[..., None], -2)
        np.testing.assert_allclose(lower @ np.triu(packed[..., :size, :]), exchanged, atol=1e-4)
        q, r = map(np.asarray, jnp.linalg.qr(matrix, mode="reduced"))
        np.testing.assert_allclose(q @ r, matrix, atol=1e-4)
        ones = np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1]))
        np.testing.assert_allclose(np.conj(q.swapaxes(-1, -2)) @ q, ones, atol=1e-4)
    solved = np.asarray(jnp.linalg.solve(large, large[:, :, :1]))
    np.testing.assert_allclose(large @ solved, large[:, :, :1], atol=1e-3)
    assert not np.isfinite(jnp.linalg.solve(np.ones((2, 2)), np.ones(2))).any()
    square[1, 0, 0] = np.nan
    for find in (jnp.linalg.eigvals, jnp.linalg.eigvalsh, lambda x: jnp.linalg.svd(x)[1]):
        assert np.isnan(find(square)).all(1).tolist() == [False, True]
    gradient = jax.grad(lambda x: jnp.linalg.eigvalsh(x @ x.T).sum())(square[0])
    np.testing.assert_allclose(gradient, 2 * square[0], atol=1e-4)  # of the trace of x @ x.T


def _stages(platform: str) -> None:
    """A handler in C with a state, by ``jax.ffi``: made once, deleted with the executable."""
    with tempfile.TemporaryDirectory() as folder:
        handler = StagedLibrary(Path(folder))
    jax.ffi.register_ffi_type(handler.name, handler.registration(), platform=platform)
    jax.ffi.register_ffi_target(handler.name, handler.stages(), platform=platform)
    call = jax.ffi.ffi_call(handler.name, jax.ShapeDtypeStruct((3,), np.float32))
    compiled = jax.jit(lambda x: call(x, factor=np.float32(3))).lower(ONE).compile()
    for count in (1, 2):
        np.testing.assert_array_equal(compiled(ONE), 3 * ONE + 2)
        assert handler.counts == [1, count, count, count, 2 * count]


def pure_callbacks() -> None:
    """A callback with results, in a loop, twice in a program, on one device and on all, failing."""

    def twice(x: Any) -> Any:
        return jax.pure_callback(lambda x: 2 * x, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    np.testing.assert_array_equal(jax.jit(lambda x: twice(x) + twice(x + 1))(ONE), 4 * ONE + 2)
    looped = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda i, x: twice(x), x))
    np.testing.assert_array_equal(looped(ONE), 8 * ONE)
    rows = np.arange(3.0 * len(jax.devices()), dtype=np.float32).reshape(-1, 3)
    np.testing.assert_array_equal(jax.pmap(twice)(rows), 2 * rows)
    mesh = Mesh(np.array(jax.devices()), ("x",))
    parts = jax.device_put(rows, NamedSharding(mesh, P("x")))
    np.testing.assert_array_equal(jax.jit(twice)(parts), 2 * rows)

    square = jax.jit(lambda x: x @ x + 1)
    large = np.ones((300, 300), np.float32)

    @jax.jit
    def computing(x: Any) -> Any:
        return jax.pure_callback(lambda x: np.asarray(square(x)), x, x * 2)

    np.testing.assert_array_equal(computing(large), np.full((300, 300), 1201))
    launched = [computing(large * i) for i in range(20)]
    np.testing.assert_allclose([x[0, 0] for x in launched], [1200 * i**2 + 1 for i in range(20)])

    def refuse(x: Any) -> Any:
        raise ZeroDivisionError("not by me")

    with pytest.raises(RuntimeError, match="a callback of JAX raised ZeroDivisionError: not by me"):
        jax.jit(lambda x: jax.pure_callback(refuse, x, x))(ONE).block_until_ready()
    np.testing.assert_array_equal(jax.jit(twice)(ONE), 2 * ONE)


def host_functions() -> None:
    """``jax.ffi`` and JAX's callbacks: in order, in loops, on several devices, with errors."""
    handler = make_c_handler("scale", lambda x, y, named: np.multiply(x[0], named["by"], out=y[0]))
    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address_of(handler))
    platform = jax.default_backend()
    jax.ffi.register_ffi_target("scale", jax.ffi.pycapsule(function), platform=platform)
    call = jax.ffi.ffi_call("scale", jax.ShapeDtypeStruct((3,), np.float32))
    scaled = jax.jit(lambda x: call(x, by=np.float32(3)))(ONE)
    np.testing.assert_array_equal(scaled, 3 * ONE)
    with pytest.raises(Unimplemented, match="api_version 0"):
        jax.ffi.register_ffi_target("old", jax.ffi.pycapsule(function), platform, api_version=0)
    if shutil.which("cc"):
        _stages(platform)

    def double(x: Any) -> Any:
        like = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(lambda x: 2 * x, like, x)

    np.testing.assert_array_equal(jax.jit(double)(ONE), 2 * ONE)
    np.testing.assert_array_equal(jax.pmap(double)(ONE), 2 * ONE)
    halves = NamedSharding(Mesh(np.array(jax.devices()[:2]), "a"), P("a"))
    sharded = jax.device_put(np.arange(4.0, dtype=np.float32), halves)
    np.testing.assert_array_equal(jax.jit(double)(sharded), 2 * np.arange(4))
    halved: list[Any] = []

    def see(x: Any) -> Any:
        io_callback(lambda x: halved.append(x.tolist()), None, x, ordered=True)
        return x + 1

    by_halves = jax.jit(jax.shard_map(see, mesh=halves.mesh, in_specs=P("a"), out_specs=P("a")))
    np.testing.assert_array_equal(by_halves(sharded), np.arange(1, 5))
    jax.effects_barrier()
    assert halved == [[0, 1], [2, 3]]
    seen: list[int] = []

    @jax.jit
    def count(n: Any) -> Any:
        def step(i: Any, total: Any) -> Any:
            jax.debug.callback(lambda i: seen.append(-int(i)), i, ordered=True)
            io_callback(lambda i: seen.append(int(i)), None, i, ordered=True)
            jax.debug.print("{i}", i=i)
            return total + i

        return jax.lax.fori_loop(1, 3, step, n)

    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for n in range(2):
            assert count(n) == n + 3
        jax.effects_barrier()
    assert [abs(i) for i in seen] == [1, 1, 2, 2] * 2
    assert [i for i in seen if i > 0] == [1, 2] * 2
    assert sorted(printed.getvalue().split()) == ["1", "1", "2", "2"]

    def refuse(x: Any) -> Any:
        raise ZeroDivisionError("not by me")

    with pytest.raises(RuntimeError, match="INTERNAL: a callback of JAX raised Zero") as caught:
        jax.jit(lambda x: jax.pure_callback(refuse, x, x))(ONE).block_until_ready()
    assert "/src/plugrt" not in str(caught.value)  # none of plugrt's own frames
    np.testing.assert_array_equal(jax.jit(double)(ONE), 2 * ONE)


def tokens() -> None:
    """Tokens as arguments and results, made by the user and by JAX's ordered effects."""
    token = jax.lax.create_token()
    y, after = jax.jit(lambda x, t: (x + 1, jax.lax.after_all(t)))(ONE, token)
    np.testing.assert_array_equal(y, ONE + 1)
    assert type(after) is type(jax.jit(lambda x: jax.lax.create_token(x))(ONE)) is type(token)
    with pytest.raises(RuntimeError, match="Cannot convert a token-shape buffer"):
        _ = token._buf._value

    ordered = OrderedEffect()
    effects.ordered_effects.add_type(OrderedEffect)
    effects.lowerable_effects.add_type(OrderedEffect)
    effects.control_flow_allowed_effects.add_type(OrderedEffect)
    step = Primitive("step")
    step.def_effectful_abstract_eval(lambda x: (x, {ordered}))

    def lower(ctx: Any, x: Any) -> Any:
        made = mlir.hlo.after_all([ctx.tokens_in.get(ordered)])
        ctx.set_tokens_out(ctx.tokens_in.update_tokens(mlir.TokenSet({ordered: made})))
        return [x]

    mlir.register_lowering(step, lower)
    run = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda i, x: step.bind(x) + 1, step.bind(x)))
    for _ in range(2):
        np.testing.assert_array_equal(run(ONE), ONE + 3)
    far = jax.device_put(ONE, jax.devices()[1])
    np.testing.assert_array_equal(run(far), ONE + 3)
    jax.effects_barrier()


class OrderedEffect(effects.Effect):
    """The effect of a primitive that does nothing, in order."""


def no_results() -> None:
    """Programs without results, without arguments and without both, on one device and on all."""
    mesh = Mesh(np.array(jax.devices()), ("x",))
    parts = jax.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("x")))
    rows = np.ones((len(jax.devices()), 3), np.float32)
    mapped = jax.shard_map(lambda x: None, mesh=mesh, in_specs=P("x"), out_specs=None)
    for empty in (None, {}, ()):
        assert jax.jit(lambda x, e=empty: e)(ONE) == empty
        assert jax.jit(lambda x, e=empty: e)(parts) == empty
        assert jax.jit(lambda e=empty: e)() == empty
        assert jax.pmap(lambda x, e=empty: e)(rows) == empty
        compiled = jax.jit(lambda x, e=empty: e, keep_unused=True).lower(parts).compile()
        assert compiled(parts) == empty
        assert compiled.output_shardings == empty
        assert compiled.input_shardings[0][0].is_equivalent_to(parts.sharding, 1)
    assert jax.jit(mapped)(parts) is None
    sharded = jax.jit(lambda: jnp.arange(8.0), out_shardings=parts.sharding)()
    np.testing.assert_array_equal(sharded, np.arange(8.0))


def effects_without_results() -> None:
    """Callbacks of programs without results have run when `effects_barrier` returns."""
    seen: list[Any] = []
    mesh = Mesh(np.array(jax.devices()), ("x",))
    parts = jax.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("x")))

    def see(x: Any) -> None:
        io_callback(lambda x: seen.append(float(np.sum(x))), None, x)

    for run, argument, wanted in (
        (jax.jit(see), ONE, [6.0]),
        (jax.pmap(see), np.ones((2, 3), np.float32), [3.0, 3.0]),
        (jax.jit(jax.shard_map(see, mesh=mesh, in_specs=P("x"), out_specs=None)), parts, None),
    ):
        seen.clear()
        assert run(argument) is None
        jax.effects_barrier()
        assert sorted(seen) == (
            wanted or np.arange(8.0).reshape(len(mesh.devices), -1).sum(1).tolist()
        )
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for x in (ONE, parts):
            assert jax.jit(lambda x: jax.debug.print("{x}", x=x[0]))(x) is None
        jax.effects_barrier()
    assert sorted(printed.getvalue().split()) == ["0.0", "1.0"]


def several_devices() -> None:
    count = len(jax.devices())
    total = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(jnp.arange(float(count)))
    np.testing.assert_array_equal(total, np.full(count, count * (count - 1) / 2))
    mesh = Mesh(np.array(jax.devices()), ("x",))
    summed = jax.jit(
        jax.shard_map(lambda a: jax.lax.psum(a, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    )(jnp.arange(2.0 * count))
    np.testing.assert_array_equal(summed, np.arange(2.0 * count).reshape(count, 2).sum(0))
    host = np.arange(16, dtype=np.float32).reshape(4, 4)
    x = jax.device_put(host, NamedSharding(mesh, P("x")))
    product = jax.jit(lambda x: x @ x.T)(x)
    assert isinstance(product.sharding, NamedSharding)
    np.testing.assert_allclose(product, host @ host.T)
    turned = jax.jit(lambda x: x * 2, out_shardings=NamedSharding(mesh, P(None, "x")))(x)
    assert turned.addressable_shards[0].data.shape == (4, 1)
    np.testing.assert_array_equal(turned, 2 * host)


def narrow_types() -> None:
    """Numbers of 2 and 4 bits: XLA's CPU compiler is wrong about these, or ends the process."""
    devices = jax.devices()
    rows, whole = (
        NamedSharding(Mesh(np.array(devices), ("x",)), P(*axes)) for axes in (("x",), ())
    )
    for dtype in (ml_dtypes.int2, ml_dtypes.uint2, ml_dtypes.int4, ml_dtypes.uint4):
        info = ml_dtypes.iinfo(dtype)
        host = np.resize(np.arange(int(info.min), int(info.max) + 1), (8, 3)).astype(dtype)
        x = jax.device_put(host)
        joined, sorted_, total, power = jax.jit(
            lambda x: (jnp.concat([x, x]), jnp.sort(x, 0), jnp.max(x, 1), jnp.multiply(x, x))
        )(x)
        wide = host.astype("i4")
        np.testing.assert_array_equal(joined, np.concatenate([host, host]))
        np.testing.assert_array_equal(np.asarray(sorted_).astype("i4"), np.sort(wide, 0))
        np.testing.assert_array_equal(np.asarray(total).astype("i4"), wide.max(1))
        np.testing.assert_array_equal(power, (wide * wide).astype(dtype))
        divided = jax.device_put(host, rows)
        np.testing.assert_array_equal(jax.jit(lambda x: x, out_shardings=whole)(divided), host)
    floats = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn)
    found = jax.jit(lambda x: x.astype("int32"))(floats)
    np.testing.assert_array_equal(found, floats.astype("f4").astype("i4"))


def ahead_of_time() -> None:
    compiled = jax.jit(lambda x: x @ x).lower(jnp.ones((3, 3))).compile()
    assert dict(compiled.cost_analysis())["flops"] == 54
    assert compiled.memory_analysis().argument_size_in_bytes == 36
    assert "HloModule" in compiled.as_text()
    with pytest.raises(RuntimeError, match="INVALID_ARGUMENT: No such compile option: 'nosuch'"):
        jax.jit(_double).lower(jnp.ones(3)).compile(compiler_options={"nosuch": 1})


def compile_for_absent_devices() -> Any:
    """Compiles for 8 devices of the platform, described by JAX only."""
    mesh = Mesh(np.array(topologies.get_topology_desc("8", NAME).devices), ("x",))
    sharding = NamedSharding(mesh, P("x"))
    function = jax.jit(jnp.sin, in_shardings=sharding, out_shardings=sharding)
    return function.lower(jax.ShapeDtypeStruct((16,), np.float32)).compile()


def absent_devices() -> None:
    """JAX has no client under the platform's name: its compile-only client compiles."""
    compiled = compile_for_absent_devices()
    assert compiled.memory_analysis().argument_size_in_bytes == 2 * 4
    assert "HloModule" in compiled.as_text()


def absent_devices_beside_a_client() -> None:
    """The client of the same platform and version compiles, and waits with the GIL held."""
    assert len(jax.devices(NAME)) == 1
    if hasattr(compiler, "_get_cross_compile_backend"):  # JAX before 0.10 never uses the client
        with pytest.raises(RuntimeError, match="UNAVAILABLE: PJRT_Compile needs Python's lock"):
            compile_for_absent_devices()
    np.testing.assert_array_equal(double(ONE), 2 * ONE)


def memories() -> None:
    device = jax.devices()[0]
    assert [m.kind for m in device.addressable_memories()] == [
        "device", "pinned_host", "unpinned_host",
    ]  # fmt: skip
    sharding = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
    moved = jax.device_put(jax.device_put(ONE), sharding)
    assert moved.sharding.memory_kind == "pinned_host"
    np.testing.assert_array_equal(moved, ONE)


def caches() -> None:
    double(ONE)
    jax.clear_caches()
    np.testing.assert_array_equal(double(ONE), 2 * ONE)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        globals()[name]()
        print("ok", name, flush=True)
