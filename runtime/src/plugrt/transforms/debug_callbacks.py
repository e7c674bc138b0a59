"""`debug.callback` and `debug.print`: pass values of a running program to Python."""

from __future__ import annotations

import string
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from plugrt.errors import ArgumentError
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.tracing.operation import ARRAYS
from plugrt.transforms.callbacks import ResultTypes, call_python, require_function


@with_argument_errors
def callback(
    callback: Callable[..., None] | None = None,
    *args: object,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: object,
) -> Callable[..., None] | None:
    """Calls ``callback(*args, **kwargs)`` from the program, only for its side effect.

    It receives its own NumPy arrays for arrays and numbers, and other objects unchanged.
    ``ordered`` calls run in program order. Its result is ignored. Without a function it returns a
    function with these settings, which is called with the callback and its arguments. In a program
    that `jit` divides over devices it is called once with whole arrays; with ``partitioned`` each
    device calls it with its own parts, and nothing is gathered. Otherwise as `io_callback`; as
    ``jax.debug.callback``.
    """
    if callback is not None:
        _call("debug.callback", callback, args, kwargs, ordered, partitioned)
        return None
    _refuse_arguments("debug.callback", args, kwargs)

    def call(callback: Callable[..., None], *args: object, **kwargs: object) -> None:
        _call("debug.callback", callback, args, kwargs, ordered, partitioned)

    return call


@with_argument_errors
def print(
    fmt: str | None = None,
    *args: object,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: object,
) -> Callable[..., None] | None:
    """Prints ``fmt.format(*args, **kwargs)`` from the program.

    ``fmt`` is no f-string: it is filled in while the program runs. If it has no placeholders, the
    arguments are printed after it, with ``skip_format_check``. Arrays are printed with the
    ``np.printoptions`` of the call. Raises `ArgumentError` for arguments that ``fmt`` does not use,
    for placeholders without an argument and for an invalid format (JAX: Python's errors). Otherwise
    as `callback`; as ``jax.debug.print``.

    >>> plugrt.jit(lambda x: plugrt.debug.print("x = {x:.1f}", x=x))(2)
    >>> plugrt.effects_barrier()
    x = 2.0
    """
    if fmt is not None:
        _print(fmt, args, kwargs, ordered, partitioned, skip_format_check)
        return None
    _refuse_arguments("debug.print", args, kwargs)

    def call(fmt: str, *args: object, **kwargs: object) -> None:
        _print(fmt, args, kwargs, ordered, partitioned, skip_format_check)

    return call


def _refuse_arguments(title: str, args: tuple[object, ...], kwargs: dict[str, Any]) -> None:
    if args or kwargs:
        raise ArgumentError(
            f"{title} without its first argument takes settings only; got {args=} {kwargs=}"
        )


def _call(
    title: str,
    function: Callable[..., Any],
    args: tuple[object, ...],
    kwargs: dict[str, Any],
    ordered: bool,
    partitioned: bool,
) -> None:
    require_function(title, function)
    leaves, spec = pytrees.flatten((args, kwargs))
    traced = [i for i, leaf in enumerate(leaves) if isinstance(leaf, ARRAYS)]

    def call(*values: object) -> None:
        given = list(leaves_kept)
        for i, value in zip(traced, values, strict=True):
            given[i] = value
        args, kwargs = pytrees.unflatten(spec, given)
        function(*args, **kwargs)

    # Without the arrays: the program keeps the function alive, and would keep the tracers, too.
    leaves_kept = [None if isinstance(leaf, ARRAYS) else leaf for leaf in leaves]
    call.__name__ = getattr(function, "__name__", repr(function))
    arrays = [leaves[i] for i in traced]
    names = [f"argument {i} of {title}" for i in traced]
    call_python(
        title, call, ResultTypes(title, None), arrays, names,
        effect=True, ordered=bool(ordered), partitioned=bool(partitioned), one_device=bool(ordered),
    )  # fmt: skip


class _Checker(string.Formatter):
    """Formats nothing; refuses unused arguments, and placeholders without an argument."""

    def get_value(
        self, key: int | str, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Any:
        if key in (range(len(args)) if isinstance(key, int) else kwargs):
            return super().get_value(key, args, kwargs)
        given = f"{len(args)} by position" + "".join(f", {name!r}" for name in kwargs)
        raise ArgumentError(
            f"debug.print's text has a place for argument {key!r}, which was not given; its "
            f"arguments are {given}"
        )

    def format_field(self, value: object, format_spec: str) -> str:
        return ""

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        unused = [x for i, x in enumerate(args) if i not in used_args]
        if unused:
            raise ArgumentError(f"arguments that debug.print's text does not use: {unused}")
        if names := [name for name in kwargs if name not in used_args]:
            raise ArgumentError(
                f"keyword arguments that debug.print's text does not use: {names}. The text is "
                'no f-string: "{x}", not f"{x}"'
            )


def _print(
    fmt: str,
    args: tuple[object, ...],
    kwargs: dict[str, Any],
    ordered: bool,
    partitioned: bool,
    skip_check: bool,
) -> None:
    if not isinstance(fmt, str):
        raise ArgumentError(f"debug.print takes a text to be filled in; got {fmt!r:.60}")
    try:
        fills = any(field is not None for _, field, _, _ in string.Formatter().parse(fmt))
        if not skip_check:
            _Checker().vformat(fmt, args, kwargs)
    except (LookupError, AttributeError, ValueError) as error:
        raise (
            error if isinstance(error, ArgumentError) else _make_unfilled_error(fmt, error)
        ) from None
    options = np.get_printoptions()

    def write(*args: object, **kwargs: object) -> None:
        with np.printoptions(**options):
            try:
                text = fmt.format(*args, **kwargs) if fills else " ".join((fmt, *map(str, args)))
            except (LookupError, AttributeError, ValueError, TypeError) as error:
                raise _make_unfilled_error(fmt, error) from None
        sys.stdout.write(f"{text}\n")

    write.__name__ = fmt
    _call("debug.print", write, args, kwargs, ordered, partitioned)


def _make_unfilled_error(fmt: str, error: Exception) -> ArgumentError:
    return ArgumentError(f"debug.print cannot fill in {fmt!r:.80}: {error}")
