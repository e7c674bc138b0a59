"""`Layout`: the order of an array's elements in a device's memory."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from plugrt.errors import ArgumentTypeError, InvalidArgument

__all__ = ["AutoLayout", "Layout"]


class AutoLayout:
    """The class of ``Layout.AUTO``: the compiler chooses."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "AUTO"

    def __reduce__(self) -> str:
        return "_AUTO"


_AUTO = AutoLayout()
_TEXT = r"\{([\d,]*)(?::(.*))?\}"
_PART = r"([A-Z#*]+)((?:\([^()]*\))+)"
_IN_PARENTHESES = r"\(([^()]*)\)"


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of an array's dimensions in memory, and its tiles.

    ``major_to_minor`` lists the dimensions from the slowest to the fastest varying: ``(0, 1)`` is
    NumPy's C order of a matrix, ``(1, 0)`` Fortran's. ``tiling`` are the shapes of XLA's tiles, one
    inside the other; None leaves them to the device. ``sub_byte_element_size_in_bits`` is the size
    of packed elements, 0 if an element uses whole bytes. ``Layout.AUTO``, in a `Format`, leaves the
    choice to the compiler.

    As ``jax.experimental.layout.Layout``, except that an order that is no permutation raises
    `InvalidArgument` here, and not at its first use.

    >>> plugrt.layout.Layout((1, 0))
    Layout(major_to_minor=(1, 0), tiling=None, sub_byte_element_size_in_bits=0)
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    AUTO: ClassVar[AutoLayout] = _AUTO

    def __post_init__(self) -> None:
        order = _integers(self.major_to_minor, "major_to_minor")
        if sorted(order) != list(range(len(order))):
            raise InvalidArgument(
                f"a layout's major_to_minor names each dimension once; got {order}. "
                f"{tuple(range(len(order)))} is row-major"
            )
        tiling = self.tiling
        if tiling is not None:
            if not isinstance(tiling, Iterable):
                raise ArgumentTypeError(f"a layout's tiling is tuples of sizes; got {tiling!r:.60}")
            tiling = tuple(_integers(tile, "tile") for tile in tiling)
        object.__setattr__(self, "major_to_minor", order)
        object.__setattr__(self, "tiling", tiling)

    @classmethod
    def row_major(cls, rank: int) -> Layout:
        """Returns C order for arrays of that many dimensions, without tiles."""
        return cls(tuple(range(rank)), ())

    @classmethod
    def from_text(cls, text: str) -> Layout:
        """Parses a layout in XLA's notation, such as ``{0,1:T(8,128)(2,1)E(4)}``.

        Ignores other parts, such as the number of a memory, as JAX does. Raises `InvalidArgument`
        for any other text.
        """
        found = re.fullmatch(_TEXT, text)
        try:
            if found is None:
                raise ValueError(text)
            minor_to_major = [int(n) for n in found[1].split(",") if n]
            parts = dict(re.findall(_PART, found[2] or ""))
            tiles = [
                tuple(int(n) for n in tile.split(","))
                for tile in re.findall(_IN_PARENTHESES, parts.get("T", ""))
            ]
            bits = int(parts.get("E", "(0)").strip("()"))
        except ValueError:
            raise InvalidArgument(
                f"{text!r:.80} is not a layout as XLA writes it, such as {{1,0:T(8,128)}}"
            ) from None
        return cls(tuple(reversed(minor_to_major)), tuple(tiles), bits)

    @property
    def text(self) -> str:
        """The layout as XLA writes it, minor dimension first."""
        order = ",".join(map(str, reversed(self.major_to_minor)))
        tiles = "".join(f"({','.join(map(str, tile))})" for tile in self.tiling or ())
        bits = self.sub_byte_element_size_in_bits
        more = (f"T{tiles}" if tiles else "") + (f"E({bits})" if bits else "")
        return f"{{{order}:{more}}}" if more else f"{{{order}}}"

    @property
    def is_row_major(self) -> bool:
        """Whether the elements are in C order, without tiles."""
        return not self.tiling and self.major_to_minor == tuple(range(len(self.major_to_minor)))

    def is_met_by(self, found: Layout) -> bool:
        """Whether an array with the layout ``found`` has the layout that this one requests.

        If this one has no tiles, only the order is compared, as in JAX.
        """
        if not self.tiling:
            return self.major_to_minor == found.major_to_minor
        return self == found


def _integers(values: object, what: str) -> tuple[int, ...]:
    try:
        return tuple(operator.index(n) for n in values)  # type: ignore[attr-defined]
    except TypeError:
        raise ArgumentTypeError(
            f"a layout's {what} is a tuple of integers; got {values!r:.60}"
        ) from None
