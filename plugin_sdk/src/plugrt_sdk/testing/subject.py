"""`Subject`: the client under test, with helper methods for all checks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import PlugrtError
from plugrt.interface import (
    Buffer,
    Capabilities,
    Client,
    CompileOptions,
    DeviceAssignment,
    LoadedExecutable,
    Program,
)

Array = npt.NDArray[Any]

ONE: Array = np.array([1, 2, 3], np.float32)
"""The argument of the programs that add."""


class Subject:
    """A client, made when a check first uses it."""

    def __init__(self, factory: Callable[[], Client], declared: Capabilities | None = None) -> None:
        self.make_client = factory
        self._declared = declared

    @cached_property
    def client(self) -> Client:
        """The client that the checks share."""
        return self.make_client()

    @property
    def declared(self) -> Capabilities:
        """The capabilities that the client is tested against."""
        return self._declared or self.client.capabilities

    def put(self, array: Any, device: int = 0) -> Buffer:
        """Puts an array on the device of that place in ``client.devices()``."""
        return self.client.buffer_from_host(np.asarray(array), self.client.devices()[device])

    def compile(self, text: str, **options: Any) -> LoadedExecutable:
        """Compiles a program, handed over as a portable artifact: the form that hosts choose."""
        from plugrt.programs.parsing import convert_for_client  # 0.2 s to import

        program = convert_for_client(Program(text.encode()), self.client)
        return self.client.compile(program, CompileOptions(**options))

    def compile_text(self, text: str, **options: Any) -> LoadedExecutable:
        """Compiles a program without conversion, the only form for programs with Shardy's
        shardings.
        """
        return self.client.compile(Program(text.encode()), CompileOptions(**options))

    def compile_for(self, text: str, *devices: int, **options: Any) -> LoadedExecutable:
        """Compiles a program for replicas on the devices of these places."""
        ids = tuple((self.client.devices()[i].id,) for i in devices)
        return self.compile(
            text, num_replicas=len(ids), device_assignment=DeviceAssignment(ids), **options
        )

    def run(self, text: str, *arrays: Any) -> list[Array]:
        """Runs a program on the first device, with these arguments; returns its results."""
        results = self.compile(text).execute([(self.put(array),) for array in arrays])
        return [buffer.to_host() for [buffer] in results]

    def check_declared(
        self, capability: str, step: Callable[[], None], *refusals: type[Exception]
    ) -> None:
        """Makes a step, which must work if the capability is declared, and must be refused if not.

        ``refusals`` are the errors that refuse it: `Unimplemented`, or what else is named.
        """
        if getattr(self.declared, capability):
            step()
            return
        try:
            step()
        except refusals:
            return
        except PlugrtError as error:
            wanted = " or ".join(kind.__name__ for kind in refusals)
            raise AssertionError(
                f"{capability} is not declared, and is refused with {type(error).__name__} "
                f"instead of {wanted}: {error}"
            ) from error
        raise AssertionError(f"{capability} works: declare it in the client's capabilities")
