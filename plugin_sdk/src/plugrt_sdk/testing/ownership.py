"""Checks of deleted and donated arrays, deleted programs and closed clients."""

from __future__ import annotations

import gc

import numpy as np

from plugrt.errors import DeletedBuffer, PlugrtError
from plugrt.interface import ExecuteOptions
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.raising import raises
from plugrt_sdk.testing.subject import ONE, Subject


def deleted_arrays(subject: Subject) -> None:
    """A deleted array says so, is deleted twice without harm, and can no longer be used."""
    program = subject.compile(programs.ADD)
    x, y = subject.put(ONE), subject.put(ONE)
    assert not x.is_deleted()
    x.delete()
    x.delete()
    assert x.is_deleted()
    with raises(DeletedBuffer):
        x.to_host()
    with raises(DeletedBuffer):
        program.execute([(y,), (x,)])
    np.testing.assert_array_equal(y.to_host(), ONE)


def deleted_arguments(subject: Subject) -> None:
    """A result outlives its arguments and its program."""
    program = subject.compile(programs.ADD)
    x = subject.put(ONE)
    [[total]] = program.execute([(x,), (x,)])
    x.delete()
    program.delete()
    del x, program
    gc.collect()
    np.testing.assert_array_equal(total.to_host(), 2 * ONE)


def deleted_programs(subject: Subject) -> None:
    """A deleted program raises, is deleted twice without harm, and is not launched."""
    program = subject.compile(programs.ADD)
    x = subject.put(ONE)
    program.delete()
    program.delete()
    assert program.is_deleted()
    with raises(PlugrtError):
        program.execute([(x,), (x,)])


def results_that_host_arrays_view(subject: Subject) -> None:
    """A host array stays unchanged when the array from which it was read is deleted."""
    x = subject.put(ONE)
    host = x.to_host()
    x.delete()
    np.testing.assert_array_equal(host, ONE)


def closed_clients(subject: Subject) -> None:
    """A client is closed twice without harm, with live arrays, and puts no more."""
    client = subject.make_client()
    device = client.devices()[0]
    x = client.buffer_from_host(ONE, device)
    client.close()
    client.close()
    with raises(PlugrtError):
        client.buffer_from_host(ONE, device)
    x.delete()
    del x, client
    gc.collect()


def two_clients(subject: Subject) -> None:
    """A second client has its own devices and arrays, which the first one refuses."""
    other = subject.make_client()
    x = other.buffer_from_host(ONE, other.devices()[0])
    np.testing.assert_array_equal(x.to_host(), ONE)
    program = subject.compile(programs.ADD)
    with raises(PlugrtError):
        program.execute([(x,), (x,)])
    with raises(PlugrtError):
        subject.client.buffer_from_host(ONE, other.devices()[0])
    x.delete()
    other.close()


def donation(subject: Subject) -> None:
    """A donated argument is gone if donation is declared, and is whole if not; others remain."""
    program = subject.compile(programs.DONATING_ADD)
    x, y = subject.put(ONE), subject.put(10 * ONE)
    keep = ExecuteOptions(non_donatable_input_indices=(0,))
    [[kept]] = program.execute([(x,), (y,)], keep)
    np.testing.assert_array_equal(x.to_host(), ONE)
    [[total]] = program.execute([(x,), (y,)])
    np.testing.assert_array_equal([kept.to_host(), total.to_host()], [11 * ONE] * 2)
    np.testing.assert_array_equal(y.to_host(), 10 * ONE)
    assert x.is_deleted() == subject.declared.donation
    if subject.declared.donation:
        for use in (x.to_host, lambda: program.execute([(x,), (y,)])):
            with raises(DeletedBuffer):
                use()
    else:
        np.testing.assert_array_equal(x.to_host(), ONE)
