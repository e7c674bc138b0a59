"""`ServedProgram`: a program of a client, compiled, and its description for the client."""

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
    """An executable, shared by the sessions whose programs are equal."""

    def __init__(self, client: Client, program: Program, options: CompileOptions) -> None:
        self.loaded: LoadedExecutable = client.compile(program, options)
        self.launch: Callable[..., Sequence[Any]] = self.loaded.execute
        if program.callbacks:
            self.launch = self.launch_calling
        self.callbacks = program.callbacks
        """The functions that it calls, which live as long as its launches."""
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
        """Launches a program that calls functions, and keeps these until it has ended.

        Without results, which a client could wait for, it has ended on return.
        """
        results, wait = self.loaded.execute_with_wait(arguments, options)
        for part in results[-1] if results else ():
            part.ready_event().on_ready(partial(_keep, self.callbacks))
        if not results:
            wait()
        return results

    def ask(self, method: str) -> Any:
        """Returns what a method of `Executable` returns, in a form that can be sent."""
        found = getattr(self.loaded.executable, method)()
        if isinstance(found, MemoryAnalysis):
            return asdict(found)
        if isinstance(found, Program):
            return [found.code, found.format, found.name]
        return found


def _keep(*_: object) -> None:
    """Does nothing; whoever is to call it keeps its arguments."""


def _ask(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except Unimplemented:
        return None


def _read(program: Program, inputs: Any, donated: Any, partitions: int) -> tuple[Any, Any]:
    """Returns the parameters' types and which are donated, from the program where unknown.

    A program for several partitions states the types of whole arrays: they stay unknown.
    """
    if program.format != "mlir":
        return inputs, donated
    from plugrt.programs.parsing import parse_program
    from plugrt.stablehlo.entry_attributes import donated_parameters

    try:
        module, types, _ = parse_program(program)
    except PlugrtError:  # the backend reads it: what cannot be read here stays unknown
        return inputs, donated
    if inputs is None and partitions == 1:
        inputs = types
    return inputs, donated_parameters(module) if donated is None else donated


def read_options(plain: Mapping[str, Any]) -> CompileOptions:
    """Returns the options that a client sent; raises `PlugrtError` for others than there are."""
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in plain.items()}
    rows = given.get("device_assignment")
    if rows is not None:
        given["device_assignment"] = DeviceAssignment(tuple(map(tuple, rows)))
    return CompileOptions(**given)
