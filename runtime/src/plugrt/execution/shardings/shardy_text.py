"""Shardings as Shardy's attributes, ``#sdy.sharding<…>``, with their meshes in place."""

from __future__ import annotations

import json
from collections.abc import Sequence

from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.execution.shardings.tiling import Tiling


def shardy_text(sharding: Sharding, ndim: int, is_open: bool = False) -> str:
    """Returns the attribute for an array of ``ndim`` dimensions; see `sharding_body`."""
    return f"#sdy.sharding<{sharding_body(sharding, ndim, is_open)}>"


def sharding_body(sharding: Sharding, ndim: int, is_open: bool = False) -> str:
    """Returns the attribute's text for an array with ``ndim`` dimensions.

    Devices are numbered by their index in ``sharding.devices``. An axis of `NamedSharding` keeps
    its name; for other shardings a mesh with one axis for each divided dimension is written.
    Dimensions that are left to the compiler (``UNCONSTRAINED``), or all if ``is_open``, may be
    divided over further axes except Explicit ones.
    """
    if isinstance(sharding, NamedSharding):
        spec = sharding.spec
        axes = [(str(name), size) for name, size in sharding.mesh.shape.items()]
        own = [[*map(str, spec.axes_of(i))] for i in range(ndim)]
        left = [is_open or spec.is_unconstrained(i) for i in range(ndim)]
        named = {*spec.axis_names, *spec.unreduced}
        copies = [name for name in sharding.mesh.explicit_axes if any(left) and name not in named]
        terms = sorted(name for name in spec.unreduced if sharding.mesh.shape[name] > 1)
        return _text(axes, own, left, terms=terms, copies=copies)
    tiling = sharding.tiling(ndim)
    assert tiling is not None, sharding
    return tiling_body(tiling)


def tiling_body(tiling: Tiling) -> str:
    """Returns the attribute's text for a tiling: a mesh with one axis a divided dimension."""
    axes = [(f"_{i}", parts) for i, parts in enumerate(tiling.parts) if parts > 1]
    if tiling.terms:
        axes.append(("_terms", tiling.term_count))
    if tiling.copies > 1:
        axes.append(("_copies", tiling.copies))
    own = [[f"_{i}"] if parts > 1 else [] for i, parts in enumerate(tiling.parts)]
    order = tiling.order
    devices = [] if order == [*range(len(order))] else order
    terms = ["_terms"] if tiling.terms else []
    return _text(axes or [("_copies", len(order))], own, [False] * len(own), devices, terms)


def _text(
    axes: Sequence[tuple[str, int]],
    own: Sequence[Sequence[str]],
    is_open: Sequence[bool],
    devices: Sequence[int] = (),
    terms: Sequence[str] = (),
    copies: Sequence[str] = (),
) -> str:
    mesh = ", ".join(f"{json.dumps(name)}={size}" for name, size in axes)
    order = f", device_ids={list(devices)}" if devices else ""
    dimensions = ", ".join(
        "{" + ", ".join([*map(json.dumps, names), *["?"] * left]) + "}"
        for names, left in zip(own, is_open, strict=True)
    )
    summed = f", unreduced={{{', '.join(map(json.dumps, terms))}}}" if terms else ""
    whole = f", replicated={{{', '.join(map(json.dumps, copies))}}}" if copies else ""
    return f"mesh<[{mesh}]{order}>, [{dimensions}]{whole}{summed}"
