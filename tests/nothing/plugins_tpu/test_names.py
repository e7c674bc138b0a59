"""The names and options of TPU topologies in libtpu's form."""

from __future__ import annotations

from typing import Any

import pytest

from plugrt.errors import InvalidArgument
from plugrt_tpu import topologies


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("v5e:2x2", "v5e:2x2"),
        ("V5E:2x2", "v5e:2x2"),
        ("TPU v5e:2x2", "v5e:2x2"),
        ("v5litepod-8", "v5e:2x4"),
        ("v6e-4", "v6e:2x2"),
        ("trillium:4x4", "v6e:4x4"),
        ("ironwood:2x2x1", "tpu7x:2x2x1"),
        ("v4-8", "v4-8"),
        ("v4:2x2x4_twisted", "v4:2x2x4_twisted"),
        ("v9:1x1", "v9:1x1"),  # libtpu decides which generations exist
    ],
)
def test_names(name: str, expected: str) -> None:
    assert topologies.library_name(name) == expected


@pytest.mark.parametrize("name", ["", "nonsense", "v5e", "v5e:", "v5e:two", "v5e:2x2 v4", "v5e-5"])
def test_bad_names_are_refused_with_the_grammar(name: str) -> None:
    with pytest.raises(InvalidArgument, match="GENERATION:SHAPE") as caught:
        topologies.library_name(name)
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"chips_per_host_bounds": [3, 3]}, {"chips_per_host_bounds": [3, 3, 1]}),
        ({"chips_per_host_bounds": "2x4"}, {"chips_per_host_bounds": [2, 4, 1]}),
        ({"wrap": [1]}, {"wrap": [1, 0, 0]}),
        ({"num_slices": 2, "chip_config_name": "default"},) * 2,
    ],
)
def test_options(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert topologies.library_options(given) == expected


@pytest.mark.parametrize("value", ["two", 2, [], [1, 2, 3, 4]])
def test_bounds_must_be_three_numbers(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="up to three whole numbers"):
        topologies.library_options({"wrap": value})


def test_a_shape_that_no_host_has_gets_the_option_that_helps() -> None:
    said = InvalidArgument('not divisible by the given (or default) chips_per_host_bounds "2x2x1"')
    refusal = str(topologies.explain_refusal("v5e:3x3", {}, said))
    assert "chips_per_host_bounds=3,3,1" in refusal
    assert "GENERATION" in str(
        topologies.explain_refusal("v5e:3x3", {"chips_per_host_bounds": [2]}, said)
    )
