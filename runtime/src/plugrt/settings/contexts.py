"""Context managers that change one setting for a block of code in this thread, named as in JAX."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from plugrt.argument_errors import with_argument_errors
from plugrt.settings.declarations import config

if TYPE_CHECKING:
    from plugrt.interface import Device


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
