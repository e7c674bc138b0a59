"""Host values of calls in the compiled core, in memory that a backend lends to launches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.native.native_core import core
from support.native_core import python_calls, runs_in_c

pytestmark = runs_in_c
H = np.arange(4, dtype=np.float32)


def slow(seen: list[str]) -> int:
    """Returns how many program launches, of the recorded function calls, were left to Python."""
    return seen.count("run")


@pytest.mark.parametrize(
    "numbers",
    [
        [0.5 * i for i in range(20)],
        [2.5, float("inf"), float("-inf"), -0.0, 0.0, 1e-30, 3.4e38],
        [*range(10_000, 10_020)],
        [-(2**31), 2**31 - 1],
        [True, False, True, True],
        [complex(i, -i) for i in range(5)],
    ],
)
def test_new_numbers_are_put_without_python(numbers: list[Any]) -> None:
    add = plugrt.jit(lambda a, b: a + b)
    x = plugrt.device_put(H.astype(np.int32) if type(numbers[0]) is int else H)
    add(x, numbers[0])  # Python makes the first launch
    with python_calls() as seen:
        found = [(n, add(x, n)) for n in [*numbers, *numbers, numbers[0], numbers[0]]]
    assert slow(seen) == 0
    for number, result in found:
        with np.errstate(over="ignore"):
            expected = np.asarray(x) + np.asarray(number).astype(result.dtype)
        np.testing.assert_array_equal(np.asarray(result), expected)


def test_numbers_that_overflow_are_converted_in_python() -> None:
    add = plugrt.jit(lambda a, b: a + b)
    x = plugrt.device_put(H)
    add(x, 2.0)
    with pytest.warns(RuntimeWarning, match="overflow encountered in cast"), python_calls() as seen:
        assert np.isinf(np.asarray(add(x, 1e39))).all()
    assert slow(seen) == 1
    with python_calls() as seen:
        found = add(x, 1.5)
    assert slow(seen) == 0
    np.testing.assert_array_equal(np.asarray(found), H + np.float32(1.5))


@pytest.mark.parametrize("source", [H, np.arange(8, dtype=np.float32)[::2], 2.5, 3])
def test_an_array_is_donated_beside_host_values_without_python(source: Any) -> None:
    step = plugrt.jit(lambda a, b: a + b, donate_argnums=0)
    state, expected = plugrt.device_put(H), H
    for i in range(20):
        other = source * i if isinstance(source, np.ndarray) else source + i
        with python_calls() as seen:
            last, state = state, step(state, other)
        expected = expected + np.asarray(other, np.float32)
        assert last.is_deleted()
        assert i == 0 or slow(seen) == 0
    np.testing.assert_array_equal(np.asarray(state), expected)


def test_a_refused_donation_leaves_array_and_memory_as_they_were() -> None:
    step = plugrt.jit(lambda a, b, c: (a + b, c), donate_argnums=0)
    state, gone = plugrt.device_put(H), plugrt.device_put(H)
    step(plugrt.device_put(H), H, gone)
    gone.delete()
    for i in range(12):
        with pytest.raises(plugrt.errors.DeletedBuffer):
            step(state, H + i, gone)
        assert not state.is_deleted()
    total, _ = step(state, H, plugrt.device_put(H))
    np.testing.assert_array_equal(np.asarray(total), 2 * H)
    assert state.is_deleted()


@pytest.mark.parametrize("donated", [(), (0,)])
def test_memory_of_a_launch_that_runs_is_not_written(donated: tuple[int, ...]) -> None:
    run = plugrt.jit(
        lambda x, n, y: plugrt.lax.fori_loop(0, n, lambda i, z: z @ x / 2.0, x) + y,
        donate_argnums=donated,
    )
    host = np.zeros((100, 100), np.float32)
    np.fill_diagonal(host, 2.0)
    results = [run(plugrt.device_put(host), 200, float(i)) for i in range(40)]
    for i, result in enumerate(results):
        np.testing.assert_array_equal(np.asarray(result), host + np.float32(i))


class _Lending:
    """A program that returns its argument's value at launch; arguments are in lent memory."""

    def __init__(self, **changed: Any) -> None:
        self.ready = True
        self.made: list[bytearray] = []
        x = plugrt.device_put(np.float32(0))
        launcher = core.FunctionLauncher(
            lambda given: [bytes(given[0])], 1, None, (), None, (), None
        )
        form = {"dtype": np.dtype("f4"), "shape": (), "kind": "f"}
        given = {"make": self.make, "is_ready": lambda _: self.ready, **form, **changed}
        self.runner = core.Runner(
            launcher, 1, (0,), (core.ScratchPut(**given),), (), (), "it",
            core.Outputs((x._aval,), (-1,), (), None, None), lambda _: "slow", self._explain,
        )  # fmt: skip

    def make(self) -> tuple[Any, Any] | None:
        self.made.append(bytearray(4))
        return self.made[-1], self.made[-1]

    def _explain(self, values: Any, error: Exception) -> Any:
        raise error

    def call(self, value: Any) -> Any:
        made = self.runner((value,))
        return made if made == "slow" else np.frombuffer(made._shards, "f4")[0]


