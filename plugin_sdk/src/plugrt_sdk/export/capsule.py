"""`export_capsule`: a function table over a client factory."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from plugrt.capi.abi.declarations import API_MINOR, functions
from plugrt.errors import ArgumentTypeError, InvalidArgument
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import OptionValue
from plugrt.programs.parsing import has_bindings
from plugrt_sdk.export.bridge import Bridge, ClientFactory
from plugrt_sdk.export.native import create_table
from plugrt_sdk.export.topologies import TopologyFactory
from plugrt_sdk.tracing.library import wrap_if_traced

__all__ = ["ClientFactory", "TopologyFactory", "export_capsule"]


@with_argument_errors
def export_capsule(
    client_factory: ClientFactory,
    *,
    platform: str | None = None,
    minor: int = API_MINOR,
    attributes: Mapping[str, OptionValue] | None = None,
    hidden: Collection[str] = (),
    topology_factory: TopologyFactory | None = None,
) -> object:
    """Returns a ``pjrt_c_api`` capsule: a ``PJRT_Api`` whose clients come from ``client_factory``.

    The factory is called with the host's create options as keyword arguments, each time that the
    host creates a client. ``platform`` is the name that hosts see, by default the client's own: JAX
    chooses its lowering rules by it, and a platform of that name must not exist beside it.
    ``minor`` is the version of the PJRT C API that is reported, from 0.29 on; hosts ask less of an
    older one. ``attributes`` are returned by ``PJRT_Plugin_Attributes``, by default the versions of
    StableHLO that the installed jaxlib reads. ``hidden`` are functions, such as
    ``"PJRT_Buffer_CopyToMemory"``, that the table refuses as unimplemented. ``topology_factory``
    makes topologies by name and options, for hosts that compile for absent devices.

    A factory with a parameter ``kv_store`` receives the key-value store of a host that is one of
    several processes, and None from other hosts; without the parameter such a host is refused.

    The table lives as long as the process; a process can make 256. Raises `ArgumentTypeError` for a
    factory that cannot be called and `InvalidArgument` for a version, or functions to hide, that
    are not declared.
    """
    if not callable(client_factory):
        raise ArgumentTypeError(
            f"export_capsule takes a function that makes a Client; found {client_factory!r:.60}"
        )
    if platform is not None and (not isinstance(platform, str) or not platform):
        raise ArgumentTypeError(f"export_capsule: the platform is a name; found {platform!r:.60}")
    unknown = {*hidden} - {f"PJRT_{function.name}" for function in functions()}
    if unknown:
        raise InvalidArgument(
            f"export_capsule: {sorted(map(repr, unknown))[:3]} are no functions to hide; their "
            "names are such as 'PJRT_Buffer_CopyToMemory'"
        )
    bridge = Bridge(client_factory, platform, topology_factory)
    stated = default_attributes() if attributes is None else dict(attributes)
    try:
        made = create_table(bridge, stated, minor, frozenset(hidden))
    except ValueError as error:
        raise InvalidArgument(f"export_capsule: {error}") from error
    return wrap_if_traced(made, f"{platform or 'a plugin'} (export_capsule)")


def default_attributes() -> dict[str, OptionValue]:
    """Returns the attributes that a host needs to write programs: the versions of StableHLO."""
    found: dict[str, OptionValue] = {"xla_version": 2}
    if has_bindings():
        from plugrt.stablehlo.modules import current_version, minimum_version

        found["stablehlo_current_version"] = list(current_version())
        found["stablehlo_minimum_version"] = list(minimum_version())
    return found
