"""`SavesPrograms`: executables that are saved as their program, and compiled again when loaded."""

from __future__ import annotations

from plugrt.interface import CompileOptions, Program
from plugrt_sdk.backend import Backend
from plugrt_sdk.compiled import Compiled, Launch


class SavesPrograms(Backend):
    """A backend that compiles quickly: it supports serialisation, but saves no compiled code.

    The SDK stores the program and the options with each executable, and checks platform and version
    when it is loaded.
    """

    def serialize(self, compiled: Compiled) -> bytes:
        return b""

    def deserialize(self, content: bytes, program: Program, options: CompileOptions) -> Launch:
        return self.compile(program, options)
