"""Programs of torch_xla: the metadata of the bundle name each parameter of the module."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from plugrt.models.torch_source import TorchProgram
from support.models import SCALE


def location(kind: str, position: int = -1, name: str = "") -> Any:
    return SimpleNamespace(type_=SimpleNamespace(name=kind), position=position, name=name)


def test_parameters_and_constants_of_torch_xla_are_weights() -> None:
    """With a fake bundle that has the attributes of torch_xla 2.9."""
    meta = SimpleNamespace(
        name="forward",
        input_locations=[
            location("PARAMETER", name="scale.weight"),
            location("INPUT_ARG", 1),
            location("CONSTANT", 0),
        ],
    )
    bundle = SimpleNamespace(
        stablehlo_funcs=[SimpleNamespace(meta=meta, bytecode=SCALE)],
        state_dict={"scale.weight": np.float32([1, 2, 3]), "unused": np.float32([0])},
        additional_constants=[np.float32([1, 1, 1])],
    )
    found = TorchProgram.of(bundle)
    assert found.order(["unused", "x"]) == ["scale.weight", "x", "constant0"]
    assert {name: array.tolist() for name, array in found.weights.items()} == {
        "scale.weight": [1, 2, 3],
        "constant0": [1, 1, 1],
    }
