"""`debug_nans` and `debug_infs`: checks of a launch's results for NaN and infinities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from plugrt.distributed.agreement import tell_each_other
from plugrt.errors import FloatingPointFault
from plugrt.execution.arrays.arguments import Aval
from plugrt.execution.arrays.array import Array
from plugrt.execution.launches.float_origins import find_origin
from plugrt.execution.launches.loaded_program import LoadedProgram
from plugrt.execution.transfers.transfer import device_put
from plugrt.frames.user_frames import describe_call_site
from plugrt.settings.declarations import config

Run = Callable[[Sequence[Any]], Sequence[Array]]
Rerun = Callable[[Sequence[Any]], None]
"""Runs a call again operation by operation, so that the one at fault raises by its own name."""


def put_host_arrays(values: Sequence[Any]) -> list[Any]:
    """Returns the arguments of a call for a `Rerun`: NumPy's own operations are not checked."""
    return [device_put(x) if isinstance(x, np.ndarray) else x for x in values]


def float_checks_enabled() -> bool:
    """Whether `debug_nans` or `debug_infs` is set in this thread."""
    return bool(config.debug_nans or config.debug_infs)


def add_float_checks(
    program: LoadedProgram,
    avals: Sequence[Aval],
    what: str,
    rerun: Rerun | None,
    is_operation: bool,
) -> Run:
    """Returns what runs a program and looks at the floating-point results after each launch.

    Raises `FloatingPointFault` that names ``what`` was launched, the types, the user's line, and
    the arguments and captured arrays that hold what was found already. ``rerun`` gets the
    arguments, to find the operation; where it does not, the operation is looked for in the module,
    unless the program ``is_operation``, one of its own.
    """
    # The arguments must survive, so that the call can be made again.
    run = program.make_runner(avals, keep_donated=True)
    checks = _Checks(
        program, avals, what, rerun, is_operation, bool(config.debug_nans), bool(config.debug_infs)
    )

    def run_checked(values: Sequence[Any]) -> Sequence[Array]:
        outputs = run(values)
        checks.check(outputs, values)
        return outputs

    return run_checked


@dataclass(frozen=True)
class _Checks:
    """What is looked for in the results of a program, and what is known of its calls."""

    program: LoadedProgram
    avals: Sequence[Aval]
    what: str
    rerun: Rerun | None
    is_operation: bool
    nans: bool
    infs: bool

    def check(self, outputs: Sequence[Array], values: Sequence[Any]) -> None:
        """Raises `FloatingPointFault` if a result of the call with ``values`` has a fault."""
        faults = ((i, _fault(output, self.nans, self.infs)) for i, output in enumerate(outputs))
        i, found = next(((i, found) for i, found in faults if found), (0, ""))
        where = ""
        if not self.alone:
            i, found, where = self._find_in_processes(i, found)
        if found:
            result = self._describe_result(i, found) + where
            self._raise(result, self._describe_inputs(values), values)

    @property
    def alone(self) -> bool:
        """Whether the program runs in this process alone."""
        return all(device.is_addressable for device in self.program.launch.devices)

    def _find_in_processes(self, i: int, found: str) -> tuple[int, str, str]:
        """Returns the result and the fault that all processes raise for; none where none has one.

        All of them come to it, as they came to the launch. So all find the operation, by the same
        launches, and none goes on alone.
        """
        settings = " and ".join(
            name for name, on in (("debug_nans", self.nans), ("debug_infs", self.infs)) if on
        )
        said = tell_each_other(
            f"the check of {self.what} by {settings}, which all processes set or none",
            f"{i} {found}" if found else "",
            (device.process_index for device in self.program.launch.devices),
            series=f"floats {self.program.plan.name}",
        )
        faulty = [(text, who) for who, text in said if text]
        if not faulty:
            return i, "", ""
        index, found = min((text.split() for text, _ in faulty), key=lambda words: int(words[0]))
        here = sorted(index for text, who in faulty for index in who)
        others = f"; found by process {', '.join(map(str, here))}"
        return int(index), found, others

    def _describe_result(self, i: int, found: str) -> str:
        types = ", ".join(str(aval.tensor_type) for aval in self.avals)
        outputs = self.program.outputs
        result = f"; it is in result {i}, {outputs[i].tensor_type}" if len(outputs) > 1 else ""
        where = describe_call_site()
        return f"invalid value ({found}) encountered in {self.what} of ({types}){where}{result}"

    def _describe_inputs(self, values: Sequence[Any]) -> str:
        """Returns a sentence on what held a NaN or an infinity before the call."""
        plan = self.program.plan
        holding = [
            f"{plan.describe(i)} of {plan.name!r} ({self.avals[i].tensor_type})"
            for i in plan.needed
            if _fault(values[i], self.nans, self.infs)
        ] + [
            f"an array in the closure of {plan.name!r} ({constant._signature.tensor_type})"
            for constant in self.program.constants
            if _fault(constant, self.nans, self.infs)
        ]
        if not holding:
            return ""
        return f"; before the call it was in {' and in '.join(holding)}"

    def _raise(self, result: str, inputs: str, values: Sequence[Any]) -> NoReturn:
        if self.is_operation:
            raise FloatingPointFault(result + inputs)
        # Of several processes each would put host data, and what is closed over, for itself.
        if self.rerun is not None and self.alone:
            try:
                self.rerun(values)
            except FloatingPointFault as inner:
                if not inputs:
                    raise
                raise FloatingPointFault(f"{inner}{inputs}") from inner
        origin = find_origin(self.program, self.avals, values, self.nans, self.infs)
        raise FloatingPointFault(f"{result}; {origin}{inputs}" if origin else result + inputs)


def _fault(value: Any, nans: bool, infs: bool) -> str:
    """Returns what an array, or host data, holds; of one of several processes the parts here."""
    if type(value) is Array and not value.is_fully_addressable:
        parts = (_host_fault(buffer.to_host(), nans, infs) for buffer in value._live())
        return next(filter(None, parts), "")
    return _host_fault(value._printed() if type(value) is Array else np.asarray(value), nans, infs)


def _host_fault(host: npt.NDArray[Any], nans: bool, infs: bool) -> str:
    if host.dtype.kind not in "fc":
        if not host.dtype.name.startswith(("bfloat", "float")):
            return ""
        host = host.astype(np.float32)
    if nans and np.isnan(host).any():
        return "nan"
    return "inf" if infs and np.isinf(host).any() else ""
