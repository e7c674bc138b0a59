"""Level 3: programs, arguments and results that are deleted or donated, and several clients."""

from __future__ import annotations

import gc
from functools import partial

import numpy as np

from plugrt.errors import DeletedBuffer, PlugrtError
from plugrt.interface import ExecuteOptions
from plugrt_sdk.conformance.check import Chapter, Demand, Level
from plugrt_sdk.conformance.expect import expect, expect_equal, expect_refusal, expect_same_bits
from plugrt_sdk.conformance.resident import resident_bytes
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing import ownership, programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter("ownership", Level.BEHAVES, "pjrt_c_api.h: PJRT_LoadedExecutable_Execute")


@CHAPTER.check("deleted_argument", why="a launch reads freed memory")
def deleted_argument(subject: PluginSubject) -> None:
    """A deleted array is refused as an argument; other arguments and the program stay usable."""
    program = subject.compile(programs.ADD)
    x, y = subject.put(ONE), subject.put(ONE)
    x.delete()
    expect_refusal(lambda: program.execute([(y,), (x,)]), DeletedBuffer, what="a deleted argument")
    [[total]] = program.execute([(y,), (y,)])
    expect_same_bits(total.to_host(), 2 * ONE, "the next launch:")


@CHAPTER.check("results_live", why="results change when their arguments are gone")
def results_live(subject: PluginSubject) -> None:
    """A result outlives its arguments and its program."""
    ownership.deleted_arguments(subject)


@CHAPTER.check("results_are_two", why="the result of a step is gone with that of the one before")
def results_are_two(subject: PluginSubject) -> None:
    """Each launch of a program without arguments returns a new array."""
    program = subject.compile(programs.CONSTANT)
    [[first]], [[second]] = program.execute([]), program.execute([])
    first.delete()
    expect_equal(second.is_deleted(), False, "is_deleted() of the other launch's result:")
    expect_same_bits(second.to_host(), np.array([7, -1], np.int32), "the other launch's result")


@CHAPTER.check(
    "deleted_program",
    why="a launch runs freed code",
    covers=("LoadedExecutable.delete", "LoadedExecutable.is_deleted"),
)
def deleted_program(subject: PluginSubject) -> None:
    """A deleted program states that, can be deleted twice, and refuses a launch."""
    program = subject.compile(programs.ADD)
    x = subject.put(ONE)
    expect_equal(program.is_deleted(), False, "is_deleted() before:")
    program.delete()
    program.delete()
    expect_equal(program.is_deleted(), True, "is_deleted() after:")
    expect_refusal(lambda: program.execute([(x,), (x,)]), PlugrtError, what="a deleted program")


@CHAPTER.check("two_clients", why="two libraries in one program hand each other their arrays")
def two_clients(subject: PluginSubject) -> None:
    """A second client has its own devices and arrays, which the first one refuses."""
    ownership.two_clients(subject)


_DONATION = "PJRT_ExecuteOptions.non_donatable_input_indices; tf.aliasing_output"


@CHAPTER.check(
    "donation",
    capability="",
    rests_on=_DONATION,
    why="a donated array is read after its memory has another's contents",
)
def donation(subject: PluginSubject) -> None:
    """A donated argument is deleted if donation is declared, and stays alive otherwise."""
    program = subject.compile(programs.DONATING_ADD)
    x, y = subject.put(ONE), subject.put(10 * ONE)
    [[total]] = program.execute([(x,), (y,)])
    expect_same_bits(total.to_host(), 11 * ONE, "the result")
    expect_same_bits(y.to_host(), 10 * ONE, "the argument that is not donated")
    expect_equal(x.is_deleted(), subject.declared.donation, "is_deleted() of the donated argument:")
    if subject.declared.donation:
        expect_refusal(x.to_host, DeletedBuffer, what="reading the donated argument")
    else:
        expect_same_bits(x.to_host(), ONE, "the argument whose donation was ignored")


_DONATING_BOTH = """module @both {
  func.func @main(%a: tensor<3xf32> {tf.aliasing_output = 0 : i32},
      %b: tensor<3xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<3xf32>, tensor<3xf32>) {
    %0 = stablehlo.add %a, %b : tensor<3xf32>
    %1 = stablehlo.subtract %b, %a : tensor<3xf32>
    return %0, %1 : tensor<3xf32>, tensor<3xf32>
  }
}"""


@CHAPTER.check(
    "donation.both", capability="", rests_on=_DONATION,
    why="a training step keeps its old weights, and runs out of memory",
)  # fmt: skip
def donation_both(subject: PluginSubject) -> None:
    """Two donated arguments are both deleted if donation is declared, and otherwise neither."""
    x, y = subject.put(ONE), subject.put(10 * ONE)
    [[total], [difference]] = subject.compile(_DONATING_BOTH).execute([(x,), (y,)])
    expect_same_bits(total.to_host(), 11 * ONE, "the sum")
    expect_same_bits(difference.to_host(), 9 * ONE, "the difference")
    expect_equal(
        [x.is_deleted(), y.is_deleted()], [subject.declared.donation] * 2, "is_deleted() of each:"
    )


