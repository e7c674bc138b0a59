"""What plugrt finds: the plugin object named ``cuda``."""

from __future__ import annotations

from plugrt.plugins.library import LibraryPlugin
from plugrt.plugins.plugin import Availability
from plugrt_cuda import hardware


class CudaPlugin(LibraryPlugin):
    """The NVIDIA GPUs of this machine, through a PJRT library for CUDA."""

    def __init__(self) -> None:
        super().__init__("cuda", "xla_cuda_plugin.so", priority=500)

    def probe(self) -> Availability:
        """Available if the driver shows itself."""
        return hardware.look()


plugin = CudaPlugin()
"""The object that the entry point ``plugrt.plugins`` names."""
