"""Python functions that programs on a GPU call; the CUDA driver copies their arrays."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.errors import Internal, NotFound
from plugrt.interface import Device

F4 = np.dtype(np.float32)
_numbers = itertools.count()


@pytest.fixture(autouse=True)
def barrier(on_gpu: Device) -> Iterator[None]:
    """Runs the test on the GPU, and waits for all effects after it."""
    yield
    plugrt.effects_barrier()


def of(shape: tuple[int, ...], dtype: Any = F4) -> Any:
    return plugrt.ShapeDtypeStruct(shape, np.dtype(dtype))


def handled(gpu: Device, handler: Any, *results: Any) -> Any:
    """Registers a handler; returns a function that calls it, with results of these types."""
    name = f"plugrt_gpu_{next(_numbers)}"
    plugrt.ffi.register_ffi_target(name, handler, platform=gpu.client.platform)
    return plugrt.ffi.ffi_call(name, results[0] if len(results) == 1 else results)


def test_it_is_declared(on_gpu: Device) -> None:
    capabilities = on_gpu.client.capabilities
    assert capabilities.custom_calls
    assert capabilities.host_callbacks


class TestHandlers:
    """Handlers of `plugrt.ffi` that are Python functions."""

    @pytest.mark.parametrize(
        "dtype",
        [np.float32, np.float64, np.int8, np.bool_, np.complex64, ml_dtypes.bfloat16,
         ml_dtypes.int4, ml_dtypes.uint4],
    )  # fmt: skip
    @pytest.mark.parametrize("shape", [(), (7,), (33, 5), (2, 0)])
    def test_elements_go_there_and_back(
        self, on_gpu: Device, dtype: Any, shape: tuple[int, ...]
    ) -> None:
        def copy(arguments: Any, results: Any, attributes: Any) -> None:
            assert not arguments[0].flags.writeable
            results[0][...] = arguments[0]
            results[1][...] = attributes["factor"]

        given = (np.arange(int(np.prod(shape))) % 2).astype(dtype).reshape(shape)
        call = handled(on_gpu, copy, of(shape, dtype), of(()))
        same, factor = plugrt.jit(lambda x: call(x, factor=np.float32(2.5)))(given)
        found = np.asarray(same)
        assert (found.shape, found.dtype) == (shape, np.dtype(dtype))
        np.testing.assert_array_equal(found.astype(np.complex64), given.astype(np.complex64))
        assert float(factor) == 2.5

    def test_between_computations(self, on_gpu: Device) -> None:
        """The arguments are results of the program, which may transpose them."""

        def double(arguments: Any, results: Any, attributes: Any) -> None:
            results[0][...] = arguments[0] * 2

        call = handled(on_gpu, double, of((300, 200)))
        x = np.random.default_rng(1).standard_normal((200, 300), np.float32)
        f = plugrt.jit(lambda x: xp.sum(call(xp.permute_dims(xp.abs(x), (1, 0))), axis=0) + 1)
        np.testing.assert_allclose(f(x), np.abs(x).sum(axis=1) * 2 + 1, rtol=1e-5)

    def test_much_memory(self, on_gpu: Device) -> None:
        def negate(arguments: Any, results: Any, attributes: Any) -> None:
            np.negative(arguments[0], out=results[0])

        x = np.arange(1 << 24, dtype=np.float32)  # 64 MiB
        call = handled(on_gpu, negate, of(x.shape))
        np.testing.assert_array_equal(plugrt.jit(call)(x), -x)

    def test_exception(self, on_gpu: Device) -> None:
        def refuse(arguments: Any, results: Any, attributes: Any) -> None:
            raise NotFound("no such table")

        call = handled(on_gpu, refuse, of((2,)))
        with pytest.raises(NotFound, match="no such table"):
            np.asarray(plugrt.jit(call)(np.ones(2, F4)))
        assert np.asarray(plugrt.jit(lambda x: x + 1)(np.ones(2, F4))).tolist() == [2, 2]


class TestPureCallback:
    """Results of Python functions."""

    @pytest.mark.parametrize("shape", [(), (1,), (5, 3), (128, 16, 3), (0, 3)])
    @pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int32])
    def test_a_callback_with_one_array(self, shape: tuple[int, ...], dtype: Any) -> None:
        x = (np.arange(int(np.prod(shape))) % 7).astype(dtype).reshape(shape)
        add = lambda v: (v + np.ones((), v.dtype)).astype(v.dtype)  # noqa: E731
        f = plugrt.jit(lambda x: plugrt.pure_callback(add, of(shape, dtype), x) + x)
        np.testing.assert_array_equal(
            np.asarray(f(x)).astype(F4), (x.astype(F4) * 2 + 1).astype(F4)
        )

    def test_trees_and_several_arrays(self) -> None:
        types = {"a": of(()), "b": [of((2, 3)), of((0,), np.int32)]}

        def swap(a: Any, pair: Any) -> Any:
            return {"a": pair[1], "b": [pair[0] * 2, a]}

        f = plugrt.jit(lambda a, p: plugrt.pure_callback(swap, types, a, p))
        matrix = np.arange(6, dtype=F4).reshape(2, 3)
        found = f(np.zeros(0, np.int32), (matrix, np.float32(4)))
        assert float(found["a"]) == 4
        np.testing.assert_array_equal(found["b"][0], matrix * 2)
        assert np.asarray(found["b"][1]).shape == (0,)

    def test_without_arguments(self) -> None:
        f = plugrt.jit(lambda: plugrt.pure_callback(lambda: np.float32(3), of(())) * 2)
        assert float(f()) == 6

    def test_exception_text(self) -> None:
        def refuse(x: Any) -> Any:
            raise ValueError("no more")

        f = plugrt.jit(lambda x: plugrt.pure_callback(refuse, of((3,)), x))
        for _ in range(3):
            with pytest.raises(
                Internal, match=r"(?s)'refuse' of pure_callback.*ValueError: no more"
            ):
                np.asarray(f(np.ones(3, F4)))
        assert float(plugrt.jit(lambda x: xp.sum(x))(np.ones(3, F4))) == 3

    def test_in_a_loop(self) -> None:
        f = plugrt.jit(
            lambda n: lax.fori_loop(
                0, n, lambda i, x: plugrt.pure_callback(lambda v: v + 1, of(()), x), np.float32(0)
            )
        )
        assert float(f(np.int32(50))) == 50

    def test_a_warm_call_many_times(self) -> None:
        f = plugrt.jit(lambda x: plugrt.pure_callback(lambda v: v + 1, of((4,)), x))
        x = xp.zeros(4, dtype=xp.float32)
        for _ in range(200):
            x = f(x)
        assert np.asarray(x).tolist() == [200] * 4

    def test_a_function_that_computes_on_the_gpu(self) -> None:
        """The call is made on a thread, so that a deadlock fails the test, not the whole run."""
        inner = plugrt.jit(lambda v: xp.sum(v * v))

        def compute(x: Any) -> Any:
            return np.asarray(inner(x), F4)

        f = plugrt.jit(lambda x: plugrt.pure_callback(compute, of(()), x * 2) + 1)
        with pytest.raises(Internal, match="call or compile it once before"):
            np.asarray(f(np.ones(3, F4)))
        inner(np.ones(3, F4)).block_until_ready()
        found: list[Any] = []
        work = lambda: found.extend(float(f(np.ones(3, F4))) for _ in range(3))  # noqa: E731
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive(), "it has not ended in 20 s"
        assert found == [12 + 1] * 3


class TestEffects:
    """Functions with side effects keep their order."""

    def test_ordered_calls_in_a_loop(self) -> None:
        lines: list[int] = []

        def step(i: Any, total: Any) -> Any:
            plugrt.io_callback(lambda i: lines.append(int(i)), None, i, ordered=True)
            return total + i

        f = plugrt.jit(lambda n: lax.fori_loop(0, 10, step, n))
        results = [f(np.int32(0)), f(np.int32(100))]
        plugrt.effects_barrier()
        assert [int(x) for x in results] == [45, 145]
        assert lines == [*range(10), *range(10)]

    def test_results_of_io_callback(self) -> None:
        count = itertools.count()

        def draw() -> Any:
            return np.int32(next(count))

        f = plugrt.jit(lambda x: x + plugrt.io_callback(draw, of((), np.int32), ordered=True))
        assert [int(f(np.int32(10))) for _ in range(5)] == [10, 11, 12, 13, 14]

    def test_print(self, capsys: pytest.CaptureFixture[str]) -> None:
        f = plugrt.jit(lambda x: plugrt.debug.print("x is {} and {}", x, x * 2))
        f(np.int32(5))
        plugrt.effects_barrier()
        assert capsys.readouterr().out == "x is 5 and 10\n"

    def test_a_failure_is_raised_once(self) -> None:
        def refuse(x: Any) -> None:
            raise ValueError("not this one")

        def run() -> None:
            f(np.int32(1))
            plugrt.effects_barrier()

        f = plugrt.jit(lambda x: plugrt.debug.callback(refuse, x))
        with pytest.raises(Internal, match="not this one"):  # by the launch, or at the barrier
            run()
        plugrt.effects_barrier()


def test_eight_threads() -> None:
    f = plugrt.jit(lambda x: plugrt.pure_callback(np.sin, of((64, 64)), x) + 1)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        x = np.full((64, 64), number, F4)
        try:
            for _ in range(20):
                np.testing.assert_array_equal(f(x), np.sin(x) + 1)
        except BaseException as error:  # noqa: BLE001  # told by the test's thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert not failures
