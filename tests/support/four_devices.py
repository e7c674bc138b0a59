"""`FourDevices`: a client of four devices, whose PJRT library misbehaves on request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.capi import create_client, load_library
from plugrt.errors import DeletedBuffer, InvalidReply
from plugrt.interface import Client, CompileOptions
from support.broken_library import SILENT, BrokenLibrary, Control, misbehaviours
from support.xla_cpu import DONATED, add, library_path

H = np.arange(8, dtype=np.float32).reshape(4, 2)


class FourDevices:
    """The client, a sharding of rows over its devices, and the control of its library."""

    def __init__(self, folder: Path, name: str) -> None:
        real = library_path()
        assert real is not None
        path = BrokenLibrary(folder, real).path
        self.client: Client = create_client(load_library(path), {"cpu_device_count": 4}, name=name)
        self.control = Control(path)
        mesh = plugrt.sharding.Mesh(np.array(self.client.devices()), ("x",))
        self.rows = plugrt.sharding.NamedSharding(mesh, plugrt.sharding.PartitionSpec("x"))
        self.whole = plugrt.sharding.NamedSharding(mesh, plugrt.sharding.PartitionSpec())

    def close(self) -> None:
        plugrt.clear_caches()
        self.client.close()

    def put(self, value: Any = H) -> plugrt.Array:
        made: plugrt.Array = plugrt.device_put(value, self.rows)
        return made

    def misbehave(self, function: str, mode: int, skip: int = 0) -> None:
        """Makes a function misbehave, after that many correct calls."""
        [case] = [c for c in misbehaviours() if (c.function, c.mode) == (function, mode)]
        self.control.misbehave(case, skip)

    def calls_during(self, function: str, work: Callable[[], Any]) -> int:
        """Returns how often a function of the library is called meanwhile."""
        slot = next(case.slot for case in misbehaviours() if case.function == function)
        before = self.control.calls(slot)
        work()
        return self.control.calls(slot) - before

    def require_donation_without_results(self) -> None:
        """Asserts that launches without results delete donated arguments, on 1 and 4 devices."""
        kind = "tensor<4xf32>"
        host = np.zeros(4, np.float32)
        for count in (1, 4):
            loaded: Any = self.client.compile(
                add(kind, DONATED), CompileOptions(num_replicas=count)
            )
            devices = self.client.devices()[:count]

            def put(devices: Any = devices) -> Any:
                made = [self.client.buffer_from_host(host, device) for device in devices]
                return made[0] if len(made) == 1 else tuple(made)

            for launch in (loaded.execute, loaded.execute, loaded.launcher):
                launch([put(), put()])  # the first is checked, and later ones are not
                self.misbehave("LoadedExecutable_Execute", SILENT)
                given, kept = put(), put()
                with pytest.raises(InvalidReply, match=r"\(NULL\)"):
                    launch([given, kept])
                self.control.behave()
                with pytest.raises(DeletedBuffer, match="was donated to a launch of 'add'"):
                    launch([given, kept])
                launch([put(), kept])
                assert not any(buffer.is_deleted() for buffer in kept)
