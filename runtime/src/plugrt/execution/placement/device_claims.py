"""`resolve_devices`: the devices of a launch, from all claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from plugrt.errors import DeviceMismatch, InvalidArgument
from plugrt.execution.arrays.aval import ArrayAval, Aval, is_placed
from plugrt.execution.placement.default_device import default_device, require_addressable
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.execution.shardings.named_sharding import is_abstract
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.execution.shardings.tiled_sharding import TiledSharding
from plugrt.interface import Device


@dataclass(frozen=True, slots=True)
class Claim:
    """A fact that determines a program's devices and their order."""

    devices: tuple[Device, ...]
    source: Callable[[], str]
    """Returns its name, for messages."""
    sharding: Sharding | None = None
    """The sharding that makes the claim, if it is one."""
    mesh: AbstractMesh | None = None
    """The mesh of a claim that names no devices: it states only their number."""
    of_argument: bool = False
    """Whether it is an argument's, which ``device=`` of the outermost `jit` would move."""

    def describe(self) -> str:
        """Returns its name and its devices, for messages."""
        where = _name(self.devices) if self.devices else f"any {_count(self)} devices"
        return f"{self.source()} on {where}"

    @property
    def is_over_mesh(self) -> bool:
        """Whether the program is partitioned over its devices, even if there is only one."""
        return self.mesh is not None or isinstance(self.sharding, TiledSharding)


def sharding_claim(source: Callable[[], str], sharding: Sharding) -> Claim:
    """Returns the claim of a sharding: its devices, or the number of devices of its mesh."""
    if is_abstract(sharding):
        return Claim((), source, mesh=sharding.mesh)
    return Claim(sharding.devices, source, sharding)


def claims_of(avals: Sequence[Aval], describe: Callable[[int], str]) -> list[Claim]:
    """Returns the claims of the committed arguments; ``describe(i)`` names one."""

    def claim(i: int, aval: ArrayAval) -> Claim:
        sharding = aval.sharding
        made = sharding_claim(lambda: f"{describe(i)}: {aval.tensor_type}", sharding)
        return replace(made, of_argument=True)

    return [claim(i, aval) for i, aval in enumerate(avals) if aval.committed and is_placed(aval)]


def resolve_devices(claims: Sequence[Claim], what: str) -> tuple[tuple[Device, ...], bool]:
    """Returns the devices of all claims, and True; without claims the default and False.

    Returns () and True if claims state only the number of devices. Raises `DeviceMismatch`, which
    names the claims, if they have other devices, the same in another order, or another number, and
    `InvalidArgument` if the devices belong to other processes.
    """
    found: dict[tuple[Device, ...], Claim] = {}
    for claim in claims:
        if claim.devices:
            found.setdefault(claim.devices, claim)
    if len(found) > 1:
        lines = "".join(_line(claim) for claim in found.values())
        cure = "Name one device or one mesh in all, or move arrays there with plugrt.device_put"
        if any(claim.of_argument for claim in claims):
            cure += "; jit's device= moves them by itself"
        if len({frozenset(devices) for devices in found}) == 1:
            cure = "They are the same devices in another order: take one mesh for all"
        raise DeviceMismatch(f"received incompatible devices for {what}:{lines}\n{cure}")
    devices = next(iter(found), ())
    abstract = [claim for claim in claims if claim.mesh is not None]
    first = found[devices] if found else next(iter(abstract), None)
    for claim in abstract:
        if first is not None and _count(claim) != _count(first):
            raise DeviceMismatch(
                f"received incompatible devices for {what}:{_line(first)}{_line(claim)}\n"
                "Move the arrays to a mesh of as many devices with plugrt.device_put, or name "
                "meshes of one size"
            )
    if first is not None and not devices:
        return (), True
    if not devices:
        return (default_device(),), False
    if not any(device.is_addressable for device in devices):
        require_addressable(devices[0], what)
    return devices, True


def first_devices(what: str, count: int, start: Device) -> tuple[Device, ...]:
    """Returns the first devices of the backend of ``start``; `InvalidArgument` for too few."""
    client = start.client
    have = tuple(client.devices())
    if len(have) < count:
        raise InvalidArgument(
            f"{what} is over {count} devices; {client.backend_name} has "
            f"{len(have)}. CPUs can have more: JAX_NUM_CPU_DEVICES={count}. For devices that are "
            "not here, compile it for a topology: compile(topology=...)"
        )
    return have[:count]


def _count(claim: Claim) -> int:
    return len(claim.devices) if claim.mesh is None else claim.mesh.size


def _line(claim: Claim) -> str:
    return f"\n  {claim.describe()}"


def _name(devices: tuple[Device, ...]) -> str:
    backend = devices[0].client.backend_name
    if len(devices) == 1:
        return f"{devices[0]!r} of {backend}"
    return f"the devices {[device.id for device in devices]} of {backend}"
