"""`Faults`: a mutant's defects, as changes of the NumPy backend and of the SDK's classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from plugrt.interface import CompileOptions, ExecuteOptions, OptionValue, Program, Shards
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk.backend import Backend
from plugrt_sdk.buffer import BackendBuffer
from plugrt_sdk.client import BackendClient
from plugrt_sdk.device import BackendDevice, BackendMemory
from plugrt_sdk.executable import BackendExecutable
from plugrt_sdk.loaded_executable import BackendLoadedExecutable
from plugrt_sdk.plugin import BackendPlugin
from plugrt_sdk.topology import BackendTopology

Members = Mapping[str, Any]
"""Attributes and methods that replace a class's own."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults of a mutant of the NumPy backend.

    Each field replaces members of the class that it names; ``capabilities`` are fields of
    `plugrt.interface.Capabilities` that it declares differently. ``on_import`` is called when the
    plugin is loaded, ``on_start`` when a client is made.
    """

    plugin: Members = field(default_factory=dict)
    client: Members = field(default_factory=dict)
    device: Members = field(default_factory=dict)
    memory: Members = field(default_factory=dict)
    buffer: Members = field(default_factory=dict)
    result: Members = field(default_factory=dict)
    """Members of the buffers that launches return, besides ``buffer``."""
    loaded: Members = field(default_factory=dict)
    executable: Members = field(default_factory=dict)
    backend: Members = field(default_factory=dict)
    capabilities: Members = field(default_factory=dict)
    topology: Members = field(default_factory=dict)
    """Members of topologies; they need a ``backend`` with topologies."""
    devices: int = 1
    on_import: Callable[[], Any] = lambda: None
    on_start: Callable[[], Any] = lambda: None

    def plugin_of(self) -> BackendPlugin:
        """Returns the mutant; calls ``on_import`` now."""
        self.on_import()
        members = {
            "create_client": lambda plugin, *rest: self._create_client(*rest),
            "create_topology": lambda plugin, *rest: recast(
                BackendPlugin.create_topology(plugin, *rest), BackendTopology, self.topology
            ),
        }
        cls = type("MutantPlugin", (BackendPlugin,), {**members, **self.plugin})
        found: BackendPlugin = cls("mutant", self._make_backend)
        for name in {"name", "priority"} & set(self.plugin):  # set by the constructor
            setattr(found, name, self.plugin[name])
        return found

    def _make_backend(self, **options: Any) -> Backend:
        cls = type("MutantBackend", (NumpyBackend,), dict(self.backend))
        found: Backend = cls(**options)
        return found

    def _create_client(
        self, options: Mapping[str, OptionValue], distributed: Any | None = None
    ) -> BackendClient:
        self.on_start()
        backend = self._make_backend(num_devices=self.devices, **options)
        cls = type("MutantClient", (MutantClient,), dict(self.client))
        client: MutantClient = cls(backend)
        client.become(self)
        return client


class MutantClient(BackendClient):
    """A client that recasts its objects to subclasses with the mutant's members."""

    faults = Faults()

    def become(self, faults: Faults) -> None:
        """Applies the faults."""
        self.faults = faults
        self._capabilities = replace(self._capabilities, **faults.capabilities)
        for device in list(BackendClient.devices(self)):
            for memory in BackendDevice.memories(device):
                recast(memory, BackendMemory, faults.memory)
            recast(device, BackendDevice, faults.device)

    def buffer_from_host(self, *arguments: Any, **keywords: Any) -> BackendBuffer:
        buffer = super().buffer_from_host(*arguments, **keywords)
        return recast(buffer, BackendBuffer, self.faults.buffer)

    def compile(self, program: Program, options: CompileOptions) -> BackendLoadedExecutable:
        loaded = super().compile(program, options)
        recast(loaded.executable, BackendExecutable, self.faults.executable)
        members = {"execute": _execute, **self.faults.loaded}
        return recast(loaded, BackendLoadedExecutable, members)


def _execute(
    self: BackendLoadedExecutable,
    arguments: Sequence[Shards],
    options: ExecuteOptions | None = None,
) -> Sequence[Shards]:
    """Runs `BackendLoadedExecutable.execute`, and recasts its results."""
    results = BackendLoadedExecutable.execute(self, arguments, options)
    client = self.client
    assert isinstance(client, MutantClient)
    members = {**client.faults.buffer, **client.faults.result}
    for shards in results:
        for buffer in shards:
            recast(buffer, BackendBuffer, members)
    return results


execute = _execute
"""For mutants that change the arguments or the results of a launch."""


def recast(found: T, cls: type[Any], members: Members) -> T:
    """Recasts an object to a subclass with these members."""
    if members:
        found.__class__ = type(f"Mutant{cls.__name__}", (cls,), {"__slots__": (), **members})
    return found
