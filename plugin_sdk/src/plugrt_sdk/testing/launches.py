"""Checks of programs: their results, their devices, and the arguments they refuse."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from plugrt.errors import InvalidArgument, PjrtError, PlugrtError, Unimplemented
from plugrt.interface import CompileOptions, Program
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.raising import raises
from plugrt_sdk.testing.subject import ONE, Subject


def a_program_runs(subject: Subject) -> None:
    """A program of two arguments computes, and its result is the next launch's argument."""
    program = subject.compile(programs.ADD)
    executable = program.executable
    assert (executable.num_replicas, executable.num_partitions) == (1, 1)
    assert [str(kind) for kind in executable.output_types] == ["float32[3]"]
    x, y = subject.put(ONE), subject.put(10 * ONE)
    [[total]] = program.execute([(x,), (y,)])
    [[twice]] = program.execute([(total,), (total,)])
    assert (twice.shape, twice.dtype) == (ONE.shape, ONE.dtype)
    assert twice.device is program.addressable_devices[0] is subject.client.devices()[0]
    np.testing.assert_array_equal(twice.to_host(), 22 * ONE)
    np.testing.assert_array_equal(x.to_host(), ONE)


def a_program_in_text_runs(subject: Subject) -> None:
    """StableHLO in text is compiled as a portable artifact is."""
    program = subject.compile_text(programs.ADD)
    [[total]] = program.execute([(subject.put(ONE),), (subject.put(ONE),)])
    np.testing.assert_array_equal(total.to_host(), 2 * ONE)


def _require_results(subject: Subject, text: str, arguments: Sequence[Any], *wanted: Any) -> None:
    """Runs a program whose operations the backend may lack: then compiling it is refused."""
    try:
        subject.compile(text)
    except Unimplemented:
        return
    results = subject.run(text, *arguments)
    assert len(results) == len(wanted)
    for found, expected in zip(results, wanted, strict=True):
        assert (found.shape, found.dtype) == (np.shape(expected), np.asarray(expected).dtype)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def operations(subject: Subject) -> None:
    """An operation gives the right numbers, or a program with it is refused when it is compiled."""
    a, b = np.array([1, 2], np.int32), np.zeros((0, 4), np.float32)
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    check = _require_results
    check(subject, programs.IDENTITY, [ONE], ONE)
    check(subject, programs.CONSTANT, [], np.array([7, -1], np.int32))
    check(subject, programs.SEVERAL_RESULTS, [a, b, np.float32(5)], np.float32(5), a + a, a, b)
    check(subject, programs.MATMUL, [rows, rows.T.copy()], rows @ rows.T)
    check(subject, programs.COUNT_UP, [np.int32(3)], np.int32(10))
    check(subject, programs.SUM, [rows], rows.sum(0))


def each_device_computes(subject: Subject) -> None:
    """A program runs on the device for which it is compiled, and its result is there."""
    for i, device in enumerate(subject.client.devices()):
        program = subject.compile_for(programs.ADD, i)
        assert list(program.addressable_devices) == [device]
        x = subject.put(ONE, i)
        [[total]] = program.execute([(x,), (x,)])
        assert total.device is device
        np.testing.assert_array_equal(total.to_host(), 2 * ONE)


def wrong_arguments(subject: Subject) -> None:
    """Arguments of a wrong number, shape or dtype are refused, and the program works on."""
    program = subject.compile(programs.ADD)
    x = subject.put(ONE)
    wrong: list[Any] = [[(x,)], [(x,), (x,), (x,)], [(subject.put(ONE[:2]),), (x,)],
                        [(subject.put(ONE.astype(np.int32)),), (x,)], [(x, x), (x,)]]  # fmt: skip
    for arguments in wrong:
        with raises(PlugrtError):
            program.execute(arguments)
    np.testing.assert_array_equal(program.execute([(x,), (x,)])[0][0].to_host(), 2 * ONE)


