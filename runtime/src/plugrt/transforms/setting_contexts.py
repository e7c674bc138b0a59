"""Context managers that change one setting for a block of code in this thread, named as in JAX."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal

from plugrt.frames.argument_errors import with_argument_errors
from plugrt.settings.declarations import config

if TYPE_CHECKING:
    from plugrt.interface import Device

GuardLevel = Literal["allow", "log", "disallow", "log_explicit", "disallow_explicit"]
"""The levels of `transfer_guard`."""


@with_argument_errors
def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """Runs jitted functions operation by operation, so that Python sees every value.

    As ``jax.disable_jit``; `ConfigError` for other than a bool.

    >>> with plugrt.disable_jit():
    ...     plugrt.jit(lambda x: x if x > 0 else -x)(xp.asarray(-2))
    Array(2, dtype=int32)
    """
    return config.override(disable_jit=disable)


@with_argument_errors
def debug_nans(enable: bool = True) -> AbstractContextManager[None]:
    """Checks every result for NaN, as ``jax.debug_nans``.

    A jitted function that makes one is run again operation by operation, and `FloatingPointFault`
    names the operation.

    Raises `ConfigError` for other than a bool.

    >>> with plugrt.debug_nans():  # doctest: +ELLIPSIS
    ...     xp.asarray(0.0) / 0.0
    Traceback (most recent call last):
        ...
    plugrt.errors.FloatingPointFault: invalid value (nan) encountered in divide of ...
    """
    return config.override(debug_nans=enable)


@with_argument_errors
def debug_infs(enable: bool = True) -> AbstractContextManager[None]:
    """As `debug_nans`, for infinities (``jax.debug_infs``).

    Raises `ConfigError` for other than a bool.

    >>> with plugrt.debug_infs():  # doctest: +ELLIPSIS
    ...     xp.asarray(1.0) / 0.0
    Traceback (most recent call last):
        ...
    plugrt.errors.FloatingPointFault: invalid value (inf) encountered in divide of ...
    """
    return config.override(debug_infs=enable)


@with_argument_errors
def log_compiles(enable: bool = True) -> AbstractContextManager[None]:
    """Logs each compilation with its name, argument types and duration (``jax.log_compiles``).

    Raises `ConfigError` for other than a bool.

    >>> with plugrt.log_compiles():  # on the logger plugrt.compile
    ...     plugrt.jit(lambda x: x + 1)(1)
    Array(2, dtype=int32)
    """
    return config.override(log_compiles=enable)


@with_argument_errors
def default_device(device: Device | str | None) -> AbstractContextManager[None]:
    """Puts uncommitted arrays and runs computations on this device (or ``"platform:0"``).

    None is the backend's own default. As ``jax.default_device``; `ConfigError` for anything else.

    >>> with plugrt.default_device(plugrt.devices()[-1]):
    ...     xp.zeros(2).device == plugrt.devices()[-1]
    True
    """
    return config.override(default_device=device)


@with_argument_errors
def transfer_guard(level: GuardLevel) -> AbstractContextManager[None]:
    """Logs or refuses transfers in its block, of all directions, as ``jax.transfer_guard``.

    ``"log"`` and ``"disallow"`` apply to implicit transfers: host data as arguments, arrays on
    another device, ``np.asarray(x)``. ``"log_explicit"`` and ``"disallow_explicit"`` also apply to
    `plugrt.device_put` and `plugrt.device_get`, and to numbers: ``x + 1``, ``x[3]`` and ``f(x,
    2.5)`` pass under ``"disallow"``, unlike in JAX. Data that stay on their devices are not
    transferred. ``"allow"`` ends a guard around the block.
    A refused transfer raises `InvalidArgument` with the user's line; the logger is
    ``plugrt.execution.arrays.transfer_guard``. Raises `ConfigError` for another level.

    Reading an array whose memory the host can access, as on cpu, is no transfer.

    >>> with plugrt.transfer_guard("disallow"):  # doctest: +ELLIPSIS
    ...     plugrt.jit(lambda x: x + 1)(np.ones(2))
    Traceback (most recent call last):
        ...
    plugrt.errors.InvalidArgument: INVALID_ARGUMENT: Disallowed host-to-device transfer: ...
    """
    return config.override(
        transfer_guard=level,
        transfer_guard_host_to_device=None,
        transfer_guard_device_to_device=None,
        transfer_guard_device_to_host=None,
    )


@with_argument_errors
def transfer_guard_host_to_device(level: GuardLevel) -> AbstractContextManager[None]:
    """`transfer_guard` for data of the host that are put on a device; `ConfigError` as there.

    >>> with plugrt.transfer_guard_host_to_device("disallow"):
    ...     plugrt.jit(lambda x: x + 1)(plugrt.device_put(np.ones(2)))
    Array([2., 2.], dtype=float64)
    """
    return config.override(transfer_guard_host_to_device=level)


@with_argument_errors
def transfer_guard_device_to_device(level: GuardLevel) -> AbstractContextManager[None]:
    """`transfer_guard` for arrays that go to another device; `ConfigError` as there.

    >>> x = plugrt.device_put(np.ones(2))
    >>> with plugrt.transfer_guard_device_to_device("disallow"):
    ...     plugrt.device_put(x, plugrt.devices()[-1])
    Array([1., 1.], dtype=float64)
    """
    return config.override(transfer_guard_device_to_device=level)


@with_argument_errors
def transfer_guard_device_to_host(level: GuardLevel) -> AbstractContextManager[None]:
    """`transfer_guard` for arrays that are read on the host; `ConfigError` as there.

    >>> x = plugrt.device_put(np.ones(2))
    >>> with plugrt.transfer_guard_device_to_host("disallow"):
    ...     plugrt.device_get(x)
    array([1., 1.])
    """
    return config.override(transfer_guard_device_to_host=level)
