"""`TpuPlugin`: the plugin object named ``tpu`` that the entry point offers.

It is imported wherever a backend is chosen automatically, TPU or not, so this module imports only
what `probe` needs; functions import the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from plugrt.errors import InvalidArgument, PjrtError
from plugrt.interface import OptionValue, Topology
from plugrt.plugins.coordination import Connection
from plugrt.plugins.library import LibraryPlugin, named_library
from plugrt.plugins.plugin import Availability
from plugrt.settings.declarations import config
from plugrt_tpu import hardware

Options = Mapping[str, OptionValue]


class TpuPlugin(LibraryPlugin):
    """The TPUs of this machine, through the library libtpu."""

    exclusive = True
    topology_names = ("v5e:2x2", "v4:2x2x1", "v6e-4")
    waits_for = (
        "libtpu waits for every host of the slice (does the program run on all of them?), and in "
        "Google's cloud for its metadata server; TPU_STDERR_LOG_LEVEL=0 shows what it does"
    )

    def __init__(self, root: str | Path = "/") -> None:
        super().__init__("tpu", "libtpu.so", priority=300)
        self._root = root

    def probe(self) -> Availability:
        """Available if chips or accelerator files of a Google machine are seen.

        Under JAX_FORCE_TPU_INIT always: libtpu itself then reports what is missing. Raises
        `PluginBroken` where TPU_LIBRARY_PATH names no file, whatever the machine has.
        """
        named_library("tpu_library_path")
        seen = hardware.detect(self._root)
        if seen.is_tpu_machine:
            return Availability.yes(str(seen))
        if config.force_tpu_init:
            return Availability.yes(f"JAX_FORCE_TPU_INIT is set, although there is {seen}")
        return Availability.no(
            str(seen),
            "JAX_FORCE_TPU_INIT=1 tries all the same; to compile for a TPU none is needed: "
            'plugrt.topology("tpu:v5e:2x2")',
        )

    def library(self) -> str:
        """Returns the path of libtpu: `plugrt_tpu.library.find_library`."""
        from plugrt_tpu import library

        return library.find_library()

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Sets the variables that libtpu needs, and explains its errors."""
        from plugrt_tpu import environment, library

        with environment.set_libtpu_variables(hardware.detect(self._root)):
            try:
                yield
            except PjrtError as error:
                explained = library.explain(error, self._root)
                if explained is error:
                    raise
                raise explained from error

    def process_options(self, distributed: Connection) -> dict[str, OptionValue]:
        """Returns none: libtpu finds the other hosts of its slice by itself."""
        return {}

    def create_topology(self, name: str, options: Options) -> Topology:
        """Returns TPUs to compile for; needs none. `plugrt_tpu.topologies.GRAMMAR` has the names.

        Raises `InvalidArgument` for a name or an option that libtpu does not know.
        """
        from plugrt_tpu import topologies

        ready = topologies.library_options(options)
        asked = topologies.library_name(name)
        try:
            return super().create_topology(asked, ready)
        except InvalidArgument as error:
            raise topologies.explain_refusal(asked, options, error) from error


plugin = TpuPlugin()
"""The object that the entry point ``plugrt.plugins`` names."""
