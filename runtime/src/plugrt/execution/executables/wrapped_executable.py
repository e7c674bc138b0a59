"""`WrappedExecutable`: the base of loaded executables that launch another one their own way."""

from __future__ import annotations

from collections.abc import Sequence

from plugrt.interface import Client, Device, Executable, LoadedExecutable


class WrappedExecutable(LoadedExecutable):
    """A loaded executable that is another one in everything but `execute`."""

    __slots__ = ("_loaded", "addressable_devices", "client", "executable")

    addressable_devices: Sequence[Device]
    client: Client
    executable: Executable

    def __init__(self, loaded: LoadedExecutable) -> None:
        self._loaded = loaded
        self.addressable_devices = loaded.addressable_devices
        self.client = loaded.client
        self.executable = loaded.executable

    def delete(self) -> None:
        self._loaded.delete()

    def is_deleted(self) -> bool:
        return self._loaded.is_deleted()
