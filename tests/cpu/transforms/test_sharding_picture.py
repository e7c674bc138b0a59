"""`debug.draw_sharding`: pictures of the parts of each device."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import plugrt
from plugrt import devices, get_backend
from plugrt.debug import draw_array_sharding, draw_sharding
from plugrt.errors import ArgumentError, ArgumentTypeError, NotAnArray, ShapeError
from plugrt.sharding import Mesh, NamedSharding
from plugrt.sharding import PartitionSpec as P
from support import chromium
from support.behaviour import behaviour

SVG = "{http://www.w3.org/2000/svg}"


def over(*spec: Any) -> NamedSharding:
    grid = np.array(devices()[:8]).reshape(2, 4)
    return NamedSharding(Mesh(grid, ("x", "y")), P(*spec))


def read_parts(picture: Any) -> list[tuple[str, tuple[float, ...], list[str]]]:
    """Returns the tooltip, the rectangle (x, y, width, height) and the text of each part."""
    found = []
    for group in ElementTree.fromstring(picture.svg).iter(f"{SVG}g"):
        box = group.find(f"{SVG}rect")
        sides = tuple(float(box.get(k)) for k in ("x", "y", "width", "height"))
        words = [text.text or "" for text in group.findall(f"{SVG}text")]
        found.append((group.find(f"{SVG}title").text or "", sides, words))
    return found


@behaviour(103, "`debug.draw_sharding` is a picture: a rectangle for each part, in proportion",
           jax="prints alone")  # fmt: skip
@pytest.mark.parametrize(
    ("shape", "spec"),
    [((8, 16), ("x", "y")), ((16, 8), ("y",)), ((8, 8), (None, "x")), ((8, 4), ()), ((8,), ("y",)),
     ((400, 4), ("y", "x"))],
)  # fmt: skip
def test_a_picture_has_each_part_where_it_lies(
    shape: tuple[int, ...], spec: tuple[Any, ...]
) -> None:
    sharding = over(*spec)
    picture = draw_sharding(shape, sharding, width=320)
    parts = read_parts(picture)
    name = get_backend().platform.upper()
    expected: dict[str, list[int]] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        ends = [i.indices(n)[:2] for i, n in zip(index, shape, strict=True)]
        place = ", ".join(f"{a}:{b}" for a, b in ends)
        expected.setdefault(f"[{place}]", []).append(device.id)
    titles = {f"{name} {','.join(map(str, sorted(v)))} {k}" for k, v in expected.items()}
    assert {title for title, _, _ in parts} == titles
    whole = sum(width * height for _, (_, _, width, height), _ in parts)
    right = max(x + width for _, (x, _, width, _), _ in parts)
    bottom = max(y + height for _, (_, y, _, height), _ in parts)
    assert right == pytest.approx(320, abs=0.1)
    assert whole == pytest.approx(right * bottom, rel=1e-2)
    ratio = min(shape[0] / shape[1], 4) if len(shape) == 2 else 0.15
    assert bottom == pytest.approx(320 * ratio, abs=0.1)
    for title, _, words in parts:
        assert title.startswith(" ".join(words))
    x, y, width, height = parts[-1][1]
    assert (x + width, y + height) == (pytest.approx(right), pytest.approx(bottom))


def test_labels_without_space_are_omitted() -> None:
    narrow = draw_sharding((8, 8), over("x", "y"), width=40)
    assert [words for _, _, words in read_parts(narrow)] == [[]] * 8
    wide = draw_sharding((8, 8), over("x", "y"), width=800)
    assert all(len(words) == 2 for _, _, words in read_parts(wide))


def test_colours_are_those_that_are_printed_or_given() -> None:
    plain = draw_sharding((8, 8), over("x", "y")).svg
    grounds = [rect.get("fill") for rect in ElementTree.fromstring(plain).iter(f"{SVG}rect")]
    assert len(set(grounds)) == 8
    assert "fill='#0000ff'" in draw_sharding((8,), over("x"), color_map=lambda at: (at, 0, 1)).svg


def test_notebooks_and_files_get_it(tmp_path: Path) -> None:
    x = plugrt.device_put(np.ones((4, 4), np.float32), over("x"))
    picture = draw_array_sharding(x)
    assert repr(picture) == "ShardingPicture((4, 4), 2 parts)"
    assert picture._repr_html_() == picture._repr_svg_() == picture.svg
    picture.save(tmp_path / "parts.svg")
    assert (tmp_path / "parts.svg").read_text(encoding="utf-8") == picture.svg


@pytest.mark.skipif(chromium.PROGRAM is None, reason="no Chromium here")
def test_a_browser_shows_it(tmp_path: Path) -> None:
    file = tmp_path / "picture.html"
    file.write_text(f"<body>{draw_sharding((8, 16), over('x', 'y'))._repr_html_()}", "utf-8")
    with chromium.page(tmp_path / "profile") as page:
        page.open(file, 600)
        inside = page.evaluate(
            "[...document.querySelectorAll('g')].every(g => { const b = g.querySelector('rect')"
            ".getBoundingClientRect(); return [...g.querySelectorAll('text')].every(t => {"
            " const r = t.getBoundingClientRect(); return r.left >= b.left && r.right <= b.right"
            " && r.top >= b.top && r.bottom <= b.bottom; }); })"
        )
    assert inside is True


def test_wrong_uses() -> None:
    for shape in ((), (2, 2, 2), (0, 4)):
        with pytest.raises(ShapeError, match="draw_sharding draws arrays of 1 and 2 dimensions"):
            draw_sharding(shape, over("x"))
    with pytest.raises(ShapeError, match="size 3 cannot be divided by 2"):
        draw_sharding((3, 4), over("x"))
    with pytest.raises(ArgumentTypeError, match="takes a sharding; got 'x'"):
        draw_sharding((4,), "x")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="width of draw_sharding"):
        draw_sharding((4,), over("x"), width=0)
    with pytest.raises(NotAnArray, match="takes an array on devices; got 3"):
        draw_array_sharding(3)  # type: ignore[arg-type]
