"""`resolve_devices`: the devices of a launch, from all that says where it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plugrt.errors import DeviceMismatch, InvalidArgument
from plugrt.execution.arrays.arguments import Aval
from plugrt.execution.arrays.signature import Signature
from plugrt.execution.placement.default_device import default_device, require_addressable
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.interface import Device


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that says which devices a program runs on, and in which order."""

    devices: tuple[Device, ...]
    source: Callable[[], str]
    """Names it, for messages."""
    sharding: Sharding | None = None
    """What it divides over them, if it is a sharding."""
    mesh: AbstractMesh | None = None
    """Where no devices are named: the program is over a mesh of as many, whichever they are."""


def sharding_claim(what: str, sharding: Sharding) -> Claim:
    """Returns the claim of a sharding that the option ``what`` names."""
    return Claim(sharding.devices, lambda: f"{what}: {sharding!r}", sharding)


def claims_of(avals: Sequence[Aval], describe: Callable[[int], str]) -> list[Claim]:
    """Returns the claims of the committed arguments; ``describe(i)`` names one."""

    def claim(i: int, aval: Signature) -> Claim:
        sharding = aval.sharding
        return Claim(sharding.devices, lambda: f"{describe(i)}: {aval.tensor_type}", sharding)

    return [
        claim(i, aval)
        for i, aval in enumerate(avals)
        if isinstance(aval, Signature) and aval.committed
    ]


def resolve_devices(
    claims: Sequence[Claim], what: str, start: Device | None = None
) -> tuple[tuple[Device, ...], bool]:
    """Returns the devices that all claims are of, and True; without one the default, and False.

    Where claims say the number of devices alone, they are the first ones of the backend of
    ``start``, or of the default device. Raises `DeviceMismatch`, which names the claims, where they
    are of other devices, of the same in another order, or of another number, and `InvalidArgument`
    where a backend has too few, or the devices are those of other processes.
    """
    found: dict[tuple[Device, ...], Claim] = {}
    for claim in claims:
        if claim.devices:
            found.setdefault(claim.devices, claim)
    if len(found) > 1:
        lines = "".join(_line(claim) for claim in found.values())
        cure = (
            "Name one device or one mesh in all, or move arrays there with plugrt.device_put; "
            "jit's device= moves them by itself"
        )
        if len({frozenset(devices) for devices in found}) == 1:
            cure = "They are the same devices in another order: take one mesh for all"
        raise DeviceMismatch(f"received incompatible devices for {what}:{lines}\n{cure}")
    devices = next(iter(found), ())
    for claim in claims:
        if claim.mesh is None:
            continue
        if not devices:
            devices = _first_devices(claim, claim.mesh, start or default_device())
        elif claim.mesh.size != len(devices):
            known = _line(found[devices]) if found else f"\n  {_name(devices)}"
            raise DeviceMismatch(
                f"received incompatible devices for {what}:{known}\n  {claim.source()} on any "
                f"{claim.mesh.size} devices\nMove the arrays to a mesh of as many devices with "
                "plugrt.device_put"
            )
    if not devices:
        return (default_device(),), False
    if not any(device.is_addressable for device in devices):
        require_addressable(devices[0], what)
    return devices, True


def _first_devices(claim: Claim, mesh: AbstractMesh, start: Device) -> tuple[Device, ...]:
    client = start.client
    have = tuple(client.devices())
    if len(have) < mesh.size:
        raise InvalidArgument(
            f"{claim.source()} is over {mesh.size} devices; {client.backend_name} has {len(have)}. "
            f"CPUs can have more: JAX_NUM_CPU_DEVICES={mesh.size}"
        )
    return have[: mesh.size]


def _line(claim: Claim) -> str:
    return f"\n  {claim.source()} on {_name(claim.devices)}"


def _name(devices: tuple[Device, ...]) -> str:
    backend = devices[0].client.backend_name
    if len(devices) == 1:
        return f"{devices[0]!r} of {backend}"
    return f"the devices {[device.id for device in devices]} of {backend}"
