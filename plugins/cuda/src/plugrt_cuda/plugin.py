"""`CudaPlugin`: the plugin object named ``cuda`` that the entry point offers.

It is imported wherever a backend is chosen automatically, GPU or not, so this module imports only
what `probe` needs; functions import the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from plugrt.errors import FailedPrecondition, PluginBroken
from plugrt.interface import Client, OptionValue, Topology
from plugrt.plugins.coordination import Connection
from plugrt.plugins.library import LibraryPlugin, named_library
from plugrt.plugins.plugin import Availability
from plugrt_cuda import hardware

if TYPE_CHECKING:
    from plugrt.capi.library.stream_copies import StreamCopies
    from plugrt.capi.loading.library import Library
    from plugrt.capi.probing.trial_computation import ProbeResult
    from plugrt.settings.declarations import Config
    from plugrt_cuda.nvidia_libraries import Loaded

Options = Mapping[str, OptionValue]
_NO_GPU = "No visible GPU devices"


def _explain_no_gpu(who: str, said: str) -> str:
    """Returns the reason of an error: the driver is installed, so the device is not just absent."""
    return (
        f"the NVIDIA driver is there but offers no GPU ({who} says: {said}); `nvidia-smi` shows "
        "whether it sees one, and a container must be started with access to the GPUs"
    )


class CudaPlugin(LibraryPlugin):
    """The NVIDIA GPUs of this machine, through a PJRT library for CUDA."""

    topology_names = ("h100", "a100:8")
    waits_for = "the driver starts the GPUs, which takes long for many, or without persistence mode"

    def __init__(self, root: str | Path = "/") -> None:
        super().__init__("cuda", "xla_cuda_plugin.so", priority=500)
        self._root = root
        self.components: dict[str, Loaded] = {}
        """NVIDIA's libraries by name: those loaded for the last client, and why others were not."""

    def probe(self) -> Availability:
        """Available if files of the NVIDIA driver exist.

        Raises `PluginBroken` where PLUGRT_CUDA_LIBRARY_PATH names no file.
        """
        named_library("cuda_library_path")
        return hardware.detect(self._root)

    def library(self) -> str:
        """Returns the path of the PJRT library: `plugrt_cuda.library.find_library`."""
        from plugrt_cuda import library

        return library.find_library(self._root).path

    def client_options(self, config: Config) -> dict[str, OptionValue]:
        """Returns the create options that JAX passes, and those that the configuration adds."""
        from plugrt_cuda import create_options

        return {**create_options.from_config(config), **self.configured_options(config)}

    def open(self) -> Library:
        """Returns the loaded PJRT library."""
        from plugrt.base.xla_environment import quiet_logging

        with quiet_logging():
            return super().open()

    def stream_copies(self) -> StreamCopies | None:
        """Returns the CUDA driver's copies; None without a driver that has them."""
        from plugrt_cuda import driver_copies

        return driver_copies.find_copies()

    def create_client(self, options: Options, distributed: Connection | None = None) -> Client:
        """Loads NVIDIA's libraries, checks their versions, and starts a client.

        Raises `PluginIncompatible` naming all libraries that are missing or too old, unless
        JAX_SKIP_CUDA_CONSTRAINTS_CHECK is set, and `PluginBroken` when the driver offers no GPU.
        """
        from plugrt.capi.client.create import check_options
        from plugrt_cuda import create_options, library

        check_options(options, create_options.OPTION_TYPES, self.name)
        found = library.find_library(self._root)
        self._prepare(found.cuda or _read_cuda_version(self), found.who, options)
        try:
            return super().create_client(options, distributed)
        except FailedPrecondition as error:
            if _NO_GPU not in error.message:
                raise
            raise PluginBroken(_explain_no_gpu(found.who, error.message)) from error

    def try_in_child(
        self,
        config: Config,
        seconds: float | None = None,
        *,
        options: Options | None = None,
        start: bool = True,
        trial: bool = False,
    ) -> ProbeResult:
        """Tries the library as every plugin does; ``broken`` when the driver offers no GPU."""
        from dataclasses import replace

        from plugrt_cuda import library

        tried = super().try_in_child(config, seconds, options=options, start=start, trial=trial)
        if _NO_GPU not in tried.reason:
            return tried
        reason = _explain_no_gpu(library.find_library(self._root).who, tried.reason)
        return replace(tried, state="broken", reason=reason)

    def _prepare(self, cuda: int, who: str, options: Options) -> None:
        """Loads NVIDIA's libraries for a version of CUDA, and checks that they fit."""
        from plugrt.settings.declarations import config
        from plugrt_cuda import driver, nvidia_libraries, versions

        self.components = nvidia_libraries.preload(cuda)
        if not config.skip_cuda_constraints_check:
            visible = options.get("visible_devices")
            versions.require(
                self.components, cuda, who,
                [
                    capability for index, capability in enumerate(driver.compute_capabilities())
                    if not isinstance(visible, list) or index in visible
                ],
            )  # fmt: skip

    def create_topology(self, name: str, options: Options) -> Topology:
        """Returns GPUs to compile for; needs none. `plugrt_cuda.topologies.GRAMMAR` has the names.

        Raises `InvalidArgument` for a name or a description that the library refuses.
        """
        from plugrt_cuda import topologies

        return super().create_topology(name, topologies.library_options(name, options))


def _read_cuda_version(plugin: CudaPlugin) -> int:
    """Returns the major version of CUDA that a library was built with, as it states it."""
    stated = plugin.open().attributes().get("cuda_version")
    return stated // 1000 if isinstance(stated, int) else 12


plugin = CudaPlugin()
"""The object that the entry point ``plugrt.plugins`` names."""
