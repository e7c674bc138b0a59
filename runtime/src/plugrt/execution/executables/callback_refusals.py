"""What is said of programs that call Python functions where that cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from plugrt.errors import ArgumentError, Unimplemented
from plugrt.interface import Client, CompileOptions, Device, Program


def require_host_callbacks(client: Client, program: Program, options: CompileOptions) -> None:
    """Raises `Unimplemented` if the program calls Python and the backend cannot.

    Raises `ArgumentError` for ordered calls of a program that is divided over devices.
    """
    if program.callbacks and not client.capabilities.host_callbacks:
        raise refuse_callbacks(
            program,
            f"{client.backend_name} does not declare that a program can call Python functions "
            "while it runs (capability host_callbacks)",
        )

    if options.num_partitions > 1 and options.device_assignment is not None:
        by_id = {device.id: device for device in client.devices()}
        devices = [by_id[i] for i in options.device_assignment.flat]
        for call in program.callbacks.values():
            if getattr(call, "ordered", False):
                refuse_order(str(getattr(call, "title", call)), devices)


def refuse_order(title: str, devices: Sequence[Device]) -> NoReturn:
    """Raises `ArgumentError` for an ordered call by a program that is divided over devices."""
    raise ArgumentError(
        f"{title} is ordered, and its program is divided over {devices}, "
        "which run at the same time: an order of their calls is not supported. Take "
        "ordered=False, or one device"
    )


def refuse_callbacks(program: Program, reason: str) -> Unimplemented:
    """Returns the error for a program that calls Python where that cannot be."""
    calls = "; ".join(str(getattr(x, "title", x)) for x in program.callbacks.values())
    return Unimplemented(f"{program.name!r} calls {calls}; {reason}")
