"""`reduce_window`, and the padding of windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from plugrt.errors import ArgumentError
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lax.control_flow.eager import launch
from plugrt.lax.control_flow.regions import closed_region
from plugrt.lax.dimension_arguments import per_dimension
from plugrt.lax.reductions import check_initial, flatten_computation
from plugrt.tracing.emit import active_trace, hlo, with_weakness, wrap
from plugrt.tracing.tracer import Tracer

Padding: TypeAlias = str | Sequence[tuple[int, int]]
"""'SAME', 'SAME_LOWER', 'VALID', or the padding (before, after) of each dimension."""


def compute_padding(
    function: str,
    padding: Padding,
    lengths: Sequence[int],
    windows: Sequence[int],
    strides: Sequence[int],
) -> list[tuple[int, int]]:
    """Returns the padding (before, after) of each dimension, for windows that move by strides.

    'SAME' pads so that there is a window for each stride, with an odd element at the end
    ('SAME_LOWER': at the beginning); 'VALID' does not pad.
    """
    if not isinstance(padding, str):
        pairs = [(int(low), int(high)) for low, high in padding]
        if len(pairs) != len(lengths):
            raise ArgumentError(
                f"padding of lax.{function} needs (low, high) for each of {len(lengths)} "
                f"dimensions; got {pairs}"
            )
        return pairs
    name = padding.upper()
    if name == "VALID":
        return [(0, 0)] * len(lengths)
    if name not in ("SAME", "SAME_LOWER"):
        raise ArgumentError(
            f"padding of lax.{function} is 'SAME', 'SAME_LOWER', 'VALID' or pairs; got {padding!r}"
        )
    found = []
    for length, window, stride in zip(lengths, windows, strides, strict=True):
        count = -(-length // stride)
        total = max((count - 1) * stride + window - length, 0)
        low = total // 2 if name == "SAME" else total - total // 2
        found.append((low, total - low))
    return found


@with_argument_errors
def reduce_window(
    operand: object,
    init_value: object,
    computation: Callable[[Any, Any], object],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Returns arrays of one shape, a pytree, reduced over windows that move by strides.

    ``init_value`` holds scalars of the same dtypes, which also fill the padding; ``computation``
    maps two trees of scalars to one, and may capture no arrays. Any dtypes. Raises `ShapeError` or
    `DtypeError` if arrays and initial values do not match, `ArgumentError` for wrong windows,
    strides, padding or dilations. As ``jax.lax.reduce_window``, except that a result is weakly
    typed if operand and initial value are.

    >>> x = xp.asarray([1.0, 5.0, 2.0, 3.0])
    >>> lax.reduce_window(x, -xp.inf, lax.max, (2,), (2,))
    Array([5., 3.], dtype=float32)
    """

    def run(operand: object, init_value: object) -> Any:
        arrays, spec = pytrees.flatten(operand)
        initial = pytrees.flatten(init_value)[0]
        starts = check_initial("reduce_window", arrays, initial)
        windows = read_windows(
            arrays[0].shape,
            window_dimensions,
            window_strides,
            padding,
            base_dilation,
            window_dilation,
        )
        combine = flatten_computation("reduce_window", computation, spec)
        made = _emit_reduce_window(arrays, starts, windows, combine)
        weak = [x.weak and first.weak for x, first in zip(arrays, initial, strict=True)]
        return pytrees.unflatten(spec, list(map(with_weakness, made, weak)))

    static = tuple(
        repr(x)
        for x in (window_dimensions, window_strides, padding, base_dilation, window_dilation)
    )
    operands = {"operand": operand, "init_value": init_value}
    return launch("reduce_window", (computation,), static, operands, run, reads_once=True)


class Windows(NamedTuple):
    """The windows of `reduce_window` in each dimension, and the shape of its result."""

    shape: tuple[int, ...]
    sizes: list[int]
    strides: list[int]
    base_dilations: list[int]
    window_dilations: list[int]
    padding: npt.NDArray[np.int64]


def read_windows(
    shape: tuple[int, ...],
    window: Sequence[int],
    strides: Sequence[int] | None,
    padding: Padding,
    base_dilation: Sequence[int] | None,
    window_dilation: Sequence[int] | None,
) -> Windows:
    """Returns the windows that the arguments of `reduce_window` describe."""
    name = "reduce_window"
    sizes = per_dimension(name, "window_dimensions", window, len(shape))
    steps = per_dimension(name, "window_strides", strides, len(shape))
    base = per_dimension(name, "base_dilation", base_dilation, len(shape))
    dilation = per_dimension(name, "window_dilation", window_dilation, len(shape))
    lengths = [0 if n == 0 else (n - 1) * d + 1 for n, d in zip(shape, base, strict=True)]
    reach = [(n - 1) * d + 1 for n, d in zip(sizes, dilation, strict=True)]
    padded = compute_padding(name, padding, lengths, reach, steps)
    result = tuple(
        max((n + sum(p) - w) // s + 1, 0)
        for n, p, w, s in zip(lengths, padded, reach, steps, strict=True)
    )
    pads = np.asarray(padded, np.int64).reshape(-1, 2)
    return Windows(result, sizes, steps, base, dilation, pads)


def _emit_reduce_window(
    arrays: Sequence[Tracer],
    starts: Sequence[Tracer],
    windows: Windows,
    combine: Callable[..., list[Tracer]],
) -> list[Tracer]:
    trace = active_trace()
    operation = hlo.ReduceWindowOp(
        [trace.mlir_type(windows.shape, x.dtype) for x in arrays],
        [x.value for x in arrays],
        [x.value for x in starts],
        windows.sizes,
        window_strides=windows.strides,
        base_dilations=windows.base_dilations,
        window_dilations=windows.window_dilations,
        padding=windows.padding,
        loc=trace.location(),
    )
    closed_region("reduce_window", operation, [x.dtype for x in (*arrays, *arrays)], combine)
    return list(wrap(operation))
