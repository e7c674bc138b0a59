"""Pictures of shardings: the same text as JAX's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import devices, get_backend
from plugrt.errors import ArgumentTypeError, NotAnArray, ShapeError
from plugrt.sharding import Mesh, NamedSharding, PmapSharding, SingleDeviceSharding
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour
from support.jax_oracle import jax


def grid() -> Mesh:
    return Mesh(np.array(devices()[:8]).reshape(2, 4), ("x", "y"))


CASES: list[tuple[tuple[int, ...], tuple[Any, ...], dict[str, Any]]] = [
    ((8, 16), ("x", "y"), {}),
    ((8, 16), ("y", "x"), {"scale": 2.0}),
    ((16, 8), (("x", "y"),), {}),
    ((8, 8), (None, "y"), {"min_width": 3}),
    ((8, 8), (), {"max_width": 40}),
    ((8,), ("y",), {}),
    ((8,), (("y", "x"),), {"min_width": 12, "max_width": 120}),
    ((4, 64), ("x",), {}),
]


@behaviour(103, "`debug.visualize_sharding` draws which devices have which part")
@pytest.mark.parametrize(("shape", "spec", "options"), CASES)
def test_text(
    shape: tuple[int, ...],
    spec: tuple[Any, ...],
    options: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    plugrt.debug.visualize_sharding(
        shape, NamedSharding(grid(), P(*spec)), use_color=False, **options
    )
    found = capsys.readouterr().out
    there = jax.sharding.Mesh(np.array(jax.devices()[:8]).reshape(2, 4), ("x", "y"))
    sharding = jax.sharding.NamedSharding(there, jax.sharding.PartitionSpec(*spec))
    jax.debug.visualize_sharding(shape, sharding, use_color=False, **options)
    expected = capsys.readouterr().out
    if devices()[0].platform.upper() == "CPU":
        assert found == expected
    assert (found.count("┌"), found.count("┘")) == (1, 1)


def test_colours(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    sharding = NamedSharding(grid(), P("x", "y"))
    plugrt.debug.visualize_sharding((8, 8), sharding)
    own = capsys.readouterr().out
    assert len({part.split("m")[0] for part in own.split(";48;2;")[1:]}) == 8
    assert "│" not in own
    plugrt.debug.visualize_sharding((8, 8), sharding, color_map=lambda at: (at, 0, 1, 1))
    assert ";48;2;0;0;255m" in capsys.readouterr().out


@behaviour(103, "`debug.visualize_array_sharding` and `inspect_array_sharding` look at arrays",
           jax="looks at traced ones, too, when they are compiled")  # fmt: skip
def test_arrays(capsys: pytest.CaptureFixture[str]) -> None:
    host = np.ones((4, 4), np.float32)
    shardings = [
        PmapSharding(devices()[:4]),
        SingleDeviceSharding(devices()[2]),
        NamedSharding(grid(), P("y")),
    ]
    arrays = [plugrt.device_put(host, sharding) for sharding in shardings]
    seen: list[Any] = []
    plugrt.debug.inspect_array_sharding({"a": arrays[:2], "b": arrays[2]}, callback=seen.append)
    assert seen == shardings
    for x in arrays:
        plugrt.debug.visualize_array_sharding(x, use_color=False)
    text = capsys.readouterr().out
    name = get_backend().platform.upper()
    ids = [device.id for device in devices()]
    assert f"{name} {ids[0]},{ids[4]}" in text
    assert text.count("┌") == 3
    assert text.count("├") == 3 + 3


def test_wrong_uses() -> None:
    rows = NamedSharding(grid(), P("x"))
    for shape in ((), (2, 2, 2), (0, 4)):
        with pytest.raises(ShapeError, match="draws arrays of 1 and 2 dimensions"):
            plugrt.debug.visualize_sharding(shape, rows)
    with pytest.raises(ShapeError, match="size 3 cannot be divided by 2: pad it to 4"):
        plugrt.debug.visualize_sharding((3, 4), rows)
    with pytest.raises(ArgumentTypeError, match="takes a sharding; got 'x'"):
        plugrt.debug.visualize_sharding((4,), "x")  # type: ignore[arg-type]
    with pytest.raises(NotAnArray, match="which is traced: a trace serves all shardings"):
        plugrt.jit(lambda v: plugrt.debug.inspect_array_sharding(v, callback=print))(1)
    with pytest.raises(NotAnArray, match="takes arrays on devices; got 3"):
        plugrt.debug.visualize_array_sharding(3)  # type: ignore[arg-type]
