"""A backend in Python whose devices belong to several processes, which use the key-value store.

Exported as a PJRT library it gets the store by the callbacks of ``PJRT_Client_Create``. The other
processes' data of a launch are read from it: slow, and enough to check that the processes find each
other.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import count
from typing import Any

import numpy as np

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.capi.client.create import KeyValueStore
from plugrt.interface import Client, CompileOptions, DeviceDescription, Program
from plugrt.plugins import LibraryPlugin
from plugrt.sharding import NamedSharding, PartitionSpec
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendClient, Launch
from plugrt_sdk.export import export_capsule
from support.processes import outcome

WAIT_MS = 60_000
DEVICES = 2
calls: Counter[str] = Counter()
"""The number of this process's calls of each method of the store."""
node: dict[str, int] = {}
"""The create options with this process's index."""


class SharedNumpy(NumpyBackend):
    """`DEVICES` devices of each process; every process computes the results of all."""

    platform = "shared"

    def __init__(self, store: KeyValueStore, node_id: int, num_nodes: int) -> None:
        super().__init__(DEVICES * num_nodes)
        self._store, self._me, self._nodes = store, node_id, num_nodes
        self._programs = count()
        self._put(f"shared/kind/{node_id}", f"NumPy of process {node_id}".encode())
        self._kinds = [self._get(f"shared/kind/{i}").decode() for i in range(num_nodes)]
        calls["try_get"] += 1
        assert store.try_get("shared/none") is None

    def _put(self, key: str, value: bytes) -> None:
        calls["put"] += 1
        self._store.put(key, value)

    def _get(self, key: str) -> bytes:
        calls["get"] += 1
        return self._store.get(key, WAIT_MS)

    def devices(self) -> Sequence[Any]:
        return [
            DeviceDescription(i, i // DEVICES, self._kinds[i // DEVICES])
            for i in range(DEVICES * self._nodes)
        ]

    def process_index(self) -> int:
        return self._me

    def donated(self, program: Program, options: CompileOptions) -> Collection[int]:
        return ()

    def compile(self, program: Program, options: CompileOptions) -> Launch:
        launch_all = super().compile(program, options)
        assert options.device_assignment is not None
        owners = [i // DEVICES for i in options.device_assignment.flat]
        if set(owners) == {self._me}:
            return launch_all
        number, launches = next(self._programs), count()

        def launch(arguments: Sequence[Sequence[Any]], consumed: Collection[int] = ()) -> Any:
            key = f"shared/launch/{number}/{next(launches)}/{{}}"
            content = io.BytesIO()
            np.savez(content, *(shard for shards in arguments for shard in shards))
            self._put(key.format(self._me), content.getvalue())
            held = {
                i: iter(np.load(io.BytesIO(self._get(key.format(i)))).values())
                for i in sorted(set(owners))
            }
            # In each process the shards of an argument are in the order of its devices.
            whole = [[next(held[owner]) for owner in owners] for _ in arguments]
            results = launch_all(whole)
            mine = [p for p, owner in enumerate(owners) if owner == self._me]
            for shards in results:
                for p, shard in enumerate(shards):
                    if p not in mine:
                        self._memory.remove(shard)
            return [[shards[p] for p in mine] for shards in results]

        return launch


def make(node_id: int = 0, num_nodes: int = 1, kv_store: KeyValueStore | None = None) -> Client:
    node.update(node_id=node_id, num_nodes=num_nodes)
    assert kv_store is not None
    return BackendClient(SharedNumpy(kv_store, node_id, num_nodes))


def make_alone() -> Client:
    return BackendClient(NumpyBackend(DEVICES))


def offer(name: str, factory: Any) -> None:
    """Registers the library that exports a backend."""
    table = export_capsule(factory, platform=name)
    plugrt.plugins.register(LibraryPlugin(name, c_api=table))


def count_store_calls() -> Counter[str]:
    """Returns the counts of calls of this process's connection, the store of its libraries."""
    from plugrt.distributed.initialization import current_run

    run = current_run()
    assert run is not None
    found: Counter[str] = Counter()
    for name in ("get", "try_get", "put"):
        setattr(run.connection, name, _counted(getattr(run.connection, name), name, found))
    return found


def _counted(real: Any, name: str, found: Counter[str]) -> Any:
    def call(key: str, *rest: Any) -> Any:
        if key.startswith("shared/"):
            found[name] += 1
        return real(key, *rest)

    return call


def compute() -> dict[str, Any]:
    """Starts the exported backend, computes over its devices in all processes, returns results."""
    offer("shared", make)
    plugrt.distributed.initialize(initialization_timeout=60)
    asked = count_store_calls()
    devices = plugrt.devices()
    found: dict[str, Any] = {
        "devices": [(d.id, d.process_index, d.kind) for d in devices],
        "local": [d.id for d in plugrt.local_devices()],
        "indices": [plugrt.process_index(), plugrt.process_count()],
        "node": dict(node),
        "started": (dict(calls), dict(asked)),
    }
    me = plugrt.process_index()
    mesh = plugrt.make_mesh((len(devices),), ("x",))
    rows, whole = NamedSharding(mesh, PartitionSpec("x")), NamedSharding(mesh, PartitionSpec())
    x = plugrt.make_array_from_process_local_data(rows, np.float32([10 * me + 1, 10 * me + 2]))
    total = plugrt.jit(lambda v: xp.sum(v * v), out_shardings=whole)
    found["total"] = [float(np.asarray(total(x))) for _ in range(2)]
    mapped = plugrt.pmap(lambda v: (lax.psum(v, "i"), lax.axis_index("i")), "i")
    sums, index = mapped(np.int32([me, me + 5]))
    found["sums"] = [np.asarray(s.data).ravel().tolist() for s in sums.addressable_shards]
    found["index"] = [np.asarray(s.data).ravel().tolist() for s in index.addressable_shards]
    found["alone"] = np.asarray(plugrt.jit(lambda v: v + 1)(np.arange(2))).tolist()
    found["ended"] = (dict(calls), dict(asked))
    plugrt.distributed.shutdown()
    return found


def start_unaware() -> dict[str, Any]:
    """Returns the error of starting libraries that ignore both the store and the node's options."""
    offer("alone", make_alone)
    plugrt.distributed.initialize(initialization_timeout=60)
    asked = count_store_calls()
    told = outcome(plugrt.devices)
    plugrt.distributed.shutdown()
    return {"told": told, "asked": dict(asked)}
