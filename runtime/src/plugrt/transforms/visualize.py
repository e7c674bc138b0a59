"""`visualize_sharding`, `visualize_array_sharding`: the devices' parts of an array as a table."""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from plugrt.errors import ArgumentTypeError, NotAnArray, ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.execution.shardings.sharding_base import Index, Sharding, read_shape
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors

ColorMap = Callable[[float], Sequence[float]]
"""Takes a number from 0 to 1 and returns red, green and blue in that range."""

_LINES = 10  # lines of an array at scale 1
_WIDER = 2.5  # a character's height by its width


@with_argument_errors
def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: ColorMap | None = None,
) -> None:
    """Prints the devices' parts of an array of one or two dimensions.

    In a terminal with colours each part has a colour, otherwise a frame. Parts are drawn in
    proportion, ``scale`` times ten lines high in all; none is narrower than ``min_width``
    characters, all together not wider than ``max_width``. As ``jax.debug.visualize_sharding``,
    which uses matplotlib's colours. Raises `ShapeError` for other shapes, and for one that the
    sharding does not divide.

    >>> from plugrt.sharding import NamedSharding, PartitionSpec as P
    >>> rows = NamedSharding(plugrt.make_mesh((2,), ("x",)), P("x"))
    >>> plugrt.debug.visualize_sharding((2,), rows, use_color=False, min_width=7)
    ┌───────┬───────┐
    │ CPU 0 │ CPU 1 │
    └───────┴───────┘
    """
    sizes = check_drawn("visualize_sharding", shape, sharding)
    # Not before: importing rich costs 30 ms.
    from rich.align import Align
    from rich.box import SQUARE
    from rich.console import Console
    from rich.padding import Padding
    from rich.style import Style
    from rich.table import Table

    console = Console(width=max_width)
    colored = use_color and console.color_system is not None
    table = Table(
        show_header=False, show_lines=not colored, padding=0, highlight=not colored,
        pad_edge=False, box=None if colored else SQUARE,
    )  # fmt: skip
    height = int(_LINES * scale)
    whole = (1, *sizes) if len(sizes) == 1 else sizes
    width = height * (whole[1] / whole[0] if len(sizes) == 2 else 1 / sizes[0]) * _WIDER
    rows = find_parts(sizes, sharding)
    for i, row in enumerate(rows):
        cells = []
        for j, part in enumerate(row):
            label = part.label
            lines = 1 if len(sizes) == 1 else int((part.bottom - part.top) / sizes[0] * height)
            share = (part.right - part.left) / sizes[-1]
            columns = min(max(int(share * int(width)), min_width), max_width)
            style = _style(i * len(row) + j, len(rows) * len(row), color_map) if colored else ""
            sides = _pad(lines, columns - len(label), 1 if colored else 0)
            cells.append(
                Padding(Align(label, "center", vertical="middle"), sides, style=Style.parse(style))
            )
        table.add_row(*cells)
    console.print(table, end="\n\n")


class Part(NamedTuple):
    """A part of an array of two dimensions (one dimension: a single row), and its devices."""

    label: str
    top: int
    bottom: int
    left: int
    right: int


def check_drawn(function: str, shape: Sequence[int], sharding: object) -> tuple[int, ...]:
    """Returns the shape of an array that can be drawn; raises `ShapeError` for others."""
    sizes = read_shape(shape)
    if len(sizes) not in (1, 2) or 0 in sizes:
        raise ShapeError(
            f"{function} draws arrays of 1 and 2 dimensions that have elements; got the shape "
            f"{sizes}"
        )
    if not isinstance(sharding, Sharding):
        raise ArgumentTypeError(f"{function} takes a sharding; got {sharding!r:.100}")
    return sizes


def find_parts(sizes: tuple[int, ...], sharding: Sharding) -> list[list[Part]]:
    """Returns rows of parts, with the devices of each."""
    found: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for device, index in sharding.devices_indices_map(sizes).items():
        found.setdefault(_ranges(index, sizes), []).append(device.id)
    name = sharding.devices[0].platform.upper()
    rows: dict[tuple[int, int], list[Part]] = {}
    for ranges, ids in sorted(found.items()):
        rows_of, columns = ranges if len(ranges) == 2 else ((0, 1), *ranges)
        label = f"{name} {','.join(map(str, sorted(ids)))}"
        rows.setdefault(rows_of, []).append(Part(label, *rows_of, *columns))
    return [*rows.values()]


def _ranges(index: Index, sizes: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    return tuple(
        i.indices(size)[:2] if isinstance(i, slice) else (i, i + 1)
        for i, size in zip(index, sizes, strict=True)
    )


def _pad(lines: int, columns: int, more: int) -> tuple[int, int, int, int]:
    """Returns the padding above, to the right, below and to the left of a label."""
    left, odd = divmod(columns - 2, 2)
    above, odd_line = divmod(lines - 2, 2)
    return (
        max(above + more, 0),
        max(left + odd + more, 0),
        max(above + odd_line + more, 0),
        max(left + more, 0),
    )


def _style(number: int, count: int, color_map: ColorMap | None) -> str:
    return " on ".join(choose_colors(number, count, color_map))


def choose_colors(number: int, count: int, color_map: ColorMap | None) -> tuple[str, str]:
    """Returns the colours of a part's text and background, as ``#rrggbb``."""
    at = number / max(1, count)
    red, green, blue = (
        [int(255 * part) for part in color_map(at)[:3]]
        if color_map is not None
        else [int(255 * part) for part in colorsys.hsv_to_rgb(at, 0.45, 0.75)]
    )
    text = "#000000" if red * 0.299 + green * 0.587 + blue * 0.114 > 186 else "#ffffff"
    return text, f"#{red:02x}{green:02x}{blue:02x}"


@with_argument_errors
def inspect_array_sharding(value: object, *, callback: Callable[[Sharding], None]) -> None:
    """Calls ``callback`` with the sharding of each array in a pytree.

    As ``jax.debug.inspect_array_sharding`` outside of traced functions. JAX calls within them, too,
    when a program is compiled; here that is `NotAnArray`, since a trace serves all shardings: ask
    the compiled function for its ``input_shardings`` and ``output_shardings``.

    >>> plugrt.debug.inspect_array_sharding(xp.ones(3), callback=lambda s: print(s.num_devices))
    1
    """
    for x in pytrees.leaves(value):
        if type(x) is not Array:
            raise NotAnArray(
                f"inspect_array_sharding takes arrays on devices; got {x!r:.60}"
                + (
                    ", which is traced: a trace serves all shardings"
                    if isinstance(x, Array)
                    else ""
                )
            )
        callback(x.sharding)


def visualize_array_sharding(arr: Array, **kwargs: Any) -> None:
    """Prints which devices have which part of an array; see `visualize_sharding`.

    As ``jax.debug.visualize_array_sharding``.

    >>> plugrt.debug.visualize_array_sharding(xp.ones(3), use_color=False)
    ┌─────────┐
    │  CPU 0  │
    └─────────┘
    """
    inspect_array_sharding(
        arr, callback=lambda sharding: visualize_sharding(arr.shape, sharding, **kwargs)
    )
