"""`LibraryPlugin`: a plugin for a PJRT library, given by its path and its create options."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import TYPE_CHECKING

from plugrt.base.files import names_of, why_no_file
from plugrt.base.xla_environment import set_variables
from plugrt.errors import PluginBroken, RegistrationError
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Client, OptionValue
from plugrt.lifetime.interruptions import scope
from plugrt.plugins import vendors
from plugrt.plugins.plugin import FLAG, Availability, Declared, Plugin, find_wrong_type
from plugrt.settings.declarations import Config, config

if TYPE_CHECKING:
    from plugrt.capi.library.stream_copies import StreamCopies
    from plugrt.capi.loading.library import Library
    from plugrt.capi.probing.trial_computation import ProbeResult
    from plugrt.interface import Topology
    from plugrt.plugins.coordination import Connection


@scope
def set_start_variables(library: str) -> Iterator[None]:
    """Sets a library's `vendors.START_VARIABLES` on a machine without its device."""
    names = sorted(names_of(library) & vendors.START_VARIABLES.keys())
    wanted = vendors.START_VARIABLES[names[0]] if names else None
    if wanted is None or any(h.label == wanted.device for h in vendors.hardware_seen()):
        yield
        return
    with set_variables(wanted.variables):
        yield


Options = Mapping[str, OptionValue]
ALONE = {
    option.env: None
    for name, option in config.declared().items()
    if name.startswith("coordinator_") or name in ("num_processes", "process_id")
}
"""Variables that a child without the other processes of a program must not have."""


def named_library(setting: str) -> str | None:
    """Returns the path of the library that a setting of `plugrt.config` names, None if unset.

    Raises `PluginBroken` if it is no file. (JAX warns and uses another library.)
    """
    option = config.declared()[setting]
    named: str | None = config.lookup(option)[0]
    if named and (fault := why_no_file(named)):
        raise PluginBroken(
            f"{option.env} names {named}, which {fault}; correct the path, or unset the "
            "variable to use an installed library"
        )
    return os.path.abspath(named) if named else named


