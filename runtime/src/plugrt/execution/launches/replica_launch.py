"""`replicate_launch`: the launch of a jitted function that calls `pmap`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from plugrt.errors import DeviceMismatch, InvalidArgument
from plugrt.execution.arrays.aval import Aval, is_placed
from plugrt.execution.placement.default_device import default_device
from plugrt.execution.placement.device_claims import Claim, resolve_devices
from plugrt.execution.placement.placement import Launch, replica_launch
from plugrt.execution.placement.plan import Plan
from plugrt.execution.shardings.pmap_sharding import divide_axis
from plugrt.execution.shardings.replica_sharding import ReplicaSharding, current_replicas
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.frames.traceback_filter import warn_user
from plugrt.interface import Device, TensorType
from plugrt.plugins.selection import backends


@dataclass(frozen=True, slots=True)
class InnerPmap:
    """A pmap that was called while another function was traced."""

    size: int
    what: str
    """The function and the user's line, for messages."""
    devices: tuple[Device, ...] | None = None
    backend: str | None = None
    """The requested devices, or the requested backend."""
    replicas: int = 1
    """The number of replicas that it needs, including the axes of outer pmaps."""


class ReplicatedProgram(Protocol):
    """The attributes of a traced function that `replicate_launch` uses."""

    @property
    def plan(self) -> Plan: ...
    @property
    def output_types(self) -> Sequence[TensorType]: ...
    @property
    def replicas(self) -> int: ...
    @property
    def pmaps(self) -> Sequence[InnerPmap]: ...
    @property
    def loaded(self) -> Mapping[object, object]: ...


def replicate_launch(
    traced: ReplicatedProgram, avals: Sequence[Aval], claims: Sequence[Claim], held: Sequence[Claim]
) -> Launch:
    """Returns the launch of a program that contains pmaps, on a device for each replica.

    Arguments and results are replicated, whatever their shardings were. ``claims`` are other facts
    that determine devices: there must be none, since pmap chooses them; ``held`` are claims of
    committed arguments. Raises `DeviceMismatch` for ``claims``, for arguments on other
    devices, and for pmaps on other devices than each other, and `InvalidArgument` for more replicas
    than devices. The first time for a program it warns, as JAX does.
    """
    name, pmaps = traced.plan.name, traced.pmaps
    for claim in claims:
        raise DeviceMismatch(
            f"the devices of {name!r} are set by {claim.describe()}, and also by {pmaps[0].what} "
            f"within it: leave one of the two out, or call pmap outside of {name!r}"
        )
    devices = _choose_devices(name, avals, traced.replicas, pmaps)
    here = Claim(devices, lambda: pmaps[0].what)
    # The error must not suggest jit's device= for arguments: `jit` with a pmap within refuses it.
    resolve_devices([here, *[replace(claim, of_argument=False) for claim in held]], repr(name))
    if traced.replicas > 1 and not traced.loaded:
        _warn_of_gathering(name, pmaps)
    where = divide_axis(devices, None)
    taken, left = (where,) * len(avals), (where,) * len(traced.output_types)
    return replica_launch(devices, taken, left)


def _choose_devices(
    name: str, avals: Sequence[Aval], replicas: int, pmaps: Sequence[InnerPmap]
) -> tuple[Device, ...]:
    asked = {inner.devices: inner for inner in pmaps if inner.devices is not None}
    if len(asked) > 1:
        one, other, *_ = asked.values()
        raise DeviceMismatch(
            f"{name!r} has {one.what} with devices={_ids(one)} and {other.what} with "
            f"devices={_ids(other)}: one program runs on one list of devices"
        )
    named = {inner.backend: inner for inner in pmaps if inner.backend is not None}
    clients = {backends.get_backend(backend): inner for backend, inner in named.items()}
    clients |= {devices[0].client: inner for devices, inner in asked.items() if devices}
    if len(clients) > 1:
        sources = " and ".join(f"{c.backend_name} by {i.what}" for c, i in clients.items())
        raise DeviceMismatch(f"{name!r} is to run on {sources}: one program runs on one backend")
    available = next(iter(asked)) if asked else None
    if available is None:
        lies = [a.sharding for a in avals if is_placed(a) and a.committed]
        client = (
            next(iter(clients), None) or (lies[0].devices[0] if lies else default_device()).client
        )
        available = tuple(client.addressable_devices())
    require_replicas(f"{name!r}", replicas, available, bool(asked), pmaps)
    return available[:replicas]


def _ids(inner: InnerPmap) -> list[int]:
    return [device.id for device in inner.devices or ()]


def require_replicas(
    what: str,
    replicas: int,
    available: Sequence[Device],
    chosen: bool,
    pmaps: Sequence[InnerPmap],
) -> None:
    """Raises `InvalidArgument`, with both numbers, if there are too few devices for the replicas.

    If the caller has ``chosen`` the ``available`` devices, there must not be more, either.
    """
    if replicas <= len(available) and not (chosen and replicas != len(available)):
        return
    within = f" for {' and '.join(inner.what for inner in dict.fromkeys(pmaps))}" if pmaps else ""
    if chosen:
        raise InvalidArgument(
            f"{what} needs {replicas} replicas{within}, and devices= lists {len(available)}; the "
            "two must be equal"
        )
    platform = available[0].platform if available else "the backend"
    hint = "; JAX_NUM_CPU_DEVICES sets how many the cpu has" if platform == "cpu" else ""
    raise InvalidArgument(
        f"{what} needs {replicas} replicas{within}, but {platform} has only {len(available)} "
        f"devices{hint}"
    )


def _warn_of_gathering(name: str, pmaps: Sequence[InnerPmap]) -> None:
    """Warns that a jitted function contains a pmap, as JAX does."""
    warn_user(
        f"the jitted function {name!r} has {pmaps[0].what} within: its arguments are gathered and "
        "put whole on each device, and results are read from the first, where pmap alone leaves "
        "each slice on its device. Call pmap outside of jit unless that is meant"
    )


def find_replicas(avals: Sequence[Aval], replicas: int) -> ReplicaSharding | None:
    """Returns the sharding of a program with an argument that differs by replica; None without one.

    ``replicas`` is the program's own number: if it has pmaps inside, more than the surrounding
    ones.
    """
    found = {k.sharding: None for k in avals if type(k.sharding) is ReplicaSharding}
    if not found and replicas == 1:
        return None
    if (here := current_replicas()) is not None:
        found[here] = None
    if not found:
        return None
    widest = max(found, key=lambda each: len(each.devices))
    if replicas <= len(widest.devices):
        return widest
    available = tuple(widest.devices[0].client.addressable_devices())
    require_replicas("the program", replicas, available, False, ())
    return widest.widen(available[:replicas])


def launch_on_replicas(traced: ReplicatedProgram, avals: Sequence[Aval], to: Sharding) -> Launch:
    """Returns the launch of an operation on all replicas of a pmap under ``disable_jit``."""
    whole = divide_axis(to.devices, None)
    taken = tuple(
        to if is_placed(aval) and type(aval.sharding) is ReplicaSharding else whole
        for aval in avals
    )
    left = (to,) * len(traced.output_types)
    return replica_launch(to.devices, taken, left)
