"""Programs of torch_xla: the metadata of the bundle name each parameter of the module."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import plugrt
from plugrt.models.sources import read_torch_bundle
from support.models import SCALE


def location(kind: str, position: int = -1, name: str = "") -> Any:
    return SimpleNamespace(type_=SimpleNamespace(name=kind), position=position, name=name)


def test_parameters_and_constants_of_torch_xla_are_weights(tmp_path: Path) -> None:
    """A stand-in for the bundle, with the attributes that torch_xla 2.9 has."""
    locations = [location("PARAMETER", name="scale.weight"), location("INPUT_ARG", 0),
                 location("CONSTANT", 0)]  # fmt: skip
    meta = SimpleNamespace(name="forward", input_locations=locations)
    function = SimpleNamespace(meta=meta, bytecode=SCALE)
    weight, constant = np.float32([1, 2, 3]), np.float32([1, 1, 1])
    source = read_torch_bundle(function, {"scale.weight": weight}, [constant], ("x",), ("y", "z"))
    assert [v.name for v in source.arguments] == ["scale.weight", "x", "constant0"]
    assert {name: array.tolist() for name, array in source.weights.items()} == {
        "scale.weight": [1, 2, 3], "constant0": [1, 1, 1],
    }  # fmt: skip
    plugrt.pack_model(
        tmp_path / "m", source.make_module(None, {}), names=("scale.weight", "x", "constant0"),
        outputs=("y", "z"), weights=source.weights,
    )  # fmt: skip
    found = plugrt.load_model(tmp_path / "m")(x=np.float32([1, 2, 3]))
    assert found["y"].tolist() == [2, 6, 12]
