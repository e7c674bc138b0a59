"""Level 3: lack of memory, and errors that appear after the call that caused them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from plugrt.errors import PjrtError, ResourceExhausted
from plugrt.interface import Buffer
from plugrt_sdk.conformance.check import Chapter, Demand, Level
from plugrt_sdk.conformance.expect import expect, expect_refusal, expect_same_bits
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter("recovery", Level.BEHAVES, "plugrt.errors.ResourceExhausted; PJRT_Error_Code 8")

TOO_MANY = 1 << 50
"""The number of floats: four pebibytes, more than a machine can address."""
_FILL = f"""func.func public @main(%a: tensor<f32>) -> tensor<{TOO_MANY}xf32> {{
  %0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<{TOO_MANY}xf32>
  return %0 : tensor<{TOO_MANY}xf32>
}}"""


def _expect_works(subject: PluginSubject, when: str) -> None:
    x = (subject.put(ONE),)
    [[total]] = subject.compile(programs.ADD).execute([x, x])
    expect_same_bits(total.to_host(), 2 * ONE, f"{when}, the sum")


@CHAPTER.check("put", why="an array that is too large ends the program, or the machine")
def put(subject: PluginSubject) -> None:
    """An array too large for memory is refused with ResourceExhausted; the next put works."""
    source = np.broadcast_to(np.float32(1), (TOO_MANY,))
    device = subject.client.devices()[0]
    expect_refusal(
        lambda: subject.client.buffer_from_host(source, device).block_until_ready(),
        ResourceExhausted, what="putting an array of 4 PiB",
    )  # fmt: skip
    _expect_works(subject, "after an array that was too large")


def launch_too_large(subject: PluginSubject) -> Buffer:
    """Launches a program whose result is too large; its error may appear now, or later."""
    [[result]] = subject.compile(_FILL).execute([(subject.put(np.float32(1)),)])
    return result


@CHAPTER.check("launch", why="a model that is too large ends the program, or the machine")
def launch(subject: PluginSubject) -> None:
    """A result too large for memory is ResourceExhausted, three times; then a launch works."""
    for _ in range(3):
        expect_refusal(
            lambda: launch_too_large(subject).to_host(), ResourceExhausted,
            what="launching a program whose result is 4 PiB",
        )  # fmt: skip
        _expect_works(subject, "after a result that was too large")


@CHAPTER.check(
    "deferred", refusable=True, rests_on="plugrt.interface.Event.wait, .on_ready",
    demand=Demand.PLUGRT,
    why="a launch that failed looks like one that worked",
)  # fmt: skip
def deferred(subject: PluginSubject) -> None:
    """An error that appears after the launch is raised by each wait for the result."""
    try:
        result = launch_too_large(subject)
    except PjrtError:
        subject.refuse("launches that fail say so at once")
    waits: dict[str, Callable[[], Any]] = {
        "block_until_ready()": result.block_until_ready,
        "ready_event().wait()": result.ready_event().wait,
        "to_host()": result.to_host,
    }
    for name, wait in waits.items():
        expect_refusal(wait, ResourceExhausted, what=f"{name} of a launch that failed")
    told: list[Any] = []
    done = threading.Event()

    def tell(error: PjrtError | None) -> None:
        told.append(error)
        done.set()

    result.ready_event().on_ready(tell)
    done.wait(60)
    expect(isinstance(told[0], ResourceExhausted), "on_ready() to hand over the error", told)
