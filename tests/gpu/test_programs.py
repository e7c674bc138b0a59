"""Programs on a GPU beside NumPy and, where it is installed, JAX on the same GPU."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax, profiler, random
from plugrt.interface import Device
from plugrt.wire.protobuf import messages
from support.requirements import needs_jax

RNG = np.random.default_rng(0)
A = RNG.standard_normal((64, 48)).astype(np.float32)
B = RNG.standard_normal((48, 32)).astype(np.float32)
INDICES = RNG.integers(0, 64, 20).astype(np.int32)

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elementwise": (lambda xp, a: xp.tanh(a) * xp.exp(-a * a) + xp.sqrt(xp.abs(a)), (A,)),
    "sum": (lambda xp, a: xp.sum(a, axis=0), (A,)),
    "max": (lambda xp, a: xp.max(a, axis=1), (A,)),
    "cumulative sum": (lambda xp, a: xp.cumulative_sum(a, axis=1), (A,)),
    "sort": (lambda xp, a: xp.sort(a, axis=1), (A,)),
    "argsort": (lambda xp, a: xp.argsort(a, axis=0), (A,)),
    "take": (lambda xp, a, i: xp.take(a, i, axis=0), (A, INDICES)),
    "where": (lambda xp, a: xp.where(a > 0, a, -a), (A,)),
    "matmul": (lambda xp, a, b: a @ b, (A, B)),
    "fft": (lambda xp, a: xp.fft.fft(a.astype(xp.complex64)), (A,)),
}


def test_jitted_and_eager_functions_agree(on_gpu: Device) -> None:
    for name, (of, arguments) in PROGRAMS.items():
        function = partial(of, xp)
        given = [plugrt.device_put(a) for a in arguments]
        eager, jitted = function(*given), plugrt.jit(function)(*given)
        assert (eager.dtype, eager.shape) == (jitted.dtype, jitted.shape), name
        np.testing.assert_allclose(np.asarray(eager), np.asarray(jitted), 1e-5, 1e-5, err_msg=name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_beside_numpy(on_gpu: Device, name: str) -> None:
    of, arguments = PROGRAMS[name]
    found = plugrt.jit(partial(of, xp))(*arguments)
    expected = of(np, *arguments)
    # A product of matrices uses TF32 by default, with 10 bits of mantissa.
    tolerance = 2e-2 if name == "matmul" else 1e-4
    np.testing.assert_allclose(np.asarray(found), expected, tolerance, tolerance)


@needs_jax
@pytest.mark.parametrize("name", PROGRAMS)
def test_beside_jax(on_gpu: Device, name: str) -> None:
    import jax
    import jax.numpy as jnp

    of, arguments = PROGRAMS[name]
    found = plugrt.jit(partial(of, xp))(*arguments)
    put = jax.device_put(arguments, jax.devices("cuda")[0])
    expected = jax.jit(partial(of, jnp))(*put)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), 1e-5, 1e-5)


def test_a_precise_product(on_gpu: Device) -> None:
    product = plugrt.jit(lambda a, b: lax.dot(a, b, precision="highest"))(A, B)
    np.testing.assert_allclose(np.asarray(product), A.astype(np.float64) @ B, 1e-4, 1e-4)


def test_a_convolution(on_gpu: Device) -> None:
    image = RNG.standard_normal((1, 1, 16, 16)).astype(np.float32)
    kernel = RNG.standard_normal((1, 1, 3, 3)).astype(np.float32)
    convolve = plugrt.jit(
        lambda a, b: lax.conv_general_dilated(a, b, (1, 1), "VALID", precision="highest")
    )
    windows = np.lib.stride_tricks.sliding_window_view(image[0, 0], (3, 3))
    expected = np.einsum("ijkl,kl->ij", windows, kernel[0, 0])
    np.testing.assert_allclose(np.asarray(convolve(image, kernel))[0, 0], expected, 1e-4, 1e-4)


def test_random_numbers_are_those_of_the_cpu(gpu: Device) -> None:
    def draw(device: Device) -> Any:
        with plugrt.default_device(device):
            return np.asarray(random.bits(random.key(7), (1000,)))

    np.testing.assert_array_equal(draw(gpu), draw(plugrt.devices("cpu")[0]))


def test_loops_and_branches(on_gpu: Device) -> None:
    @plugrt.jit
    def collatz(n: Any) -> Any:
        def step(s: Any) -> Any:
            following = lax.cond(s[0] % 2 == 0, lambda v: v // 2, lambda v: 3 * v + 1, s[0])
            return following, s[1] + 1

        return lax.while_loop(lambda s: s[0] != 1, step, (n, 0))[1]

    assert int(collatz(27)) == 111
    total, squares = lax.scan(lambda c, x: (c + x, x * x), 0, xp.arange(10))
    assert int(total) == 45
    assert squares.tolist() == [i * i for i in range(10)]


def test_gather_and_scatter(on_gpu: Device) -> None:
    x = xp.zeros(10, dtype=xp.float32)
    y = x.at[np.array([1, 1, 3])].add(np.float32(2))
    assert y.tolist() == [0, 4, 0, 2, 0, 0, 0, 0, 0, 0]


def test_linear_algebra(on_gpu: Device) -> None:
    square = RNG.standard_normal((16, 16)).astype(np.float32)
    spd = square @ square.T + 16 * np.eye(16, dtype=np.float32)
    with plugrt.config.override(default_matmul_precision="highest"):
        factor = np.asarray(xp.linalg.cholesky(xp.asarray(spd)))
        np.testing.assert_allclose(factor @ factor.T, spd, 1e-2, 1e-2)
        q, r = xp.linalg.qr(xp.asarray(square))
        np.testing.assert_allclose(np.asarray(q) @ np.asarray(r), square, 1e-2, 1e-2)
        solved = np.asarray(xp.linalg.solve(xp.asarray(spd), xp.asarray(square)))
        np.testing.assert_allclose(spd @ solved, square, 1e-2, 1e-2)
        values = np.asarray(xp.linalg.eigvalsh(xp.asarray(spd)))
        np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(spd), 1e-2, 1e-2)


def test_donation_uses_the_memory_again(on_gpu: Device) -> None:
    step = plugrt.jit(lambda a: a + 1, donate_argnums=0)
    x = plugrt.device_put(np.zeros(1 << 16, np.float32))
    address = x.unsafe_buffer_pointer()
    y = step(x)
    assert x.is_deleted()
    assert y.unsafe_buffer_pointer() == address
    with pytest.raises(plugrt.errors.PlugrtError, match=r"donated|deleted"):
        step(x)
    for _ in range(100):
        y = step(y)
    assert float(y[0]) == 101


def test_a_launch_returns_before_it_has_ended(on_gpu: Device) -> None:
    x = plugrt.device_put(np.eye(8192, dtype=np.float32))

    @plugrt.jit
    def multiply(x: Any) -> Any:
        # Unrolled: XLA's host code runs loops, so that the launch would return at their end.
        y = x
        for _ in range(30):
            y = y @ x
        return y

    multiply(x).block_until_ready()
    start = time.perf_counter()
    y = multiply(x)
    launched = time.perf_counter() - start
    assert not y.is_ready()
    x.delete()  # while it runs
    y.block_until_ready()
    assert launched < (time.perf_counter() - start) / 4
    np.testing.assert_array_equal(np.asarray(y[:2, :2]), np.eye(2))


def test_over_one_device(on_gpu: Device) -> None:
    mapped = plugrt.pmap(lambda a: lax.psum(a, "i"), axis_name="i", devices=[on_gpu])
    np.testing.assert_array_equal(np.asarray(mapped(A[None])), A[None])


def test_threads(on_gpu: Device) -> None:
    f = plugrt.jit(lambda a: (a * 2).sum())
    wrong: list[Any] = []

    def work(n: int) -> None:
        with plugrt.default_device(on_gpu):
            for i in range(200):
                found = float(f(np.full(16, n + i, np.float32)))
                if found != 32 * (n + i):
                    wrong.append((n, i, found))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_nans_are_found(on_gpu: Device) -> None:
    with plugrt.debug_nans(True), pytest.raises(FloatingPointError):
        xp.log(xp.asarray(-1.0)).block_until_ready()


def test_a_trace_has_the_events_of_the_gpu(on_gpu: Device, tmp_path: Path) -> None:
    f = plugrt.jit(lambda a: xp.tanh(a) * 3)
    f(A).block_until_ready()
    with profiler.trace(tmp_path):
        f(A).block_until_ready()
    [file] = tmp_path.rglob("*.xplane.pb")
    planes = messages(file.read_bytes(), 1)
    names = [bytes(name) for plane in planes for name in messages(plane, 2)]
    assert b"/device:GPU:0" in names
    [device] = [plane for plane, name in zip(planes, names, strict=True) if b"GPU" in name]
    assert sum(len(messages(line, 4)) for line in messages(device, 3)) >= 1
