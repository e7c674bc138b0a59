"""Platform names and aliases, and backends' versions: further functions of JAX's xla_bridge.

They have the names, arguments and results of ``jax._src.xla_bridge``; the last argument ``of`` of
each is a `Backends`. All errors are subclasses of ``RuntimeError``, as there.
"""

from __future__ import annotations

from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Client, Device
from plugrt.plugins.selection.backends import get_backend, process_backends
from plugrt.plugins.selection.clients import Backends


@with_argument_errors
def expand_platform_alias(platform: str, of: Backends | None = None) -> list[str]:
    """Returns the names for an alias, in order of preference: cuda, rocm, oneapi for gpu.

    For any other name, known or not, returns the name itself. Loads nothing.

    Raises `ArgumentTypeError` for an object that is no text.
    """
    table = (of or process_backends()).table
    if any(row.name == platform for row in table.rows):
        return [platform]
    return list(table.aliases.get(platform, (platform,)))


@with_argument_errors
def canonicalize_platform(platform: str, of: Backends | None = None) -> str:
    """Returns the backend's name for an alias: such as ``cuda`` for ``gpu``.

    Any other name, known or not, is returned unchanged. Starts the backend of an alias; if none of
    its backends works, a `PluginError` states why.
    """
    if expand_platform_alias(platform, of) == [platform]:
        return platform
    client = get_backend(platform, of)
    table = (of or process_backends()).table
    return next(table.label(row) for row in table.rows if row.client is client)


@with_argument_errors
def known_platforms(of: Backends | None = None) -> set[str]:
    """Returns the names of all candidates, all aliases, and the names that those mean.

    Includes platforms that cannot be started. Loads nothing: a name that only the code of a JAX
    plugin registers is known once that is loaded.
    """
    table = (of or process_backends()).table
    aliases = table.aliases
    meant = {name for names in aliases.values() for name in names}
    return {row.name for row in table.rows if row.named} | set(aliases) | meant


@with_argument_errors
def is_known_platform(platform: str, of: Backends | None = None) -> bool:
    """Whether a name is one of `known_platforms`.

    Raises `ArgumentTypeError` for an object that is no text.
    """
    return platform in known_platforms(of)


@with_argument_errors
def is_gpu(platform: str, of: Backends | None = None) -> bool:
    """Whether a platform belongs to the alias ``gpu``. (JAX had it until 2024.)

    Raises `ArgumentTypeError` for an object that is no text.
    """
    return platform in expand_platform_alias("gpu", of) and platform != "gpu"


@with_argument_errors
def backends_are_initialized(of: Backends | None = None) -> bool:
    """Whether backends are started, so that settings come too late; starts none."""
    return (of or process_backends()).choice is not None


@with_argument_errors
def get_device_backend(device: Device | None = None, of: Backends | None = None) -> Client:
    """Returns the client of a device; of the default backend without one.

    Raises `ArgumentTypeError` for an object that is no device.
    """
    return get_backend(of=of) if device is None else device.client


@with_argument_errors
def using_pjrt_c_api(backend: str | Client | None = None, of: Backends | None = None) -> bool:
    """Whether a backend is a library behind the PJRT C API.

    Raises as `plugrt.get_backend`.
    """
    return backend_pjrt_c_api_version(backend, of) is not None


@with_argument_errors
def backend_pjrt_c_api_version(
    platform: str | Client | None = None, of: Backends | None = None
) -> tuple[int, int] | None:
    """Returns the version of the PJRT C API of a backend's library; None if it has none.

    Raises as `plugrt.get_backend`.
    """
    library = getattr(get_backend(platform, of), "library", None)
    version: tuple[int, int] | None = getattr(library, "version", None)
    return version


@with_argument_errors
def backend_xla_version(
    platform: str | Client | None = None, of: Backends | None = None
) -> int | None:
    """Returns the ``xla_version`` that a backend's library states; None if it does not.

    Raises as `plugrt.get_backend`.
    """
    found = get_backend(platform, of).attributes.get("xla_version")
    return found if isinstance(found, int) and using_pjrt_c_api(platform, of) else None


@with_argument_errors
def backend_stablehlo_version(
    platform: str | Client | None = None, of: Backends | None = None
) -> list[int] | None:
    """Returns the newest StableHLO version that a backend's library reads, such as [1, 13, 3].

    Returns None for a backend that is no library behind the PJRT C API, as in JAX, and for one that
    does not state it; every backend has ``client.capabilities.stablehlo_current_version``.

    Raises the errors of `plugrt.get_backend`.
    """
    found = get_backend(platform, of).attributes.get("stablehlo_current_version")
    return list(found) if isinstance(found, list) and using_pjrt_c_api(platform, of) else None
