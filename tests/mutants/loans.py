"""Mutants of memory for the arguments of launches in steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from plugrt.interface import HostBufferSemantics, LaunchSteps, MakeScratch, TensorType
from plugrt.programs.parsing import parse_program
from plugrt_sdk.buffer import BackendBuffer
from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.mutants.faults import Faults, execute, recast
from plugrt_sdk.loaded_executable import BackendLoadedExecutable

Loan = tuple[Any, Any]
_Makers = Sequence[MakeScratch] | None


@dataclass(frozen=True, slots=True)
class _Refusals:
    """A sequence with one entry while a program is deleted."""

    program: BackendLoadedExecutable

    def __len__(self) -> int:
        return int(self.program.is_deleted())


def lending_steps(self: BackendLoadedExecutable) -> LaunchSteps:
    """Returns correct steps: they lend memory of the host, which launches read at once."""
    return LaunchSteps(
        launch=partial(execute, self),
        take=list,
        take_arguments=(),
        argument_class=tuple,
        unless=(_Refusals(self),),
        explain=lambda error, arguments: error,
        donated=tuple(sorted(self.executable.compiled.donated)),
        is_deleted=lambda shards: shards[0].is_deleted(),
        delete=lambda shards: shards[0].delete(),
        make_scratch=partial(_lend, self),
        is_ready=lambda shards: shards[0].ready_event().is_ready(),
    )


LENDS: Mapping[str, Any] = {"launch_steps": property(lending_steps)}
"""Members of loaded programs: steps that lend memory, which the NumPy backend lacks."""


def _lend(self: BackendLoadedExecutable, numbers: Sequence[int]) -> _Makers:
    if not self.executable.compiled.donated.isdisjoint(numbers):
        return None
    return _lenders(self, numbers)


def _lenders(self: BackendLoadedExecutable, numbers: Sequence[int]) -> list[MakeScratch]:
    return [partial(_make_loan, self, _types_of(self)[i]) for i in numbers]


def _types_of(self: BackendLoadedExecutable) -> Sequence[TensorType]:
    return parse_program(self.executable.compiled.program)[1]


def _make_loan(self: BackendLoadedExecutable, kind: TensorType) -> Loan:
    memory = np.zeros(kind.shape, kind.dtype)
    return (_argument_over(self, memory),), memory


def _argument_over(self: BackendLoadedExecutable, memory: Array) -> BackendBuffer:
    [device] = self.addressable_devices
    semantics = HostBufferSemantics.MUTABLE_ZERO_COPY
    found = self.client.buffer_from_host(memory, device, semantics=semantics)
    assert isinstance(found, BackendBuffer)
    return found


def with_steps(**members: Callable[[BackendLoadedExecutable], Any]) -> Faults:
    """Returns a mutant of `lending_steps` with other values of these fields."""

    def steps(self: BackendLoadedExecutable) -> LaunchSteps:
        changed = {name: make(self) for name, make in members.items()}
        return replace(lending_steps(self), **changed)

    return Faults(loaded={"launch_steps": property(steps)})


def _lending(change: Callable[[BackendLoadedExecutable, TensorType], Loan | None]) -> Faults:
    """Returns a mutant with other loans."""

    def lend(self: BackendLoadedExecutable, numbers: Sequence[int]) -> _Makers:
        if _lend(self, numbers) is None:
            return None
        return [partial(change, self, _types_of(self)[i]) for i in numbers]

    return with_steps(make_scratch=lambda self: partial(lend, self))


def _copied(self: BackendLoadedExecutable, kind: TensorType) -> Loan:
    """Lends memory, and copies it for the argument."""
    memory = np.zeros(kind.shape, kind.dtype)
    return (_argument_over(self, memory.copy()),), memory


def _one_short(self: BackendLoadedExecutable, kind: TensorType) -> Loan:
    """Lends memory without room for the last element."""
    argument, memory = _make_loan(self, kind)
    return argument, memory.reshape(-1)[:-1]


def _lend_too_few(self: BackendLoadedExecutable, numbers: Sequence[int]) -> _Makers:
    """Lends no memory for the last of several arguments."""
    found = _lend(self, numbers)
    return found if found is None or len(found) < 2 else found[:-1]


def _lend_one(self: BackendLoadedExecutable, numbers: Sequence[int]) -> _Makers:
    """Lends each argument the same memory each time."""
    found = _lend(self, numbers)
    return found and [partial(_same, lender()) for lender in found]


def _same(loan: Loan | None) -> Loan | None:
    return loan


def _launch_late(self: BackendLoadedExecutable, arguments: Any) -> Any:
    """Launches, and reads its arguments again when its results are read."""
    results = execute(self, arguments)
    if self.executable.compiled.donated:
        return results

    def compute(number: int, shards: int) -> Array:
        return execute(self, arguments)[number][shards].to_host()

    for i, shards in enumerate(results):
        for j, buffer in enumerate(shards):
            late = partial(compute, i, j)
            recast(buffer, BackendBuffer, {"to_host": lambda buffer, late=late: late()})
    return results


def _launch_in_place(self: BackendLoadedExecutable, arguments: Any) -> Any:
    """Launches; a result that is an argument shares its memory."""
    results = execute(self, arguments)
    if self.executable.compiled.donated:
        return results
    for [result] in results:
        assert isinstance(result, BackendBuffer)
        for [argument] in arguments:
            if np.array_equal(result.to_host(), argument.to_host()):
                result._handle = argument.handle
    return results


MUTANTS: Mapping[str, Faults] = {
    "loans.read": _lending(_copied),
    "loans.size": _lending(_one_short),
    "loans.lenders": with_steps(make_scratch=lambda self: partial(_lend_too_few, self)),
    "loans.new": with_steps(make_scratch=lambda self: partial(_lend_one, self)),
    "loans.is_ready": with_steps(is_ready=lambda self: lambda shards: False),
    "loans.again": with_steps(launch=lambda self: partial(_launch_late, self)),
    "loans.results": with_steps(launch=lambda self: partial(_launch_in_place, self)),
    "loans.donated": with_steps(make_scratch=lambda self: partial(_lenders, self)),
}