@CHAPTER.check(
    "donation.stated", refusable=True, demand=Demand.PLUGRT,
    rests_on="plugrt.interface.Executable.donated_parameters",
    why="hosts keep arrays that a launch consumed, or make copies of arrays that none does",
    covers=("Executable.donated_parameters",),
)  # fmt: skip
def donation_stated(subject: PluginSubject) -> None:
    """A launch deletes the arguments whose numbers the program states, and no others."""
    for text, offered in (
        (programs.ADD, []), (programs.DONATING_ADD, [0]), (_DONATING_BOTH, [0, 1])
    ):  # fmt: skip
        program = subject.compile(text)
        stated = list(program.executable.donated_parameters)
        expect(stated in (offered, offered[:1], offered[1:], []), f"some of {offered}", stated)
        arguments = [subject.put(ONE), subject.put(10 * ONE)]
        program.execute([(x,) for x in arguments])
        deleted = [n for n, x in enumerate(arguments) if x.is_deleted()]
        expect_equal(stated, deleted, "the donated parameters:")


@CHAPTER.check("donation.kept", rests_on=_DONATION, why="an array that was to be kept is gone")
def donation_kept(subject: PluginSubject) -> None:
    """An argument that is named as not donatable survives a program that donates it."""
    program = subject.compile(programs.DONATING_ADD)
    x, y = subject.put(ONE), subject.put(10 * ONE)
    keep = ExecuteOptions(non_donatable_input_indices=(0,))
    [[total]] = program.execute([(x,), (y,)], keep)
    expect_same_bits(total.to_host(), 11 * ONE, "the result")
    expect_same_bits(x.to_host(), ONE, "the argument that is kept")


@CHAPTER.check(
    "donation.again", capability="donation", rests_on=_DONATION,
    why="a second step reads memory that the first one gave away",
)  # fmt: skip
def donation_again(subject: PluginSubject) -> None:
    """A donated array is refused as an argument of another launch, donated or not."""
    donating, adding = subject.compile(programs.DONATING_ADD), subject.compile(programs.ADD)
    x, y = subject.put(ONE), subject.put(ONE)
    donating.execute([(x,), (y,)])
    if not x.is_deleted():
        subject.refuse("the donation was ignored")
    arguments = [(x,), (y,)]
    for program in (donating, adding):
        launch = partial(program.execute, arguments)
        expect_refusal(launch, DeletedBuffer, what="a donated argument")


@CHAPTER.check(
    "donation.twice", capability="donation", rests_on=_DONATION,
    why="f(x, x) writes its result over what it still reads",
)  # fmt: skip
def donation_twice(subject: PluginSubject) -> None:
    """A launch with a donated array as another argument, too, is refused, or computes right."""
    x = subject.put(ONE)
    program = subject.compile(programs.DONATING_ADD)
    try:
        [[total]] = program.execute([(x,), (x,)])
    except PlugrtError:
        expect_same_bits(x.to_host(), ONE, "the array whose launch was refused")
    else:
        if not x.is_deleted():
            subject.refuse("the donation was ignored")
        expect_same_bits(total.to_host(), 2 * ONE, "the sum")


@CHAPTER.check("argument_unchanged", why="arguments are overwritten by results")
def argument_unchanged(subject: PluginSubject) -> None:
    """A launch that donates nothing leaves its arguments alive and unchanged."""
    program = subject.compile(programs.ADD)
    x = subject.put(ONE)
    for _ in range(3):
        program.execute([(x,), (x,)])
    expect_same_bits(x.to_host(), ONE, "the argument")


@CHAPTER.check(
    "leak",
    why="a training loop runs out of memory",
    rests_on="resident memory of the process",
    demand=Demand.REFERENCE,
)
def leak(subject: PluginSubject) -> None:
    """A hundred arrays of 4 MB that are put, added and dropped in turn use no more memory."""
    program = subject.compile(_ADD_LARGE)
    source = np.ones(1 << 20, np.float32)

    def cycle(count: int) -> None:
        for _ in range(count):
            x = subject.put(source)
            [[total]] = program.execute([(x,)])
            total.block_until_ready()
        gc.collect()

    cycle(10)
    before = resident_bytes()
    cycle(100)
    grown = resident_bytes() - before
    expect(
        grown < 40 * source.nbytes,
        "less than 160 MB more after 800 MB of arrays",
        f"{grown >> 20} MB",
    )


_ADD_LARGE = """func.func public @main(%a: tensor<1048576xf32>) -> tensor<1048576xf32> {
  %0 = stablehlo.add %a, %a : tensor<1048576xf32>
  return %0 : tensor<1048576xf32>
}"""
