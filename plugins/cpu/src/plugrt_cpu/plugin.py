"""`CpuPlugin`: the plugin object named ``cpu`` that the entry point offers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from plugrt.interface import Client, OptionValue
from plugrt.plugins.plugin import Plugin

if TYPE_CHECKING:
    from plugrt.plugins.coordination import Connection
    from plugrt.plugins.plugin import LoweringRule
    from plugrt.settings.declarations import Config


class CpuPlugin(Plugin):
    """The CPU of this machine, through the XLA client inside jaxlib."""

    name = "cpu"
    priority = 0
    conformance_options: Mapping[str, OptionValue] = MappingProxyType({"num_devices": 4})

    def client_options(self, config: Config) -> dict[str, OptionValue]:
        """Returns the create options of `plugrt_cpu.create_client.start`."""
        options: dict[str, OptionValue] = {
            "asynchronous": config.cpu_enable_async_dispatch,
            "collectives": config.cpu_collectives_implementation,
        }
        if config.cross_host_transfer_socket_address is not None:
            options |= {
                "transfer_address": config.cross_host_transfer_socket_address,
                "transport_addresses": ",".join(config.cross_host_transport_addresses),
                "transfer_timeout": config.cross_host_transfer_timeout_seconds,
                "transfer_size": config.cross_host_transfer_transfer_size,
            }
        if config.num_cpu_devices is not None:
            options["num_devices"] = config.num_cpu_devices
        return options

    def create_client(
        self, options: Mapping[str, OptionValue], distributed: Connection | None = None
    ) -> Client:
        """Starts a client; raises `PluginIncompatible` when jaxlib does not fit."""
        from plugrt_cpu.create_client import start  # imports jaxlib

        return start(options, distributed)

    def lowerings(self) -> Mapping[str, LoweringRule]:
        """Returns the lowerings of `plugrt.array_api.linalg`: calls of LAPACK."""
        from plugrt_cpu.lapack_lowerings import LOWERINGS

        return LOWERINGS


plugin = CpuPlugin()
"""The object that the entry point ``plugrt.plugins`` names."""