def test_memory_is_written_again_once_the_results_are_there() -> None:
    program = _Lending()
    assert [program.call(float(i)) for i in range(20)] == [*range(20)]
    assert len(program.made) == 1
    literal = 7.5
    assert [program.call(literal) for _ in range(20)] == [7.5] * 20
    assert [program.call(float(i)) for i in range(20)] == [*range(20)]
    assert program.call(literal) == 7.5
    assert len(program.made) == 2


def test_pauses_between_tries_grow_while_results_are_late() -> None:
    program = _Lending()
    program.ready = False
    found = [program.call(float(i)) for i in range(2000)]
    tried = [i for i, value in enumerate(found) if value != "slow"]
    assert all(found[i] == i for i in tried)
    assert tried[:8] == [*range(8)]
    assert len(tried) <= 8 + 6
    assert len(program.made) == len(tried)
    program.ready = True
    found = [program.call(float(i)) for i in range(5000)]
    assert found[-100:] == [*range(4900, 5000)]


def test_values_are_put_while_results_are_late() -> None:
    program = _Lending(put=np.float32)
    program.ready = False
    assert [program.call(float(i)) for i in range(2000)] == [*range(2000)]
    assert len(program.made) <= 8 + 6
    program.ready = True
    assert [program.call(float(i)) for i in range(5000)] == [*range(5000)]
    count = len(program.made)
    assert [program.call(float(i)) for i in range(100)] == [*range(100)]
    assert len(program.made) == count


def test_values_are_put_that_nothing_is_lent_to() -> None:
    program = _Lending(make=None, is_ready=None, put=np.float32)
    assert [program.call(float(i)) for i in range(20)] == [*range(20)]
    assert _Lending(make=None, is_ready=None).call(2.0) == "slow"
    assert _Lending(make=lambda: None, put=np.float32).call(2.0) == 2.0


def test_errors_of_a_put_are_left_to_python_but_for_interrupts() -> None:
    raised: BaseException = ValueError("no more memory")

    def fail(value: Any) -> Any:
        raise raised

    program = _Lending(make=None, is_ready=None, put=fail)
    assert program.call(2.0) == "slow"
    raised = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        program.call(2.0)


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@pytest.mark.parametrize("count", [2048, 1 << 15, 1 << 18])
@pytest.mark.parametrize("donated", [(), (0,), (0, 1)])
def test_larger_arrays_of_the_host_are_put_without_python(
    count: int, donated: tuple[int, ...]
) -> None:
    """The caller may write to them as soon as the call returns."""
    step = plugrt.jit(lambda given, n: given["x"] * 2 + given["y"] * n, donate_argnums=donated)
    host, other = np.zeros((2, count), np.float32)
    found = []
    for i in range(30):
        host[:] = i
        other[:] = 1
        given = {"x": host, "y": plugrt.device_put(other)}
        with python_calls() as seen:
            found.append(step(given, float(i)))
        host[:] = other[:] = -1
        assert i == 0 or slow(seen) == 0
    for i, result in enumerate(found):
        np.testing.assert_array_equal(np.asarray(result), np.full(count, 3 * i, np.float32))


def test_results_that_are_kept_tell_when_memory_may_be_written_again() -> None:
    program = _Lending(put=np.float32, late=4)
    program.ready = False
    assert [program.call(float(i)) for i in range(100)] == [*range(100)]
    assert len(program.made) == 4
    program.ready = True
    for _ in range(3):
        assert [program.call(float(i)) for i in range(100)] == [*range(100)]
    assert len(program.made) == 4
    program.ready = False
    assert [program.call(float(i)) for i in range(100)] == [*range(100)]
    assert len(program.made) == 4


@pytest.mark.parametrize("late", [1, 4, 30])
def test_late_launches_have_as_much_memory_as_stated(late: int) -> None:
    program = _Lending(put=np.float32, late=late)
    program.ready = False
    assert [program.call(float(i)) for i in range(100)] == [*range(100)]
    assert len(program.made) == max(late, 4)
    assert [bytes(made) for made in program.made] == [
        bytes(np.float32(i)) for i in range(max(late, 4))
    ]
    program.ready = True
    assert [program.call(float(i)) for i in range(100)] == [*range(100)]
    assert len(program.made) == max(late, 4)


