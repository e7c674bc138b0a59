"""`WrappedExecutable`: the base of loaded executables that launch another one their own way."""

from __future__ import annotations

from collections.abc import Sequence

from plugrt.interface import Client, Device, Executable, LoadedExecutable


class WrappedExecutable(LoadedExecutable):
    """A loaded executable that is another one in everything but `execute`."""

    __slots__ = ("_loaded",)

    def __init__(self, loaded: LoadedExecutable) -> None:
        self._loaded = loaded

    @property
    def client(self) -> Client:
        return self._loaded.client

    @property
    def executable(self) -> Executable:
        return self._loaded.executable

    @property
    def addressable_devices(self) -> Sequence[Device]:
        return self._loaded.addressable_devices

    def delete(self) -> None:
        self._loaded.delete()

    def is_deleted(self) -> bool:
        return self._loaded.is_deleted()
