"""`from_jax`: functions that JAX traces, as jitted functions on plugrt's arrays and backends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from plugrt.errors import ArgumentError, MissingJaxExtra
from plugrt.execution.placement.placement import read_compiler_options
from plugrt.frames.argument_errors import require_flag, with_argument_errors
from plugrt.interface import Device
from plugrt.tracing.traceable import P, R
from plugrt.transforms.call_arguments import ArgumentRules, check_function
from plugrt.transforms.jit import require_device
from plugrt.transforms.jit_function import JitFunction


@with_argument_errors
def from_jax(
    fun: Callable[P, R],
    /,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    compiler_options: Mapping[str, str | bool | int | float] | None = None,
) -> JitFunction[P, R]:
    """Converts a function written with JAX to one that plugrt runs, on its arrays and backends.

    JAX traces ``fun`` and lowers it, without a backend of its own; the module is compiled and
    launched as `plugrt.jit` does, once for each kind of arguments (shapes, dtypes, structure,
    static values) and combination of JAX's settings. ``fun`` may be a result of ``jax.grad``,
    ``jax.vmap``, ``jax.checkpoint`` or ``jax.jit``, whose donations apply. Pytrees are JAX's, with
    the classes registered there. The parameters are those of `plugrt.jit`; the result can be called
    in functions of `plugrt.jit` and `plugrt.pmap`, and has ``lower``, ``trace`` and ``eval_shape``.

    A program that JAX divides over a mesh (``in_shardings``, ``with_sharding_constraint``,
    ``shard_map``) runs on as many devices: the devices of arguments over a mesh, else the first
    ones of ``backend``. ``jax.sharding.AbstractMesh`` needs no JAX devices.

    The function computes by JAX's rules: with ``jax_enable_x64`` off, 64-bit arguments are
    narrowed, with a warning. Static arguments of an inner ``jax.jit`` must be named here, too.
    Raises `MissingJaxExtra` without jax, exceptions of ``fun`` while it is traced, `Unimplemented`
    for callbacks to Python, `DeviceMismatch` for arguments on another number of devices than a mesh
    has, `NotAnArray` for typed keys.

    >>> import jax, jax.numpy as jnp
    >>> gradient = plugrt.from_jax(jax.grad(lambda w, x: jnp.sum(jnp.tanh(x @ w))))
    >>> gradient(xp.zeros(2), xp.asarray([[1.0, 2.0], [3.0, 4.0]]))
    Array([4., 6.], dtype=float32)
    """
    check_function("from_jax", fun)
    require_flag("from_jax", "keep_unused", keep_unused)
    if device is not None and backend is not None:
        raise ArgumentError("from_jax takes a device or a backend, not both")
    try:
        from plugrt.transforms.jax_function import JaxFunction
        from plugrt.transforms.jax_lowering import read_settings
    except ModuleNotFoundError as error:
        if error.name != "jax":
            raise
        raise MissingJaxExtra(
            "from_jax has JAX trace the function, and jax is not installed; install it with: "
            'pip install "plugrt[jax]"'
        ) from error
    rules = ArgumentRules(fun, static_argnums, static_argnames, donate_argnums, donate_argnames)
    options: dict[str, Any] = {
        "keep_unused": keep_unused,
        "device": require_device("from_jax", device),
        "backend": backend,
        "inline": False,
        "compiler_options": read_compiler_options("from_jax", compiler_options),
    }
    return JaxFunction(fun, rules, read_settings(), **options)
