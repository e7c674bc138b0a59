"""`ServedProgram`: a compiled program, and its description for clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from plugrt.errors import PlugrtError, Unimplemented
from plugrt.interface import (
    Client,
    CompileOptions,
    DeviceAssignment,
    ExecuteOptions,
    LoadedExecutable,
    MemoryAnalysis,
    Program,
)
from plugrt_remote import wire


class ServedProgram:
    """An executable, which sessions with equal programs share."""

    def __init__(self, client: Client, program: Program, options: CompileOptions) -> None:
        self.loaded: LoadedExecutable = client.compile(program, options)
        self.launch: Callable[..., Sequence[Any]] = self.loaded.execute
        if program.callbacks:
            self.launch = self.launch_calling
        self.callbacks = program.callbacks
        """The functions that the program calls; each launch refers to them until it has ended."""
        count = len(self.loaded.addressable_devices)
        self.sizes = [t.nbytes * count for t in self.loaded.executable.output_types]
        """The bytes of each result, on all devices."""
        self.size = sum(self.sizes)
        self.results = len(self.sizes)
        self.facts = self._describe(program)

    def _describe(self, program: Program) -> dict[str, Any]:
        executable = self.loaded.executable
        inputs = _ask(lambda: executable.input_types)
        donated: Any = _ask(lambda: executable.donated_parameters)
        if inputs is None or donated is None:
            inputs, donated = _read(program, inputs, donated, executable.num_partitions)
        return {
            "name": executable.name,
            "num_replicas": executable.num_replicas,
            "num_partitions": executable.num_partitions,
            "output_types": [wire.pack_type(t) for t in executable.output_types],
            "input_types": None if inputs is None else [wire.pack_type(t) for t in inputs],
            "output_memory_kinds": _ask(lambda: executable.output_memory_kinds),
            "parameter_memory_kinds": _ask(lambda: executable.parameter_memory_kinds),
            "output_shardings": _ask(executable.output_shardings),
            "parameter_shardings": _ask(executable.parameter_shardings),
            "devices": [device.id for device in self.loaded.addressable_devices],
            "donated": sorted(donated or ()),
        }

    def launch_calling(
        self, arguments: Sequence[Any], options: ExecuteOptions | None = None
    ) -> Sequence[Any]:
        """Launches a program that calls functions, and keeps the functions until the launch ends.

        Waits for the end if there are no results, since a client could not wait for it.
        """
        results, wait = self.loaded.execute_with_wait(arguments, options)
        for part in results[-1] if results else ():
            part.ready_event().on_ready(partial(_keep, self.callbacks))
        if not results:
            wait()
        return results

    def ask(self, method: str) -> Any:
        """Calls a method of `Executable`; returns its result as values that can be sent."""
        found = getattr(self.loaded.executable, method)()
        if isinstance(found, MemoryAnalysis):
            return asdict(found)
        if isinstance(found, Program):
            return [found.code, found.format, found.name]
        return found


def _keep(*_: object) -> None:
    """Does nothing: the event that calls it at its end keeps its arguments until then."""


def _ask(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except Unimplemented:
        return None


def _read(program: Program, inputs: Any, donated: Any, partitions: int) -> tuple[Any, Any]:
    """Returns the parameters' types and the donated ones, read from the program if unknown.

    The types stay unknown for several partitions: the program then has the types of whole arrays.
    """
    if program.format != "mlir":
        return inputs, donated
    from plugrt.programs.parsing import parse_program
    from plugrt.stablehlo.entry_attributes import donated_parameters

    try:
        module, types, _ = parse_program(program)
    except PlugrtError:  # the backend could read it
        return inputs, donated
    if inputs is None and partitions == 1:
        inputs = types
    return inputs, donated_parameters(module) if donated is None else donated


def read_options(plain: Mapping[str, Any]) -> CompileOptions:
    """Returns the options that a client sent.

    Raises `PlugrtError` for a wrong value, and `TypeError` for an unknown option.
    """
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in plain.items()}
    rows = given.get("device_assignment")
    if rows is not None:
        given["device_assignment"] = DeviceAssignment(tuple(map(tuple, rows)))
    return CompileOptions(**given)
