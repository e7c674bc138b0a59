"""`LoadedProgram`: a compiled program that takes arrays and returns arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal, NoReturn

import numpy as np

from plugrt.errors import DeletedBuffer, FloatingPointFault
from plugrt.execution.array import Array, new_array
from plugrt.execution.frames import called_at
from plugrt.execution.signature import Signature, signature_of
from plugrt.execution.transfer import duplicate
from plugrt.interface import LoadedExecutable, Shards

_shards_of = attrgetter("_shards")

Source = tuple[Literal["result", "argument", "constant"], int]
"""Where an output comes from: the executable, or straight from an argument or a constant."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How the flat arguments and outputs of a call map to an executable's.

    The executable's parameters are the arguments numbered in ``kept`` (unused ones never reach
    it) followed by ``constants``, the arrays that the function closed over. ``donated`` numbers
    the arguments whose memory the executable takes.
    """

    name: str
    kept: tuple[int, ...]
    sources: tuple[Source, ...]
    constants: tuple[Array, ...] = ()
    donated: tuple[int, ...] = ()
    argument_names: tuple[str, ...] = field(default=())

    @property
    def is_trivial(self) -> bool:
        """Whether there is nothing to execute: each output is an argument or a constant."""
        return all(kind != "result" for kind, _ in self.sources)


class LoadedProgram:
    """Runs an executable on flat arguments that have the signatures it was made for."""

    __slots__ = ("_execute", "_prepare", "_results", "executable", "plan")

    def __init__(
        self,
        plan: Plan,
        executable: LoadedExecutable | None,
        results: Sequence[Signature],
        prepare: Callable[[Sequence[Array]], Sequence[Array]] | None = None,
    ) -> None:
        """``results`` are the signatures of the executable's outputs; ``prepare`` moves arguments
        that are elsewhere to where the executable takes them."""
        self.plan = plan
        self.executable = executable
        self._results = tuple(results)
        self._prepare = prepare
        self._execute = executable.launcher if executable else _nothing_to_execute

    def runner(self, count: int) -> Callable[[Sequence[Array]], list[Array]]:
        """Returns the shortest way to run it on ``count`` arguments."""
        plan = self.plan
        plain = (
            self._prepare is None
            and not plan.constants
            and not plan.donated
            and plan.kept == tuple(range(count))
            and all(s == ("result", i) for i, s in enumerate(plan.sources))
        )
        return self.run_plain if plain else self.run

    def run_plain(self, arguments: Sequence[Array]) -> list[Array]:
        """Runs it where parameters and outputs are the executable's, one to one."""
        try:
            outputs = self._execute([*map(_shards_of, arguments)])
        except Exception as error:  # noqa: BLE001  # always raised again, explained
            self._explain(arguments, error)
        new, made = object.__new__, []
        for shards, signature in zip(outputs, self._results):  # noqa: B905  # hot
            array = new(Array)  # as `new_array`, without the call
            array._shards = shards
            array._signature = signature
            made.append(array)
        return made

    def single_runner(self) -> Callable[[Sequence[Array]], Array]:
        """Returns `run_plain` for a program of one result, which it returns by itself.

        The hot path of most calls: a closure, since attributes of ``self`` cost more.
        """
        execute, explain, new = self._execute, self._explain, object.__new__
        [signature] = self._results

        def run_single(arguments: Sequence[Array]) -> Array:
            try:
                [shards] = execute([*map(_shards_of, arguments)])
            except Exception as error:  # noqa: BLE001  # always raised again, explained
                explain(arguments, error)
            array = new(Array)
            array._shards = shards
            array._signature = signature
            return array

        return run_single

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """Runs it in full generality."""
        plan = self.plan
        placed = self._prepare(arguments) if self._prepare else arguments
        parameters = [*[placed[i] for i in plan.kept], *plan.constants]
        if plan.is_trivial:
            outputs: Sequence[Shards] = ()
        else:
            try:
                outputs = self._execute([a._live() for a in parameters])
            except Exception as error:  # noqa: BLE001  # always raised again, explained
                self._explain(parameters, error)
        made = [new_array(o, s) for o, s in zip(outputs, self._results, strict=True)]
        result = [
            made[i]
            if kind == "result"
            else self._passed_on(placed[i], i)
            if kind == "argument"
            else _copy(plan.constants[i])
            for kind, i in plan.sources
        ]
        if plan.donated:
            taker = f"{plan.name!r}{called_at()}"
            for i in plan.donated:
                placed[i]._taken_by(taker)
                arguments[i]._taken_by(taker)
        return result

    def _passed_on(self, array: Array, i: int) -> Array:
        """Returns argument ``i`` as a result: the same object, but a copy of a Python scalar."""
        if array._shards is None:
            name = self.plan.argument_names[i] if self.plan.argument_names else i
            raise DeletedBuffer(f"argument {name} of {self.plan.name}: {array._obituary()}")
        return _copy(array) if array._signature.weak else array

    def _explain(self, arguments: Sequence[Array], error: Exception) -> NoReturn:
        """Raises the error, or `DeletedBuffer` where an argument turns out to have no data."""
        plan = self.plan
        for parameter, argument in enumerate(arguments):
            if argument.is_deleted():
                if parameter < len(plan.kept):
                    i = plan.kept[parameter]
                    names = plan.argument_names
                    which = f"argument {names[i] if i < len(names) else i}"
                else:
                    which = "an array in the closure"
                raise DeletedBuffer(f"{which} of {plan.name}: {argument._obituary()}") from error
        raise error

    def delete(self) -> None:
        """Unloads the executable."""
        if self.executable is not None:
            self.executable.delete()


def _copy(array: Array) -> Array:
    """Returns a copy of an array that later calls need, for the caller to delete or donate."""
    s = array._signature
    strong = signature_of(s.shape, s.dtype, s.sharding, s.committed)
    return new_array(duplicate(array)._live(), strong)


def _nothing_to_execute(arguments: Sequence[Shards], options: Any = None) -> Sequence[Shards]:
    return ()


def check_floats(arrays: Sequence[Array], what: str, *, nans: bool, infs: bool) -> None:
    """Raises `FloatingPointFault` if a floating-point result holds a NaN or an infinity."""
    for array in arrays:
        host = np.asarray(array)
        if host.dtype.kind not in "fc" and not host.dtype.name.startswith(("bfloat", "float")):
            continue
        if host.dtype.kind not in "fc":
            host = host.astype(np.float32)
        if nans and np.isnan(host).any():
            raise FloatingPointFault(f"invalid value (nan) encountered in {what}")
        if infs and np.isinf(host).any():
            raise FloatingPointFault(f"invalid value (inf) encountered in {what}")
