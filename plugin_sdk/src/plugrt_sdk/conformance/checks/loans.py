"""Level 3: memory for host values that a program lends to launches in steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugrt.interface import MakeScratch, TensorType
from plugrt_sdk.conformance.check import Chapter, Demand, Level
from plugrt_sdk.conformance.checks.executables import open_results
from plugrt_sdk.conformance.expect import Array, Mismatch, expect, expect_equal, expect_same_bits
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter(
    "loans", Level.BEHAVES, "plugrt.interface.LaunchSteps.make_scratch", demand=Demand.PLUGRT
)

_COVERS = ("LoadedExecutable.launch_steps",)


def _type(*shape: int) -> TensorType:
    return TensorType(shape, np.dtype(np.float32))


_SUBTRACT = """func.func public @main(%a: tensor<2x3xf32>, %b: tensor<f32>) -> tensor<2x3xf32> {
  %0 = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
  %1 = stablehlo.subtract %a, %0 : tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}"""
"""Its two arguments differ in size and role, so that the result shows which is which."""
_SUBTRACTED = (_type(2, 3), _type())
_A = np.arange(6, dtype=np.float32).reshape(2, 3)

_ADDED = (_type(4096), _type(4096))
"""The types of the arguments of `programs.SLOW_ADD`."""


@dataclass(frozen=True, slots=True)
class _Loan:
    """An argument of launches, and its memory as an array of the argument's type."""

    argument: Any
    memory: Array


class _Lending:
    """A program whose steps lend memory; refuses if they do not."""

    def __init__(self, subject: PluginSubject, text: str, *types: TensorType) -> None:
        self.subject, self.program, self.types = subject, subject.compile(text), types
        steps = self.program.launch_steps
        if steps is None:
            subject.refuse("launch_steps is None: the compiled core calls the launcher")
        if steps.make_scratch is None:
            subject.refuse("make_scratch is None: host values are put before a launch")
        if steps.is_ready is None:
            raise Mismatch("is_ready, which says when memory may be written again", "None")
        self.steps, self._lend, self.is_ready = steps, steps.make_scratch, steps.is_ready

    def lenders(self, *numbers: int) -> Sequence[MakeScratch]:
        """Returns the lenders for these arguments."""
        found = self._lend(numbers)
        if found is None:
            self.subject.refuse(f"make_scratch({list(numbers)}) is None: these values are put")
        return found

    def borrow(self, *numbers: int) -> list[_Loan]:
        """Returns new memory for each of these arguments."""
        lenders = self.lenders(*numbers)
        return [self.open(lend, i) for i, lend in zip(numbers, lenders, strict=True)]

    def open(self, lend: MakeScratch, number: int) -> _Loan:
        """Returns memory from the lender of the argument of that number."""
        argument, memory = self.ask(lend)
        kind = self.types[number]
        return _Loan(argument, np.frombuffer(memory, kind.dtype).reshape(kind.shape))

    def ask(self, lend: MakeScratch) -> tuple[Any, Any]:
        """Calls a lender; returns an argument and its memory."""
        found = lend()
        if found is None:
            self.subject.refuse("a lender gives None: this value is put")
        return found

    def launch(self, *loans: _Loan) -> Sequence[Any]:
        """Launches in steps with the loans' arguments; returns the contents of results."""
        made = self.steps.launch([loan.argument for loan in loans])
        return self.steps.take(made, *self.steps.take_arguments)

    def read(self, results: Sequence[Any]) -> Array:
        """Waits for the only result of a launch, and returns it."""
        [[found]] = open_results(self.subject, self.program, results)
        return found.to_host()

    def are_ready(self, results: Sequence[Any]) -> bool:
        """Waits as the core does, before it writes to the memory again."""
        return all(map(self.is_ready, results))


@CHAPTER.check(
    "read", refusable=True, covers=_COVERS,
    why="a call with a NumPy array computes with other numbers",
)  # fmt: skip
def read(subject: PluginSubject) -> None:
    """A launch computes with the row-major elements written to its arguments' memory."""
    lending = _Lending(subject, _SUBTRACT, *_SUBTRACTED)
    a, b = lending.borrow(0, 1)
    for i in range(3):
        a.memory[...], b.memory[...] = (i + 1) * _A, i
        results = lending.launch(a, b)
        expect_same_bits(lending.read(results), (i + 1) * _A - i, f"the result of launch {i}:")


@CHAPTER.check(
    "size", refusable=True, covers=_COVERS,
    why="a call with a NumPy array fails, or writes over memory of others",
)  # fmt: skip
def size(subject: PluginSubject) -> None:
    """Lent memory has its argument's size, is writable, and has the class of launch arguments."""
    lending = _Lending(subject, _SUBTRACT, *_SUBTRACTED)
    for number, lender in enumerate(lending.lenders(0, 1)):
        argument, memory = lending.ask(lender)
        view, kind = memoryview(memory), lending.types[number]
        expect_equal(view.nbytes, kind.nbytes, f"bytes for argument {number}, {kind}:")
        expect(view.c_contiguous and not view.readonly, "contiguous memory to write to", view)
        wanted = lending.steps.argument_class
        expect(type(argument) is wanted, f"an argument that is a {wanted}", type(argument))