def test_memory_whose_launch_ended_first_is_written_first() -> None:
    ended: list[Any] = []
    asked: list[Any] = []

    def is_ready(result: Any) -> bool:
        asked.append(result)
        return any(result is one for one in ended)

    program = _Lending(put=np.float32, late=4, is_ready=is_ready)
    program.call(0.0)
    first = asked[0]
    for i in range(1, 20):  # each call checks the oldest kept result, then its own
        program.call(float(i))
        assert asked[-2] is first
    assert len(program.made) == 4
    ended.append(first)
    kept = bytes(program.made[0])
    assert [bytes(made) for made in program.made[1:]] == [bytes(np.float32(i)) for i in (1, 2, 3)]
    program.call(50.0)
    assert bytes(program.made[0]) == bytes(np.float32(50)) != kept
    assert [bytes(made) for made in program.made[1:]] == [bytes(np.float32(i)) for i in (1, 2, 3)]


def test_memory_is_left_to_a_launch_whose_results_are_gone() -> None:
    deleted: list[Any] = []

    def is_ready(result: Any) -> bool:
        if result in deleted:
            raise RuntimeError("deleted")
        return False

    program = _Lending(put=np.float32, late=4, is_ready=is_ready)
    program.call(0.0)
    deleted.append(bytes(np.float32(0)))
    assert [program.call(float(i)) for i in range(1, 5)] == [1, 2, 3, 4]
    assert bytes(program.made[0]) == bytes(np.float32(0))
    assert len(program.made) == 5


def test_an_interruption_while_results_are_asked_for_takes_nothing() -> None:
    interrupted = False

    def is_ready(result: Any) -> bool:
        if interrupted:
            raise KeyboardInterrupt
        return False

    program = _Lending(put=np.float32, late=4, is_ready=is_ready)
    program.call(0.0)
    interrupted = True
    for _ in range(10):
        with pytest.raises(KeyboardInterrupt):
            program.call(1.0)
    interrupted = False
    assert len(program.made) == 1
    assert [program.call(float(i)) for i in range(10)] == [*range(10)]
    assert bytes(program.made[0]) == bytes(4)


@pytest.mark.parametrize("count", [1 << 10, 1 << 14, 1 << 16])
def test_launches_that_end_late_read_what_they_were_given(count: int) -> None:
    """Four and more launches at once; their arguments are overwritten, some results deleted."""

    def add(a: Any, b: Any, c: Any) -> Any:
        return plugrt.lax.fori_loop(0, 20, lambda i, z: z + a - a, a + b) + c

    step = plugrt.jit(add)
    host, other = np.zeros((2, count), np.float32)
    found: list[tuple[int, Any]] = []
    for i in range(200):
        host[:], other[:] = i, 2 * i
        result = step(host, other, np.float32(1))
        host[:] = other[:] = -1
        if i % 7 == 0:
            result.block_until_ready()
        if i % 3 == 0:
            found.append((i, result))
        if i % 11 == 0:
            result.delete()
    for i, result in found:
        if not result.is_deleted():
            np.testing.assert_array_equal(np.asarray(result), np.full(count, 3 * i + 1, np.float32))


def test_wrong_scratch_memory_is_refused() -> None:
    def fail() -> Any:
        raise KeyError("none left")

    for make, error, message in (
        (
            lambda: (1, bytearray(8)),
            ValueError,
            "8 bytes of scratch memory were given for an argument of 4",
        ),
        (lambda: (1, bytes(4)), BufferError, "not writable"),
        (fail, KeyError, "none left"),
        (lambda: (1,), TypeError, "takes exactly 2"),
        (lambda: 3, TypeError, "no pair"),
    ):
        program = _Lending(make=make)
        with pytest.raises(error, match=message):
            program.call(2.0)
    assert _Lending(make=lambda: None).call(2.0) == "slow"
    assert _Lending().call("text") == "slow"
    assert _Lending().call(3) == "slow"
    with pytest.raises(ValueError, match="has no scratch memory"):
        _Lending(dtype=np.dtype("f2"))
    with pytest.raises(ValueError, match="has no scratch memory"):
        _Lending(dtype=np.dtype("O"), kind=None)
    never = core.ScratchPut.__new__(core.ScratchPut)
    launcher = core.FunctionLauncher(list, 0, None, (), None, (), None)
    outputs = core.Outputs((), (), (), None, core.Tree(0, (), None))
    with pytest.raises(TypeError, match="Put, ScratchPut or Copy"):
        core.Runner(launcher, 1, (0,), (never,), (), (), "it", outputs, list, list)


def test_a_result_that_cannot_be_asked_is_an_error_of_the_launch() -> None:
    def ask(result: Any) -> bool:
        raise KeyError("lost")

    program = _Lending(is_ready=ask)
    for i in range(3):
        with pytest.raises(KeyError, match="lost"):
            program.call(float(i))
    assert len(program.made) == 3
