"""The donated parameters of a program, read from its optimised module."""

from __future__ import annotations

import pytest

from plugrt.capi.buffers.donated_arguments import can_donate, donated_parameters
from plugrt.interface import Program
from plugrt.wire.protobuf import integer, message
from support.shown_program import Shown

ALIASES = message(8, message(1, integer(2, 3)) + message(1, b""))
DONORS = message(18, message(1, integer(1, 5)))


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (Program(ALIASES + DONORS, "hlo"), {0, 3}),
        (Program(message(1, ALIASES), "hlo_with_config"), {0, 3}),
        (Program(b"", "hlo"), set()),
        (Program(ALIASES[:-1], "hlo"), None),
        (Program(ALIASES, "text"), None),
        (None, None),
    ],
    ids=["both", "with config", "none", "cut", "format", "not shown"],
)
def test_donated_parameters(program: Program | None, expected: set[int] | None) -> None:
    assert donated_parameters(Shown(program)) == expected


def test_may_donate() -> None:
    assert can_donate(Program(b"... {jax.buffer_donor = true}"))
    assert can_donate(Program(b"anything", "hlo"))
    assert not can_donate(Program(b"func.func @main"))
