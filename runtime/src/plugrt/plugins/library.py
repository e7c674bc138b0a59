"""`LibraryPlugin`: a plugin for a PJRT library, from its path and its create options."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plugrt.config import Config, config
from plugrt.errors import PluginBroken
from plugrt.interface import Client, OptionValue, Topology
from plugrt.plugins import vendors
from plugrt.plugins.plugin import Availability, Plugin

if TYPE_CHECKING:
    from plugrt.capi.library import Library
    from plugrt.capi.probe import ProbeResult

Options = Mapping[str, OptionValue]


def named_library(setting: str) -> str | None:
    """Returns the library that a setting of `plugrt.config` names, None where it is unset.

    Raises `PluginBroken` where there is no such file. (JAX warns and uses another one.)
    """
    option = config.declared()[setting]
    named: str | None = config.lookup(option)[0]
    if named and not os.path.isfile(named):
        raise PluginBroken(
            f"{option.env} names {named}, which is not a file; correct the path, or unset the "
            "variable to use an installed library"
        )
    return named


class LibraryPlugin(Plugin):
    """Offers a shared library that exports ``GetPjrtApi``.

    ``options`` are its create options, or a function that returns them, called when a client is
    about to be started. JAX_PJRT_CLIENT_CREATE_OPTIONS is added to them and wins. Subclass it to
    compute the path (override `library`), to probe for hardware, or to prepare the environment.
    """

    def __init__(
        self,
        name: str,
        library_path: str | os.PathLike[str],
        options: Options | Callable[[], Options] | None = None,
        *,
        priority: int = 400,
        platform: str = "",
        aliases: Sequence[str] = (),
        experimental: bool = False,
    ) -> None:
        self.name, self.priority, self.platform = name, priority, platform
        self.aliases, self.experimental = tuple(aliases), experimental
        self.library_path = os.fspath(library_path)
        self._options = options

    def library(self) -> str:
        """Returns the path of the library; `PluginUnavailable` if a subclass finds none."""
        return self.library_path

    def probe(self) -> Availability:
        """Available if the library's file is there (a bare file name is left to the loader)."""
        path = self.library()
        if os.sep in path and not os.path.isfile(path):
            return Availability.no(f"the library {path} does not exist", "correct its path")
        return Availability.yes(f"the library is {path}")

    def client_options(self, config: Config) -> dict[str, OptionValue]:
        """Returns the plugin's own create options, and those that the configuration adds."""
        options = self._options() if callable(self._options) else self._options
        return {**(options or {}), **config.pjrt_client_create_options}

    def open(self) -> Library:
        """Returns the loaded library; a missing shared library is named with its package."""
        from plugrt import capi

        return capi.load_library(self.library(), hints=vendors.SHARED_LIBRARIES)

    def try_apart(self, config: Config, seconds: float = 20.0) -> ProbeResult:
        """Returns what the library does in a child process; this one cannot come to harm."""
        from plugrt import capi

        return capi.probe_library(
            self.library(), seconds, options=self.client_options(config),
            hints=vendors.SHARED_LIBRARIES,
        )  # fmt: skip

    def create_client(self, options: Options, distributed: Any | None = None) -> Client:
        """Starts a client of the library."""
        from plugrt import capi

        return capi.create_client(self.open(), options, name=self.name, kv_store=distributed)

    def create_topology(self, name: str, options: Options) -> Topology:
        """Returns the library's topology of that name, for compiling without the device."""
        from plugrt import capi

        return capi.create_topology(self.open(), name, options)


class TablePlugin(LibraryPlugin):
    """Offers a PJRT table that is in this process already, from a PyCapsule that holds it."""

    def __init__(self, name: str, capsule: object, options: Any = None, **more: Any) -> None:
        super().__init__(name, "", options, **more)
        self._capsule = capsule

    def probe(self) -> Availability:
        """Available: whoever made the table has loaded it."""
        return Availability.yes("its table is in this process")

    def open(self) -> Library:
        """Returns the library at the capsule's address."""
        import ctypes

        from plugrt.capi.library import library_at

        api = ctypes.pythonapi
        api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = (
            ctypes.c_char_p, [ctypes.py_object],
        )  # fmt: skip
        api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = (
            ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p],
        )  # fmt: skip
        capsule = self._capsule
        address = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
        return library_at(address, self.name)
