"""`start`: checks the cpu plugin's create options and starts a client."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from plugrt.base.xla_environment import reserve_threads
from plugrt.errors import AlreadyExists, FailedPrecondition, InvalidArgument
from plugrt.interface import OptionValue
from plugrt.settings.option_types import forced_cpu_devices
from plugrt_cpu import adapter
from plugrt_cpu.client import CpuClient
from plugrt_cpu.distributed.mpi_collectives import require_mpi, start_mpi
from plugrt_cpu.distributed.process_copies import OPTIONS, ProcessCopies
from plugrt_cpu.errors import JAXLIB_ERRORS, translate

if TYPE_CHECKING:
    from plugrt.plugins.coordination import Connection

COLLECTIVES = ("gloo", "mpi", "none")


def start(options: Mapping[str, OptionValue], distributed: Connection | None = None) -> CpuClient:
    """Returns a started client.

    ``options``: ``num_devices`` (int; absent: the number in XLA_FLAGS, else 1), ``asynchronous``
    (bool, default True), ``collectives`` (``gloo``, ``mpi`` or ``none``; only with ``distributed``;
    ``mpi`` for one device, launched synchronously). ``transfer_address`` (host:port; only with
    ``distributed``) is the address for other processes that copy arrays, together with the
    options of `process_copies`. ``distributed`` is None in a single process, else a
    `plugrt.plugins.coordination.Connection` whose ``client`` is jaxlib's. Raises `InvalidArgument`
    for an unknown option or a wrong value, `FailedPrecondition` for ``mpi`` without its library.
    """
    known = {"num_devices", "asynchronous", "collectives", *OPTIONS}
    if unknown := set(options) - known:
        raise InvalidArgument(
            f"the cpu plugin has no create option {sorted(unknown)}; it has {sorted(known)}"
        )
    asynchronous = options.get("asynchronous", True)
    if not isinstance(asynchronous, bool):
        raise InvalidArgument(f"option asynchronous must be a bool; got {asynchronous!r}")
    arguments: dict[str, Any] = {"asynchronous": asynchronous}
    if "num_devices" in options:
        arguments["num_devices"] = _count(options["num_devices"])
    collectives = options.get("collectives", "gloo")
    if collectives not in COLLECTIVES:
        raise InvalidArgument(
            f"option collectives must be one of {COLLECTIVES}; got {collectives!r}"
        )
    copies = None
    num_devices = arguments.get("num_devices") or forced_cpu_devices(os.environ) or 1
    if distributed is not None and collectives == "mpi":
        require_mpi(num_devices)
        arguments["asynchronous"] = asynchronous = False  # otherwise other threads call MPI
    try:
        if distributed is not None:
            _require_first(distributed)
            arguments |= {
                "distributed_client": distributed.client,
                "node_id": distributed.process_id,
                "num_nodes": distributed.num_processes,
                "collectives": _make_collectives(str(collectives), distributed),
            }
            if "transfer_address" in options:
                copies = ProcessCopies(options, distributed)
                arguments["transfer_server_factory"] = copies.factory
        with reserve_threads(num_devices):
            raw = adapter.make_client(**arguments)
        return CpuClient(raw, asynchronous, copies)
    except JAXLIB_ERRORS as error:
        raise translate(error) from error


def _require_first(distributed: Connection) -> None:
    """Refuses a second client in one run: jaxlib's first has sent its devices to the others."""
    try:
        distributed.put(f"plugrt/cpu/{distributed.process_id}", b"started")
    except AlreadyExists as error:
        raise FailedPrecondition(
            "it was started before in this run of several processes, and the others know its "
            "devices; after plugrt.clear_backends() call plugrt.distributed.shutdown() and "
            "initialize() in all of them, at another address"
        ) from error


def _make_collectives(implementation: str, distributed: Connection) -> Any:
    """Returns jaxlib's collectives; Gloo uses the loopback interface if the coordinator does."""
    if implementation == "mpi":
        return start_mpi()
    if implementation == "none":
        return None
    host = distributed.membership.address.rpartition(":")[0]
    loopback = host.startswith("127.") or host in ("localhost", "[::1]")
    return adapter.make_gloo_collectives(distributed.client, "127.0.0.1" if loopback else None)


def _count(value: OptionValue) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidArgument(f"option num_devices must be a whole number from 1; got {value!r}")
    return value
