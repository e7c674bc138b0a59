"""`plugrt_linear_algebra`: jaxlib's LAPACK for other clients whose memory the host addresses.

A Python function calls its handlers: libraries have several versions of XLA's FFI, and refuse C
handlers of another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from plugrt.interface import Client, Handler
from plugrt.plugins.hookspecs import hookimpl
from plugrt.plugins.plugin import LoweringContext, LoweringRule

_LEAST = 48
"""Rows and columns of the smallest matrices that LAPACK gets: calling a handler costs 0.2 ms."""


@hookimpl
def plugrt_linear_algebra(
    client: Client,
) -> tuple[Mapping[str, LoweringRule], Mapping[str, Handler]] | None:
    """Offers LAPACK to clients that call Python functions with views of their arrays."""
    from plugrt_cpu.device import ClientBase

    has = client.capabilities
    if isinstance(client, ClientBase) or not (
        has.custom_calls and has.host_callbacks and has.zero_copy_get
    ):
        return None
    from plugrt.capi.extensions.ffi_frames import call_c_handler
    from plugrt_cpu.lapack import handler_addresses
    from plugrt_cpu.lapack_lowerings import LOWERINGS

    rules = {name: partial(_lower_large, rule) for name, rule in LOWERINGS.items()}
    addresses = handler_addresses()
    return rules, {target: call_c_handler(target, at) for target, at in addresses.items()}


def _lower_large(rule: Callable[..., Any], context: LoweringContext, *operands: Any) -> Any:
    """Lowers an operation on large matrices; None leaves others to plugrt's definitions."""
    return rule(context, *operands) if min(operands[0].shape[-2:]) >= _LEAST else None