def wrong_programs(subject: Subject) -> None:
    """Invalid programs, and assignments of more devices than there are, are refused."""
    for code in (b"this is no program", b"ML\xefR\rStableHLO_v99.0.0\0\0"):
        with raises(PlugrtError):
            subject.client.compile(Program(code), CompileOptions())
    with raises(PjrtError):
        subject.compile(programs.ADD, num_replicas=len(subject.client.devices()) + 1)


def threads(subject: Subject) -> None:
    """Four threads put, launch and get at once."""
    program = subject.compile(programs.ADD)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(25):
                x = subject.put(ONE * i)
                [[total]] = program.execute([(x,), (subject.put(ONE * number),)])
                np.testing.assert_array_equal(total.to_host(), ONE * (i + number))
        except BaseException as error:  # noqa: BLE001  # raised below, on the test's thread
            failures.append(error)

    _run_threads([partial(work, number) for number in range(4)])
    if failures:
        raise failures[0]


def _run_threads(targets: Sequence[Callable[[], None]]) -> None:
    started = [threading.Thread(target=target) for target in targets]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def events(subject: Subject) -> None:
    """An event becomes ready, calls back once, and says so to every waiting thread."""
    program = subject.compile(programs.ADD)
    x = subject.put(ONE)
    [[total]] = program.execute([(x,), (x,)])
    told: list[object] = []
    done = threading.Event()
    event = total.ready_event()

    def tell(error: object) -> None:
        told.append(error)
        done.set()

    event.on_ready(tell)
    _run_threads([event.wait, total.block_until_ready, total.ready_event().wait])
    assert event.is_ready()
    assert done.wait(60)
    assert told == [None]
    if not subject.declared.asynchronous_dispatch:
        assert program.execute([(x,), (x,)])[0][0].ready_event().is_ready()


def replicas(subject: Subject) -> None:
    """Two replicas run where their assignment says, each on its own data."""

    def step() -> None:
        program = subject.compile_for(programs.ADD, 1, 0)
        far, near = subject.client.devices()[1], subject.client.devices()[0]
        assert list(program.addressable_devices) == [far, near]
        x = (subject.put(ONE, 1), subject.put(10 * ONE, 0))
        [results] = program.execute([x, x])
        assert [buffer.device for buffer in results] == [far, near]
        found = [buffer.to_host() for buffer in results]
        np.testing.assert_array_equal(found, [2 * ONE, 20 * ONE])

    _on_two_devices(subject, "multiple_devices", step)


def collectives(subject: Subject) -> None:
    """An all-reduce over two replicas gives both replicas the sum."""

    def step() -> None:
        program = subject.compile_for(programs.ALL_REDUCE, 0, 1)
        [results] = program.execute([(subject.put(ONE, 0), subject.put(10 * ONE, 1))])
        np.testing.assert_array_equal([buffer.to_host() for buffer in results], [11 * ONE] * 2)

    _on_two_devices(subject, "collectives", step)


def partitions(subject: Subject) -> None:
    """A program for a whole array runs on two devices that have a half each."""

    def step() -> None:
        options = {"use_spmd_partitioning": True, "use_shardy_partitioner": True}
        program = subject.compile_text(programs.PARTITIONED_ADD, num_partitions=2, **options)
        [results] = program.execute([(subject.put(ONE, 0), subject.put(10 * ONE, 1))])
        assert [str(kind) for kind in program.executable.output_types] == ["float32[3]"]
        found = [buffer.to_host() for buffer in results]
        np.testing.assert_array_equal(found, [2 * ONE, 20 * ONE])

    _on_two_devices(subject, "partitions", step)


def _on_two_devices(subject: Subject, capability: str, step: Callable[[], None]) -> None:
    """Makes a step for two devices, which a client of one device must refuse."""
    if len(subject.client.devices()) == 1:
        with raises(PjrtError):
            subject.compile(programs.ADD, num_replicas=2)
    else:
        subject.check_declared(capability, step, Unimplemented, InvalidArgument)
