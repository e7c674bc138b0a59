"""Compares the host data that processes put, and the programs that they run."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from plugrt.callbacks.launch_watch import Watch
from plugrt.distributed.agreement import begin_comparison, require_agreement
from plugrt.errors import Internal, PjrtError
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.interface import Device, Program

_SHOWN = 4


def agree_on_data(host: npt.NDArray[np.generic], sharding: Sharding) -> None:
    """Raises `DistributedError` if processes put different data with a common sharding."""
    if sharding.is_fully_addressable:
        return
    content = np.ascontiguousarray(host)
    digest = hashlib.blake2b(content.view(np.uint8).data, digest_size=8).hexdigest()
    first = ", ".join(map(str, content.ravel()[:_SHOWN].tolist()))
    more = ", ..." if content.size > _SHOWN else ""
    require_agreement(
        f"device_put of {host.dtype}{[*host.shape]}",
        f"{{{first}{more}}} ({digest})",
        (device.process_index for device in sharding.devices),
        "Give device_put the same host data in all processes, or give "
        "plugrt.make_array_from_process_local_data the part of each process",
    )


def agree_on_parts(
    shape: Sequence[int], whole: Sequence[int], dtype: np.dtype[np.generic], sharding: Sharding
) -> None:
    """Raises `DistributedError` if the parts of processes imply different shapes of the whole.

    Calls in main threads are compared in their order. Other threads call in any order, so calls for
    the same whole are compared, and a call that other processes do not make times out.
    """
    if sharding.is_fully_addressable:
        return
    what = f"make_array_from_process_local_data of an array of {dtype}{[*whole]}"
    in_main = threading.current_thread() is threading.main_thread()
    cure = "or the global_shape, which makes a comparison unnecessary"
    require_agreement(
        what,
        "",
        (device.process_index for device in sharding.devices),
        "Without global_shape, each process computes the shape of the whole from its part: give "
        f"parts of the same size (drop a shorter last batch), {cure}",
        note=f"(the part of that process is {[*shape]})",
        perhaps=f"Without global_shape, {threading.current_thread().name!r} waits until the other "
        "processes make this call, with parts that imply the same shape, "
        f"{'in' if in_main else 'outside of'} their main thread: give parts of the same size, "
        f"{cure}",
        series="parts" if in_main else f"parts/{what}",
    )


class ProcessesWatch(Watch):
    """The first failure in one launch by several processes, which all raise it.

    The failed part continues with zeros, so that no other part waits for it. Before that, its
    process writes the failure to the key-value store. A process that does not need this part may
    end earlier. All processes make the launches of one name in the same order.
    """

    __slots__ = ("_notice",)

    def __init__(self, parts: int, name: str, processes: Sequence[int]) -> None:
        # Without `end_together`: the parts of other processes would wait in a collective.
        super().__init__(parts, finishes=math.inf)
        self._notice = begin_comparison(processes, f"launches of {name}")

    def note(self, failure: PjrtError) -> None:
        if self._notice is not None:
            self._notice.tell_failure(failure.message)
        super().note(failure)

    def look(self) -> None:
        if self._notice is None or self.failure is not None:
            return
        if told := self._notice.hear_failure():
            super().note(Internal(told))


def agree_on_program(program: Program, devices: Sequence[Device]) -> None:
    """Raises `DistributedError` if processes compile different programs for common devices."""
    if all(device.is_addressable for device in devices):
        return
    # Imported here: they import jaxlib's bindings.
    from plugrt.stablehlo.callback_order import number_callbacks_in_order
    from plugrt.stablehlo.modules import parse
    from plugrt.stablehlo.regions import functions_by_name

    module = parse(program.code)
    if program.callbacks:  # numbered in each process by how many there were before
        number_callbacks_in_order(module)
    # As text without locations, since these name files of each machine.
    text = str(module).encode()
    ids = [device.id for device in devices]
    digest = hashlib.blake2b(text + repr(ids).encode(), digest_size=8).hexdigest()
    main = functions_by_name(module).get("main")
    kind = f"{main.attributes['function_type']!s:.200} " if main is not None else ""
    require_agreement(
        f"compiling {program.name!r} for devices {ids}",
        f"{kind}({digest})",
        (device.process_index for device in devices),
        "Processes that share a mesh make the same programs, of the same shapes, in the same order",
        # Arrays that a process makes of its own parts are not compared: their order is free.
        perhaps="A process that runs a program which it has compiled before has arguments of other "
        "shapes or dtypes: compare those of make_array_from_callback and "
        "make_array_from_single_device_arrays",
    )