class LibraryPlugin(Plugin):
    """Offers a PJRT library: a shared library that exports ``GetPjrtApi``, or a table of one.

    Give ``library_path``, the path of the file, or ``c_api``, a capsule named ``pjrt_c_api`` with
    the address of a ``PJRT_Api`` in this process; as in JAX, one of the two
    (`RegistrationError`). ``options`` are its create options, or a function that returns them,
    called when a client is about to be started; options from the settings take precedence. Subclass
    it to compute the path (override `library`), to probe for hardware, or to prepare the
    environment. An argument that is not given is the attribute of the class. Raises
    `RegistrationError` for one of another type.
    """

    exclusive: bool = False
    """Whether one process at a time can use the devices: a trial then starts no client."""
    library_path: str = ""
    c_api: object | None = None
    """The capsule of a function table in this process; None for a library in a file."""
    options: Options | Callable[[], Options] | None = None

    _declared = MappingProxyType({
        **Plugin._declared,
        "exclusive": FLAG,
        "library_path": Declared("a path", lambda value: isinstance(value, str | os.PathLike)),
        "options": Declared(
            "a mapping of names to values, or a function that returns one",
            lambda value: value is None or callable(value) or isinstance(value, Mapping),
        ),
    })  # fmt: skip

    @with_argument_errors
    def __init__(
        self,
        name: str | None = None,
        library_path: str | os.PathLike[str] | None = None,
        options: Options | Callable[[], Options] | None = None,
        *,
        c_api: object | None = None,
        priority: int | None = None,
        platform: str | None = None,
        aliases: Sequence[str] | None = None,
        experimental: bool | None = None,
    ) -> None:
        arguments = {"name": name, "library_path": library_path, "options": options,
                     "priority": priority, "platform": platform, "aliases": aliases,
                     "experimental": experimental}  # fmt: skip
        given: dict[str, object] = {
            key: value for key, value in arguments.items() if value is not None
        }
        self.name = name if isinstance(name, str) else self.name  # for the message
        if fault := find_wrong_type(self, given):
            raise RegistrationError(f"{type(self).__name__}: {fault}")
        if aliases is not None:
            given["aliases"] = tuple(aliases)
        if not (library_path or c_api is not None):
            given.pop("library_path", None)
        else:
            given |= {"library_path": library_path or "", "c_api": c_api}
        vars(self).update(given)
        path = self.library_path = os.fspath(self.library_path)
        if bool(path) == (self.c_api is not None):
            raise RegistrationError(
                f"LibraryPlugin({self.name!r}) was given {'both' if path else 'neither'} "
                f"library_path {'and' if path else 'nor'} c_api; give one of them"
            )

    def library(self) -> str:
        """Returns the library's path; empty for a function table in this process.

        A subclass that finds none raises `PluginUnavailable`.
        """
        return self.library_path

    def probe(self) -> Availability:
        """Available if the library's file exists (the loader looks up a bare file name).

        Raises `PluginBroken` if it does not: the path was named explicitly.
        """
        if self.c_api is not None:
            return Availability.yes("its table is in this process")
        path = self.library()
        if os.sep in path and (fault := why_no_file(path)):
            raise PluginBroken(f"the library {path} {fault}; correct its path")
        return Availability.yes(f"the library is {path}")

    def client_options(self, config: Config) -> dict[str, OptionValue]:
        """Returns the plugin's own create options, and the options that the settings add."""
        options: object = self.options() if callable(self.options) else self.options
        if not isinstance(options, Mapping | None):
            raise PluginBroken(f"its options() returned {options!r:.60}, which is not a mapping")
        found = dict(options or {})
        for name in self._names():
            found |= vendors.gpu_options(name, config)
        return found | self.configured_options(config)

    def configured_options(self, config: Config) -> dict[str, OptionValue]:
        """Returns the create options that the user set: for every library, and for this one."""
        found = dict(config.pjrt_client_create_options)
        for name in self._names():
            found |= config.client_create_options.get(name, {})
        return found

    def _names(self) -> tuple[str, ...]:
        return (*self.aliases, self.platform, self.name)

    def open(self) -> Library:
        """Returns the loaded library; a missing shared library is named with its package."""
        import plugrt.capi as capi

        if self.c_api is not None:
            return capi.library_in(self.c_api, self.name)
        return capi.load_library(self.library(), hints=vendors.SHARED_LIBRARIES)

    def starting(self) -> AbstractContextManager[None]:
        """Returns a context manager for probing and starting: sets the variables it needs."""
        return set_start_variables(self.library())

    def try_in_child(
        self,
        config: Config,
        seconds: float | None = None,
        *,
        options: Options | None = None,
        start: bool = True,
        trial: bool = False,
    ) -> ProbeResult:
        """Tries the library in a child process, waits for its end, and returns the result.

        The limit is ``seconds`` (None: PLUGRT_PROBE_SECONDS). A client is created with ``options``
        (None: `client_options`), but on GPUs without preallocation of memory, if the library has
        that option (`vendors.trial_options`). Without ``start`` the library is loaded and
        initialised, and no client is created; ``trial`` runs a small computation. The child has
        none of the variables that name a coordinator.
        """
        import plugrt.capi as capi
        from plugrt.capi.loading.elf import needed_by

        if self.c_api is not None:
            return capi.ProbeResult("ok")  # an address of this process is invalid in another
        if options is None:
            options = self.client_options(config)
        path = self.library()

        def attempt(options: Options) -> ProbeResult:
            return capi.probe_library(
                path, config.probe_seconds if seconds is None else seconds, start=start,
                trial=trial, options=options, hints=vendors.SHARED_LIBRARIES, env=ALONE,
            )  # fmt: skip

        names = (*self._names(), *names_of(path))
        frugal = vendors.trial_options(names, needed_by(path), options) if start else options
        with self.starting():
            tried = attempt(frugal)
            if frugal != options and tried.state != "ok" and "option" in tried.reason:
                tried = attempt(options)  # a library that does not know the option
        return tried

    def process_options(self, distributed: Connection) -> dict[str, OptionValue]:
        """Returns the create options with this process's index among several, as in JAX."""
        index = distributed.partition_index
        return {
            "node_id": distributed.process_id,
            "num_nodes": distributed.num_processes,
            **({} if index is None else {"partition_index": index}),
        }

    def stream_copies(self) -> StreamCopies | None:
        """Returns the copies between device and host memory on a program's stream.

        With it Python functions that programs call (`plugrt.pure_callback` and the like, and
        handlers of `plugrt.ffi`) work on devices whose memory the host cannot address: they get
        copies. None, the default, means that the plugin has none: such devices then refuse them.
        If the host can address the arrays, copies are unnecessary and cost time. Called when a
        client is started; the result is kept until the process ends.
        """
        return None

    def create_client(self, options: Options, distributed: Connection | None = None) -> Client:
        """Starts a client of the library; it finds other processes through ``distributed``."""
        import plugrt.capi as capi

        if distributed is not None:
            options = {**self.process_options(distributed), **options}
        with self.starting():
            return capi.create_client(
                self.open(), options, name=self.name, kv_store=distributed,
                copies=self.stream_copies(),
            )  # fmt: skip

    def create_topology(self, name: str, options: Options) -> Topology:
        """Returns the library's topology of that name, for compiling without the device."""
        import plugrt.capi as capi

        with self.starting():
            return capi.create_topology(self.open(), name, options)