@CHAPTER.check(
    "lenders", refusable=True, covers=_COVERS,
    why="the value of one argument is taken for another's",
)  # fmt: skip
def lenders(subject: PluginSubject) -> None:
    """There is a lender for each requested number, in that order, for any other numbers."""
    lending = _Lending(subject, _SUBTRACT, *_SUBTRACTED)
    for asked in ((0,), (1,), (1, 0), (0, 1)):
        made = lending.lenders(*asked)
        expect_equal(len(made), len(asked), f"the number of lenders for {list(asked)}:")
        loans = {i: lending.open(lender, i) for i, lender in zip(asked, made, strict=True)}
        others = {i: lending.borrow(i)[0] for i in (0, 1) if i not in asked}
        a, b = ({**loans, **others}[i] for i in (0, 1))
        a.memory[...], b.memory[...] = _A, 7
        found = lending.read(lending.launch(a, b))
        expect_same_bits(found, _A - 7, f"the result with loans for {list(asked)}:")


@CHAPTER.check(
    "new", refusable=True, covers=_COVERS,
    why="two threads that call one function write their values over each other's",
)  # fmt: skip
def new(subject: PluginSubject) -> None:
    """Each call of a lender returns a new argument and new memory."""
    lending = _Lending(subject, _SUBTRACT, *_SUBTRACTED)
    [lender] = lending.lenders(0)
    [b] = lending.borrow(1)
    b.memory[...] = 1
    loans = [lending.open(lender, 0) for _ in range(4)]
    for i, loan in enumerate(loans):
        loan.memory[...] = i * _A
    for i, loan in enumerate(loans):
        found = lending.read(lending.launch(loan, b))
        expect_same_bits(found, i * _A - 1, f"the result with loan {i} of 4:")


@CHAPTER.check(
    "is_ready", refusable=True, covers=_COVERS, rests_on="plugrt.interface.LaunchSteps.is_ready",
    why="memory is lent to no second launch, and each call with a NumPy array takes new memory",
)  # fmt: skip
def is_ready(subject: PluginSubject) -> None:
    """Steps that lend memory state whether a result is ready; it is, once it was awaited."""
    lending = _Lending(subject, programs.SLOW_ADD, *_ADDED)
    a, b = lending.borrow(0, 1)
    a.memory[...], b.memory[...] = 1, 2
    [held] = results = lending.launch(a, b)
    found = lending.is_ready(held)
    expect(isinstance(found, bool), "a bool from is_ready()", found)
    lending.read(results)
    expect_equal(lending.is_ready(held), True, "after its result was read, is_ready():")


@CHAPTER.check(
    "again", refusable=True, covers=_COVERS, rests_on="plugrt.interface.LaunchSteps.is_ready",
    why="a call with a NumPy array computes with the next call's numbers",
)  # fmt: skip
def again(subject: PluginSubject) -> None:
    """Writing to the memory again, once all results are ready, changes no result."""
    lending = _Lending(subject, programs.SLOW_ADD, *_ADDED)
    [b] = lending.borrow(1)
    b.memory[...] = np.arange(4096)
    [a] = lending.borrow(0)
    found = []
    for i in range(20):
        a.memory[...] = i
        found.append(results := lending.launch(a, b))
        if i % 2:
            lending.read(results)
        if lending.are_ready(results):
            a.memory[...] = -1
        else:  # a launch that has not ended still uses its memory
            [a] = lending.borrow(0)
    for i, results in enumerate(found):
        wanted = np.arange(4096, dtype=np.float32) + np.float32(i)
        expect_same_bits(lending.read(results), wanted, f"the result of launch {i}:")


@CHAPTER.check(
    "results", refusable=True, covers=_COVERS,
    why="the result of a call changes with the arguments of the next",
)  # fmt: skip
def results_live(subject: PluginSubject) -> None:
    """A result that is an argument does not share the lent memory."""
    lending = _Lending(subject, programs.IDENTITY, _type(3))
    [loan] = lending.borrow(0)
    found = []
    for i in range(3):
        loan.memory[...] = i + ONE
        found.append(given := lending.launch(loan))
        lending.read(given)
        loan.memory[...] = -1
    for i, given in enumerate(found):
        expect_same_bits(lending.read(given), i + ONE, f"the result of launch {i}:")


@CHAPTER.check(
    "donated", refusable=True, covers=_COVERS,
    why="the second call with a NumPy array that is donated finds its memory deleted",
)  # fmt: skip
def donated(subject: PluginSubject) -> None:
    """A donated argument gets no lender; the others may have one."""
    lending = _Lending(subject, programs.DONATING_ADD, _type(3), _type(3))
    if not lending.steps.donated:
        subject.refuse("launches in steps take no argument")
    lend = lending.steps.make_scratch
    assert lend is not None
    for asked in ((0,), (0, 1)):
        first = next(iter(lend(asked) or ()), None)
        expect(first is None or first() is None, f"nothing from lend({list(asked)})", "a loan")
    [b] = lending.borrow(1)
    copy, x = subject.compile(programs.IDENTITY), subject.client.shards((subject.put(ONE),))
    for i in range(3):
        [taken] = copy.launcher([x])
        b.memory[...] = i
        given = lending.launch(_Loan(taken, ONE), b)
        expect_same_bits(lending.read(given), ONE + i, f"the result of launch {i}:")
