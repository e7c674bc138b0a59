"""What plugrt finds: the plugin object named ``tpu``."""

from __future__ import annotations

from plugrt.plugins.library import LibraryPlugin
from plugrt.plugins.plugin import Availability
from plugrt_tpu import hardware


class TpuPlugin(LibraryPlugin):
    """The TPUs of this machine, through the library libtpu."""

    def __init__(self) -> None:
        super().__init__("tpu", "libtpu.so", priority=300)

    def probe(self) -> Availability:
        """Available if chips or accelerator files of a Google machine are seen."""
        seen = hardware.look()
        return Availability.yes(str(seen)) if seen.is_tpu_machine else Availability.no(str(seen))


plugin = TpuPlugin()
"""The object that the entry point ``plugrt.plugins`` names."""
