"""`ProcessCopies`: arrays copied to devices of other processes, by jaxlib's transfer server."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrt.errors import FailedPrecondition, InvalidArgument, Unimplemented
from plugrt.interface import Device, OptionValue, TensorType
from plugrt_cpu import adapter
from plugrt_cpu.buffer import CpuBuffer
from plugrt_cpu.device import CpuDevice, Place
from plugrt_cpu.errors import JAXLIB_ERRORS, translate
from plugrt_cpu.types import array_type, is_sub_byte

if TYPE_CHECKING:
    from plugrt.plugins.coordination import Connection

SETTING = "JAX_CROSS_HOST_TRANSFER_SOCKET_ADDRESS"
OPTIONS = ("transfer_address", "transport_addresses", "transfer_timeout", "transfer_size")
_CONNECTIONS = 4
_LISTENS = "plugrt/cpu/transfers/{}"


class ProcessCopies:
    """This process's part in copies from device to device between processes.

    ``factory`` is an argument of jaxlib's client. Raises `InvalidArgument` for an address that is
    not ``host:port`` or cannot be listened at.
    """

    def __init__(self, options: Mapping[str, OptionValue], distributed: Connection) -> None:
        self._distributed = distributed
        address = _find_port(str(options["transfer_address"]))
        host = address.rpartition(":")[0]
        given = str(options.get("transport_addresses", ""))
        transports = given.split(",") if given else [f"{host}:0"] * _CONNECTIONS
        self.factory = adapter.make_transfer_factory(
            distributed.client,
            socket_address=address,
            transport_addresses=transports,
            cross_host_transfer_timeout_seconds=options.get("transfer_timeout", 60),
            transfer_size=options.get("transfer_size", 2**28),
        )
        distributed.put(_LISTENS.format(distributed.process_id), address.encode())
        self._listening = {distributed.process_id}
        # jaxlib numbers copies in each process: all processes must begin them in one order.
        self._lock = threading.Lock()

    def copy(
        self,
        tensor_type: TensorType,
        copies: Sequence[tuple[CpuDevice, CpuDevice]],
        buffers: Sequence[CpuBuffer],
        memory_kind: str | None,
    ) -> list[CpuBuffer]:
        """Implements `plugrt.interface.Client.copy_between_processes`."""
        if is_sub_byte(tensor_type.dtype):
            raise Unimplemented(
                f"copies of {tensor_type} between processes: jaxlib's transfer server hangs with "
                "dtypes of less than a byte; convert it to int8 for the copy"
            )
        for process in {d.process_index for pair in copies for d in pair} - self._listening:
            self._require_listening(process)
        _, aval = array_type(tensor_type.shape, tensor_type.dtype)
        held, made = iter(buffers), []
        with self._lock:
            for source, target in copies:
                place = target.memory(memory_kind).place if memory_kind else target.place
                if source.is_addressable:
                    buffer = next(held)
                    if buffer.device is not source or buffer.type != tensor_type:
                        raise InvalidArgument(
                            f"{buffer!r} was given for a copy of {tensor_type} from {source!r}"
                        )
                    raw = buffer.raw
                else:
                    raw = adapter.make_absent(aval, source.place.sharding)
                # Workaround for jaxlib-empty-copy
                if not math.prod(tensor_type.shape):
                    arrived = self._put_empty(tensor_type, aval, target, place)
                else:
                    arrived = _copy(raw, place)
                if target.is_addressable:
                    made.append(CpuBuffer(arrived, tensor_type, place))
        return made

    def _put_empty(self, type: TensorType, aval: Any, target: CpuDevice, place: Place) -> Any:
        """Returns an array without elements; jaxlib 0.10 closes the connection for such a copy."""
        if not target.is_addressable:
            return None
        empty = np.empty(type.shape, type.dtype)
        return adapter.put(empty, aval, place.sharding, target.raw, adapter.ONLY_DURING_CALL)

    def _require_listening(self, process: int) -> None:
        if self._distributed.try_get(_LISTENS.format(process)) is None:
            raise FailedPrecondition(
                f"process {process} was started without {SETTING}, so that no array can be copied "
                f"to or from its devices; process {self._distributed.process_id} has it: set it "
                "for all processes"
            )
        self._listening.add(process)


def not_set_up(type: TensorType, copies: Sequence[tuple[Device, Device]]) -> FailedPrecondition:
    """Returns the error of copies if the setting was missing when the client started."""
    return FailedPrecondition(
        f"copies of {type} from device to device between processes, "
        f"{', '.join(f'{a!r} to {b!r}' for a, b in copies)}, need a server in each: set {SETTING} "
        "for all of them before they start, to an address of their machine and port 0, such as "
        "127.0.0.1:0, and call plugrt.distributed.initialize"
    )


def _copy(raw: Any, place: Place) -> Any:
    try:
        return adapter.copy(raw, place.raw_devices, place.sharding)
    except JAXLIB_ERRORS as error:
        raise translate(error) from error


def _find_port(address: str) -> str:
    """Returns an address with a port: jaxlib would send port 0 to the other processes, and wait.

    Raises if nothing can listen there, which jaxlib does not report to the other processes either.
    """
    import socket  # not needed in a single process

    host, _, port = address.rpartition(":")
    fault = f"{SETTING}={address!r}"
    if not host or not port.isdecimal() or int(port) >= 2**16:
        raise InvalidArgument(
            f"{fault} is not of the form host:port, such as 127.0.0.1:0 or [::1]:0"
        )
    try:
        [family, _, _, _, place], *_ = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_STREAM
        )
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind(place)
            return f"{host}:{probe.getsockname()[1]}"
    except OSError as error:
        raise InvalidArgument(
            f"{fault}: this process cannot listen there ({error.strerror or error}); each process "
            "needs an address of its machine and a port of its own, and port 0 takes a free one"
        ) from error
