"""`BackendObject`: the base of the interface's classes."""

from __future__ import annotations

from typing import NoReturn

from plugrt.errors import Unimplemented


class BackendObject:
    """Mixin of the classes below, whose optional methods raise `Unimplemented`."""

    __slots__ = ()

    @property
    def backend_name(self) -> str:
        """The name of the backend for error messages: platform and class."""
        return f"{type(self).__module__.split('.')[0]}.{type(self).__name__}"

    def _unimplemented(self, what: str) -> NoReturn:
        raise Unimplemented(f"{what} is not implemented by the backend {self.backend_name}")
