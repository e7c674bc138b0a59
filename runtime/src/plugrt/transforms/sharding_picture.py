"""`draw_sharding` and `draw_array_sharding`: the devices' parts of an array as an SVG picture."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from os import PathLike
from pathlib import Path

from plugrt.errors import ArgumentError, NotAnArray
from plugrt.execution.arrays.array import Array
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.transforms.visualize import ColorMap, Part, check_drawn, choose_colors, find_parts

_SMALLEST, _LARGEST = 5, 14  # sizes of letters, in pixels
_LETTER = 0.62  # the width of one, by its size
_MARGIN = 26
_FONT = "text-anchor='middle' font-family='ui-monospace, Menlo, Consolas, monospace'"
_ID_LIMIT = 16


class ShardingPicture:
    """A picture of an array's parts. Notebooks show it; ``svg`` is its source.

    It has a proportional rectangle for each part, with its devices and its place in the array, also
    as a tooltip.
    """

    def __init__(self, shape: tuple[int, ...], svg: str) -> None:
        self.shape, self.svg = shape, svg

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the picture into a file; raises `OSError` if that fails."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def __repr__(self) -> str:
        return f"ShardingPicture({self.shape}, {self.svg.count('<rect')} parts)"


@with_argument_errors
def draw_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    width: int = 480,
    color_map: ColorMap | None = None,
) -> ShardingPicture:
    """Returns a picture of the devices' parts of an array of one or two dimensions.

    The parts are ``width`` pixels wide in all, and proportionally high, between a quarter and four
    times that. ``color_map`` is as for `visualize_sharding`, which prints the same. JAX has no
    picture. Raises `ShapeError` for other shapes and for one that the sharding does not divide,
    `ArgumentError` for a width that is not positive.

    >>> from plugrt.sharding import NamedSharding, PartitionSpec as P
    >>> rows = NamedSharding(plugrt.make_mesh((2,), ("x",)), P("x"))
    >>> plugrt.debug.draw_sharding((4, 2), rows)  # in a notebook: the picture
    ShardingPicture((4, 2), 2 parts)
    """
    sizes = check_drawn("draw_sharding", shape, sharding)
    if width < 1:
        raise ArgumentError(f"width of draw_sharding is a number of pixels above 0; got {width}")
    parts = [part for row in find_parts(sizes, sharding) for part in row]
    rows, columns = (1, *sizes) if len(sizes) == 1 else sizes
    height = 48.0 if len(sizes) == 1 else width * min(max(rows / columns, 0.25), 4.0)
    across, down = width / columns, height / rows
    labels = [(_shorten(part.label), _place(part, len(sizes))) for part in parts]
    letters = _letter_sizes(parts, labels, (across, down))
    drawn = [
        _draw(part, labels[i], letters, (across, down), choose_colors(i, len(parts), color_map))
        for i, part in enumerate(parts)
    ]
    margin = _MARGIN if len(sizes) == 2 else 2
    box = f"{-margin} {-_MARGIN} {width + margin + 2:g} {height + _MARGIN + 2:g}"
    title = f"an array of shape {sizes} on {len(sharding.devices)} devices"
    captions = [_caption(width / 2, -8, str(columns))]
    if len(sizes) == 2:
        captions.append(_caption(-10, height / 2, str(rows), "rotate(-90)"))
    svg = (
        f"<svg xmlns='http://www.w3.org/2000/svg' role='img' viewBox='{box}' "
        f"width='{width + margin + 2:g}' height='{height + _MARGIN + 2:g}'>\n"
        f"<title>{escape(title)}</title>\n" + "\n".join([*captions, *drawn]) + "\n</svg>\n"
    )
    return ShardingPicture(sizes, svg)


def _letter_sizes(
    parts: Sequence[Part], labels: Sequence[tuple[str, str]], scale: tuple[float, float]
) -> list[float]:
    """Returns the letter sizes for a part's lines that fit in all parts."""

    def fit(line: int) -> float:
        return min(
            (part.right - part.left) * scale[0] / (_LETTER * len(label[line]) + 1)
            for part, label in zip(parts, labels, strict=True)
        )

    high = min((part.bottom - part.top) * scale[1] for part in parts)
    size = min(_LARGEST, fit(0), high / 1.5)
    small = min(0.8 * size, fit(1))
    if size < _SMALLEST:
        return []
    return [size, small] if small >= _SMALLEST and high >= 3 * size else [size]


def _draw(
    part: Part,
    lines: Sequence[str],
    letters: Sequence[float],
    scale: tuple[float, float],
    colors: tuple[str, str],
) -> str:
    """Returns the SVG of one part: its rectangle, and its lines that have a letter size."""
    x, y = part.left * scale[0], part.top * scale[1]
    wide, high = (part.right - part.left) * scale[0], (part.bottom - part.top) * scale[1]
    step = 1.3 * max(letters, default=0.0)
    middle, first = x + wide / 2, y + high / 2 - step / 2 * (len(letters) - 1)
    words = "".join(
        f"<text x='{middle:.2f}' y='{first + step * i:.2f}' fill='{colors[0]}' "
        f"font-size='{size:.1f}' dominant-baseline='central' {_FONT}>{escape(text)}</text>"
        for i, (text, size) in enumerate(zip(lines, letters, strict=False))
    )
    return (
        f"<g><title>{escape(part.label)} {lines[1]}</title>"
        f"<rect x='{x:.2f}' y='{y:.2f}' width='{wide:.2f}' height='{high:.2f}' "
        f"fill='{colors[1]}' stroke='#ffffff'/>{words}</g>"
    )


def _place(part: Part, ndim: int) -> str:
    columns = f"{part.left}:{part.right}"
    return f"[{part.top}:{part.bottom}, {columns}]" if ndim == 2 else f"[{columns}]"


def _shorten(label: str) -> str:
    """Returns a label of many devices that lists a few of them, and their number."""
    ids = label.split(",")
    if len(ids) <= _ID_LIMIT:
        return label
    return f"{','.join(ids[:3])},…,{ids[-1]} ({len(ids)} devices)"


def _caption(x: float, y: float, text: str, transform: str = "") -> str:
    turned = f" transform='translate({x:g} {y:g}) {transform}'" if transform else ""
    at = "" if transform else f" x='{x:g}' y='{y:g}'"
    return f"<text{at}{turned} fill='#808080' font-size='12' {_FONT}>{text}</text>"


def draw_array_sharding(
    arr: Array, *, width: int = 480, color_map: ColorMap | None = None
) -> ShardingPicture:
    """Returns a picture of the devices' parts of an array; see `draw_sharding`.

    Raises the errors of `draw_sharding`, and `NotAnArray` for an object that is no array on
    devices.

    >>> plugrt.debug.draw_array_sharding(xp.ones(3))
    ShardingPicture((3,), 1 parts)
    """
    if type(arr) is not Array:
        raise NotAnArray(f"draw_array_sharding takes an array on devices; got {arr!r:.60}")
    return draw_sharding(arr.shape, arr.sharding, width=width, color_map=color_map)
