"""The names of TPU topologies, and the error for a name that libtpu does not know."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod

from plugrt.errors import InvalidArgument
from plugrt.interface import OptionValue

GRAMMAR = (
    "a name is GENERATION:SHAPE with the generations v2, v3, v4, v5p, v5e, v6e and tpu7x, and the "
    "number of chips in each direction as the shape (2x2 for v2, v3, v5e and v6e; 2x2x1 for the "
    "others): v5e:2x2, v4:4x4x4, v6e:4x8. Cloud names such as v5litepod-8 and v6e-8 mean the usual "
    "shape of that many chips. Options: chips_per_host_bounds=2,2,1, num_slices=2, wrap=1,1,1"
)
_GENERATIONS = {
    "v5litepod": "v5e",
    "v5lite": "v5e",
    "v7x": "tpu7x",
    "v7": "tpu7x",
    "ironwood": "tpu7x",
    "trillium": "v6e",
}
_SQUARE = {
    1: "1x1", 4: "2x2", 8: "2x4", 16: "4x4", 32: "4x8", 64: "8x8", 128: "8x16", 256: "16x16",
}  # fmt: skip
"""Chips to shape, for generations whose slices are planes of chips with one core each."""
_PLANAR = ("v5e", "v6e")
_NAME = re.compile(r"(?P<generation>[a-z0-9]+)(?P<mark>[:=_-])(?P<size>[0-9x]+)(?P<rest>\w*)")


def library_name(name: str) -> str:
    """Returns libtpu's name of a topology; `InvalidArgument` with the grammar for an invalid one.

    Ignores case and a leading ``TPU``, and accepts the other names of a generation; for v5e and
    v6e the number of chips may replace the shape.
    """
    found = _NAME.fullmatch(name.strip().lower().removeprefix("tpu ").strip())
    if found is None:
        raise InvalidArgument(f"{name!r} names no TPU topology; {GRAMMAR}")
    generation = _GENERATIONS.get(found["generation"], found["generation"])
    if found["mark"] == "-" and generation in _PLANAR:
        chips = int(found["size"]) if found["size"].isdecimal() else 0
        if chips not in _SQUARE:
            raise InvalidArgument(
                f"{name!r}: {generation} slices have {', '.join(map(str, _SQUARE))} chips; give "
                f"another shape as such. {GRAMMAR}"
            )
        return f"{generation}:{_SQUARE[chips]}"
    return f"{generation}{found['mark']}{found['size']}{found['rest']}"


def library_options(options: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """Returns the options with bounds and wrap as three numbers, the form that libtpu accepts.

    A list may have fewer numbers (the rest is 1, for wrap 0), or be text such as ``2x2``.
    """
    ready = dict(options)
    for key, rest in (("chips_per_host_bounds", 1), ("wrap", 0)):
        if key not in ready:
            continue
        value = ready[key]
        if isinstance(value, str) and re.fullmatch(r"\d+(x\d+)*", value):
            value = [int(part) for part in value.split("x")]
        if not isinstance(value, list) or not 0 < len(value) <= 3:
            raise InvalidArgument(
                f"the option {key} of a TPU topology is up to three whole numbers, such as "
                f"{key}=2,2,1; it is {options[key]!r}"
            )
        ready[key] = [*map(int, value), *[rest] * (3 - len(value))]
    return ready


def explain_refusal(
    name: str, options: Mapping[str, OptionValue], error: InvalidArgument
) -> Exception:
    """Returns libtpu's refusal with the requested name and the possible ones."""
    hint = GRAMMAR
    if "chips_per_host_bounds" in error.message and "chips_per_host_bounds" not in options:
        shape = [int(n) for n in re.findall(r"\d+", name.partition(":")[2])]
        bounds = ",".join(map(str, [*shape, 1, 1][:3]))
        hint = (
            f"if all {prod(shape)} chips are on one host, add the option "
            f"chips_per_host_bounds={bounds}"
        )
    asked = f" with {dict(options)}" if options else ""
    return InvalidArgument(f"libtpu has no topology {name!r}{asked}: {error.message}; {hint}")
