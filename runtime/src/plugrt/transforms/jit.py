"""`jit`: functions that are traced, compiled and launched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import TypedDict, Unpack, overload

from plugrt.errors import ArgumentError, InvalidArgument
from plugrt.execution.placement.placement import read_compiler_options
from plugrt.frames.argument_errors import require_flag, with_argument_errors
from plugrt.interface import Device
from plugrt.tracing.traceable import P, R
from plugrt.transforms.call_arguments import ArgumentRules, check_function
from plugrt.transforms.jit_formats import FormatPrefix
from plugrt.transforms.jit_function import JitFunction
from plugrt.typing import Shardings

__all__ = ["JitFunction", "jit", "pjit"]


class _Omitted(Enum):
    """The default of `jit`'s ``fun``, for ``@jit(**options)``; an explicit None is an error."""

    OMITTED = auto()

    def __repr__(self) -> str:
        return self.name


class PjitOptions(TypedDict, total=False):
    """The keywords of `pjit`."""

    static_argnums: int | Sequence[int] | None
    static_argnames: str | Iterable[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Iterable[str] | None
    keep_unused: bool
    device: Device | None
    backend: str | None
    inline: bool
    compiler_options: Mapping[str, str | bool | int | float] | None


class JitOptions(PjitOptions, total=False):
    """The keywords of `jit`."""

    in_shardings: Shardings
    out_shardings: Shardings


@overload
def jit(fun: Callable[P, R], /, **options: Unpack[JitOptions]) -> JitFunction[P, R]: ...
@overload
def jit(**options: Unpack[JitOptions]) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...
@with_argument_errors
def jit(
    fun: Callable[P, R] | _Omitted = _Omitted.OMITTED,
    /,
    *,
    in_shardings: Shardings = None,
    out_shardings: Shardings = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: Mapping[str, str | bool | int | float] | None = None,
) -> JitFunction[P, R] | Callable[[Callable[P, R]], JitFunction[P, R]]:
    """Returns ``fun`` as a function that is traced, compiled and launched on a device.

    Arguments and results are arrays, scalars and pytrees of them; static arguments are hashable
    values that a program is specialised for. Programs are cached by the structure, shapes, dtypes
    and placement of the arguments, the static values and the configuration, and the cache is shared
    by all jits of one function with the same options.

    The parameters are ``jax.jit``'s. ``compiler_options`` are options of the backend's compiler by
    name, such as ``{"xla_cpu_enable_fast_math": True}``; it refuses unknown ones. ``in_shardings``
    and ``out_shardings`` are shardings for the positional arguments and the results, or pytree
    prefixes of them: with `NamedSharding` the program is divided over the devices of its mesh.
    Omitted shardings follow from the arguments: arguments on the devices of a mesh keep theirs, and
    the compiler chooses the shardings of uncommitted arguments and of results. A committed argument
    with the same division over other devices is moved; one with another division is refused. They
    may also be a single device's sharding, also of another memory, or a `plugrt.layout.Format`: a
    layout for each argument and result, or ``Layout.AUTO``, for which the compiler chooses. Without
    one, committed arguments keep their layouts, and results have the default layout, except a
    result that is an argument: it keeps its layout, where JAX copies it to the default. Only the
    Formats of the outermost call apply. ``inline`` inserts the body when another traced function
    calls it, instead of a call to a function of the module. Raises `ArgumentTypeError` for an
    object that is no function, `ArgumentError` for wrong argument numbers or names. Calls raise
    `DeviceMismatch` if shardings, a ``device`` of an inner jit and committed arguments have
    different devices.

    >>> double = plugrt.jit(lambda x: 2 * x)
    >>> double(xp.asarray([1.0, 2.0]))
    Array([2., 4.], dtype=float32)
    """
    options = JitOptions(
        in_shardings=in_shardings,
        out_shardings=out_shardings,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
        keep_unused=keep_unused,
        device=device,
        backend=backend,
        inline=inline,
        compiler_options=compiler_options,
    )
    if fun is _Omitted.OMITTED:
        return lambda f: _wrap("jit", f, **options)
    return _wrap("jit", fun, **options)


@with_argument_errors
def pjit(
    fun: Callable[P, R],
    in_shardings: Shardings | _Omitted = _Omitted.OMITTED,
    out_shardings: Shardings | _Omitted = _Omitted.OMITTED,
    **options: Unpack[PjitOptions],
) -> JitFunction[P, R]:
    """Returns ``fun`` as `jit` does; its calls in ``with mesh:`` run on the mesh, as `set_mesh`'s.

    It has the parameters of `jit`; within a mesh, None in explicit shardings means
    ``PartitionSpec()``. As ``jax.experimental.pjit.pjit``. Raises the errors of `jit`; calls within
    a mesh raise `ArgumentError` if a ``device`` or a ``backend`` is given.

    >>> with plugrt.make_mesh((2,), ("x",)):
    ...     len(plugrt.pjit(lambda v: 2 * v)(np.ones(8)).sharding.device_set)
    2
    """
    return _wrap("pjit", fun, in_shardings=in_shardings, out_shardings=out_shardings, **options)


def _wrap(
    title: str,
    fun: Callable[P, R],
    *,
    in_shardings: Shardings | _Omitted,
    out_shardings: Shardings | _Omitted,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: Mapping[str, str | bool | int | float] | None = None,
) -> JitFunction[P, R]:
    """Implements `jit` and `pjit`; ``title`` is the name of the one that is called."""
    check_function(title, fun)
    require_flag(title, "keep_unused", keep_unused)
    require_flag(title, "inline", inline)
    if device is not None and backend is not None:
        raise ArgumentError(f"{title} takes a device or a backend, not both")
    placed = "device" if device is not None else "backend" if backend is not None else ""
    unset = (None, _Omitted.OMITTED)
    if placed and not (in_shardings in unset and out_shardings in unset):
        raise ArgumentError(
            f"{title} takes {placed}, or in_shardings and out_shardings, which name devices; got "
            "both"
        )
    require_device(title, device)

    def read(given: Shardings | _Omitted, what: str) -> FormatPrefix:
        if given is _Omitted.OMITTED:
            return FormatPrefix(None, what)
        return FormatPrefix(given, what, none_is_whole=title == "pjit")

    formats = read(in_shardings, "in_shardings"), read(out_shardings, "out_shardings")
    rules = ArgumentRules(fun, static_argnums, static_argnames, donate_argnums, donate_argnames)
    return JitFunction(
        fun,
        rules,
        keep_unused=keep_unused,
        device=device,
        backend=backend,
        inline=inline,
        compiler_options=read_compiler_options(title, compiler_options),
        formats=None if all(prefix.is_none for prefix in formats) else formats,
        of_with=title == "pjit",
    )


def require_device(title: str, device: Device | None) -> Device | None:
    """Returns the option ``device``; raises `InvalidArgument` for an object that is no device."""
    if device is not None and not isinstance(device, Device):
        raise InvalidArgument(f"{title}'s device must be one of plugrt.devices(); got {device!r}")
    return device
