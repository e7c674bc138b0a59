"""Level 3: events, threads, and the state after a failed call."""

from __future__ import annotations

from plugrt.errors import PlugrtError
from plugrt.interface import CompileOptions, Program
from plugrt_sdk.conformance.check import Chapter, Demand, Level
from plugrt_sdk.conformance.expect import expect, expect_equal, expect_refusal, expect_same_bits
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing import launches, programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter("behaviour", Level.BEHAVES, "plugrt.interface", demand=Demand.REFERENCE)


@CHAPTER.check("threads", why="a server with several threads gets wrong results, or crashes")
def threads(subject: PluginSubject) -> None:
    """Four threads put, launch and read at once, and each gets its own results."""
    launches.threads(subject)


@CHAPTER.check(
    "events",
    rests_on="PJRT_Event_OnReady",
    demand=Demand.SPEC,
    covers=("Event.on_ready",),
    why="a host that waits for a result waits forever, or its callback is called twice",
)
def events(subject: PluginSubject) -> None:
    """An event becomes ready, calls a callback once, and wakes every waiting thread."""
    launches.events(subject)


@CHAPTER.check("after_errors", why="one bad program makes the backend useless")
def after_errors(subject: PluginSubject) -> None:
    """After twenty refused programs and launches, a valid program works."""
    good = subject.compile(programs.ADD)
    x = subject.put(ONE)
    bad = Program(b"this is no program")
    for _ in range(10):
        expect_refusal(
            lambda: subject.client.compile(bad, CompileOptions()),
            PlugrtError,
            what="a program that is none",
        )
        expect_refusal(lambda: good.execute([(x,)]), PlugrtError, what="a missing argument")
    [[total]] = good.execute([(x,), (x,)])
    expect_same_bits(total.to_host(), 2 * ONE, "the launch after the errors:")


@CHAPTER.check("order", why="a program overtakes the one that it needs")
def order(subject: PluginSubject) -> None:
    """A chain of fifty launches, without waits between them, computes the last one's result."""
    program = subject.compile(programs.ADD)
    one = total = subject.put(ONE)
    for _ in range(50):
        [[total]] = program.execute([(total,), (one,)])
    expect_same_bits(total.to_host(), 51 * ONE, "the last result")


@CHAPTER.check("error_text", why="users see an error that they cannot act on")
def error_text(subject: PluginSubject) -> None:
    """An error that refuses a program has a message."""
    try:
        subject.client.compile(Program(b"this is no program"), CompileOptions())
    except PlugrtError as error:
        expect(len(str(error).split()) >= 3, "a message of some words", str(error))
    else:
        expect(False, "an error", "a program")


@CHAPTER.check("synchronous", why="hosts that trust the declaration read results too early")
def synchronous(subject: PluginSubject) -> None:
    """Without declared asynchronous dispatch, a result is ready when the launch returns."""
    x = subject.put(ONE)
    [[total]] = subject.compile(programs.ADD).execute([(x,), (x,)])
    if not subject.declared.asynchronous_dispatch:
        expect_equal(total.ready_event().is_ready(), True, "is_ready() after execute():")
    total.block_until_ready()
    expect_equal(total.ready_event().is_ready(), True, "is_ready() after block_until_ready():")
