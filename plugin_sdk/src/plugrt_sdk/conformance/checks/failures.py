"""Level 3: failing launches between others, and their arguments."""

from __future__ import annotations

import threading
from functools import partial

from plugrt.errors import DeletedBuffer, PjrtError, PlugrtError, ResourceExhausted
from plugrt.interface import Buffer
from plugrt_sdk.conformance.check import Chapter, Demand, Level
from plugrt_sdk.conformance.checks.endurance import in_threads
from plugrt_sdk.conformance.checks.recovery import TOO_MANY, launch_too_large
from plugrt_sdk.conformance.expect import expect_refusal, expect_same_bits
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter("failures", Level.BEHAVES, "PJRT_LoadedExecutable_Execute; PJRT_Event_Error")

_THREADS = 4
_TOO_LARGE = "a launch whose result is 4 PiB"


def _fail(subject: PluginSubject) -> Buffer | None:
    """Starts a launch that fails; returns its result, or None if it failed at once."""
    try:
        return launch_too_large(subject)
    except ResourceExhausted:
        return None


@CHAPTER.check("others", why="one request that fails ends those of other users")
def others(subject: PluginSubject) -> None:
    """A launch that fails affects no launch before or after it, awaited or not."""
    program, x = subject.compile(programs.ADD), (subject.put(ONE),)
    [[before]] = program.execute([x, x])
    failed = [_fail(subject) for _ in range(3)]
    [[after]] = program.execute([(before,), x])
    [[last]] = program.execute([(after,), x])
    for result, wanted in ((last, 4 * ONE), (before, 2 * ONE), (after, 3 * ONE)):
        result.ready_event().wait()
        expect_same_bits(result.to_host(), wanted, "the sum")
    for result in filter(None, failed):
        expect_refusal(result.to_host, ResourceExhausted, what=_TOO_LARGE)


@CHAPTER.check("threads", why="a thread is told of the error of another one's launch")
def threads(subject: PluginSubject) -> None:
    """Four threads, two with a failing program, each get their own error or result."""
    program, together = subject.compile(programs.ADD), threading.Barrier(_THREADS)

    def work(number: int) -> None:
        x = (subject.put(number * ONE),)
        for _ in range(3):
            together.wait()
            if number % 2:
                expect_refusal(
                    lambda: launch_too_large(subject).to_host(), ResourceExhausted, what=_TOO_LARGE
                )
            else:
                [[total]] = program.execute([x, x])
                expect_same_bits(total.to_host(), 2 * number * ONE, f"the sum of thread {number}")

    def work_while_all_do(number: int) -> None:
        try:
            work(number)
        except threading.BrokenBarrierError:  # another thread's error is the finding
            return
        except BaseException:
            together.abort()
            raise

    in_threads(work_while_all_do, _THREADS)


_PART = f"""func.func public @main(%a: tensor<{TOO_MANY}xf32>) -> tensor<3xf32> {{
  %0 = stablehlo.slice %a [0:3] : (tensor<{TOO_MANY}xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}}"""


@CHAPTER.check(
    "passed_on", refusable=True, rests_on="plugrt.interface.Event.wait: errors come at the event",
    demand=Demand.PLUGRT,
    why="numbers are computed from an array that does not exist",
)  # fmt: skip
def passed_on(subject: PluginSubject) -> None:
    """A launch with the result of a failed one fails, and the next one with others works."""
    program, x = subject.compile(_PART), (subject.put(ONE),)
    failed = _fail(subject)
    if failed is None:
        subject.refuse("launches that fail say so at once")
    given = failed
    expect_refusal(
        lambda: program.execute([(given,)])[0][0].to_host(), PjrtError,
        what="a launch on the result of one that failed",
    )  # fmt: skip
    [[total]] = subject.compile(programs.ADD).execute([x, x])
    expect_same_bits(total.to_host(), 2 * ONE, "of the next launch, the sum")


_DONATION = "PJRT_ExecuteOptions.non_donatable_input_indices; tf.aliasing_output"


@CHAPTER.check(
    "donation.refused", rests_on=_DONATION,
    why="a program that corrects its mistake has lost the array that it was about",
)  # fmt: skip
def donation_refused(subject: PluginSubject) -> None:
    """A refused launch leaves its donated argument alive, and a later launch donates it."""
    program = subject.compile(programs.DONATING_ADD)
    x, y, gone = subject.put(ONE), subject.put(10 * ONE), subject.put(ONE)
    gone.delete()
    for wrong in ([(x,)], [(x,), (gone,)]):
        expect_refusal(partial(program.execute, wrong), PlugrtError, what="a wrong launch")
        expect_same_bits(x.to_host(), ONE, "the array that would have been donated")
    [[total]] = program.execute([(x,), (y,)])
    expect_same_bits(total.to_host(), 11 * ONE, "of the right launch, the sum")


_DONATE_AND_FILL = f"""func.func public @main(%a: tensor<3xf32> {{tf.aliasing_output = 0 : i32}},
    %b: tensor<f32>) -> (tensor<3xf32>, tensor<{TOO_MANY}xf32>) {{
  %0 = stablehlo.add %a, %a : tensor<3xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<f32>) -> tensor<{TOO_MANY}xf32>
  return %0, %1 : tensor<3xf32>, tensor<{TOO_MANY}xf32>
}}"""


@CHAPTER.check(
    "donation.failed", rests_on=_DONATION,
    why="a step that is tried again starts from an array that the first try has spoilt",
)  # fmt: skip
def donation_failed(subject: PluginSubject) -> None:
    """A failed launch leaves its donated argument alive, or deletes it and states that."""
    program, x = subject.compile(_DONATE_AND_FILL), subject.put(ONE)
    y = subject.put(ONE[0])

    def launch() -> None:
        for [result] in program.execute([(x,), (y,)]):
            result.block_until_ready()

    expect_refusal(launch, ResourceExhausted, what=_TOO_LARGE)
    if x.is_deleted():
        expect_refusal(x.to_host, DeletedBuffer, what="reading the array that was donated")
    else:
        expect_same_bits(x.to_host(), ONE, "the array that was to be donated")
    expect_same_bits(y.to_host(), ONE[0], "the argument that was not")
