"""`ffi_call`: calls of registered handlers, as functions of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from plugrt.errors import ArgumentError, ArgumentTypeError
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lax.custom_calls import custom_call
from plugrt.transforms.callbacks import VMAP_METHODS, read_result_type
from plugrt.typing import ArrayLike

_TYPED_FFI = 4


@with_argument_errors
def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Sequence[int] | None] | None = None,
    output_layouts: Sequence[Any] | None = None,
    input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = _TYPED_FFI,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """Returns a function of arrays that calls the handler registered as ``target_name``.

    Its positional arguments are the arrays, its keywords the attributes of the call: text,
    booleans, numbers (NumPy's state their width), NumPy arrays and dicts of them.
    ``result_shape_dtypes`` is an object with shape and dtype, or a sequence of them; the results
    have the same form. Layouts order dimensions from the slowest to the fastest, None is row-major;
    ``input_output_aliases`` maps arguments to the results that may reuse their memory. With
    ``has_side_effect`` the call is made even if nothing uses its results. ``vmap_method`` has no
    effect here.

    Raises `ArgumentError` for options that do not fit each other and the arguments,
    `ArgumentTypeError` for results without shape and dtype, `DtypeError` and `UnsupportedDtype` for
    dtypes that arrays cannot have, and the backend's error for a name that is not registered there.
    As ``jax.ffi.ffi_call``.
    """
    if not isinstance(target_name, str):
        raise ArgumentTypeError(f"ffi_call takes the target's name; got {target_name!r:.60}")
    if vmap_method not in VMAP_METHODS:
        raise ArgumentError(
            f"vmap_method of ffi_call must be one of {VMAP_METHODS}; got {vmap_method!r}"
        )
    if custom_call_api_version >= _TYPED_FFI and legacy_backend_config is not None:
        raise ArgumentError(
            "legacy_backend_config of ffi_call goes with a custom_call_api_version below "
            f"{_TYPED_FFI}; got {custom_call_api_version}"
        )
    several = isinstance(result_shape_dtypes, Sequence)
    results = [
        read_result_type(f"result_shape_dtypes{path} of ffi_call", promised)
        for path, promised in (
            [(f"[{i}]", one) for i, one in enumerate(result_shape_dtypes)]
            if several
            else [("", result_shape_dtypes)]
        )
    ]
    if output_layouts is not None and not several:
        output_layouts = [output_layouts]

    def call(*args: ArrayLike, **attributes: Any) -> Any:
        if attributes and custom_call_api_version < _TYPED_FFI:
            raise ArgumentError(
                f"attributes of {target_name!r} need custom_call_api_version {_TYPED_FFI}; got "
                f"{custom_call_api_version}"
            )
        shapes = [np.shape(x) for x in args]
        made = custom_call(
            target_name,
            args,
            results,
            has_side_effect=has_side_effect,
            backend_config=(
                attributes if custom_call_api_version >= _TYPED_FFI else legacy_backend_config
            ),
            api_version=custom_call_api_version,
            operand_layouts=_minor_to_major("input_layouts", input_layouts, shapes),
            result_layouts=_minor_to_major(
                "output_layouts", output_layouts, [r.shape for r in results]
            ),
            output_operand_aliases=_aliases(input_output_aliases, args, results),
        )
        if not several:
            return made[0]
        return tuple(made) if isinstance(result_shape_dtypes, tuple) else made

    return call


def _minor_to_major(
    name: str, layouts: Sequence[Sequence[int] | None] | None, shapes: Sequence[tuple[int, ...]]
) -> list[list[int]]:
    given = [None] * len(shapes) if layouts is None else list(layouts)
    if len(given) != len(shapes):
        raise ArgumentError(f"{name} of ffi_call has {len(given)} layouts for {len(shapes)} arrays")
    orders = []
    for layout, shape in zip(given, shapes, strict=True):
        order = list(range(len(shape)) if layout is None else layout)
        if sorted(order) != [*range(len(shape))]:
            raise ArgumentError(f"{name} of ffi_call: {layout!r} orders no array of shape {shape}")
        orders.append(order[::-1])
    return orders


def _aliases(
    aliases: Mapping[int, int] | None, args: Sequence[object], results: Sequence[object]
) -> dict[int, int]:
    found = {}
    for i, o in (aliases or {}).items():
        if not 0 <= i < len(args) or not 0 <= o < len(results):
            raise ArgumentError(
                f"input_output_aliases of ffi_call has {i}: {o}, for {len(args)} arguments and "
                f"{len(results)} results"
            )
        found[int(o)] = int(i)
    return found
