"""Compile options for results as specified by StableHLO, and libraries that refuse the options."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from plugrt.capi.programs.compile_defaults import CompileDefaults
from plugrt.errors import InvalidArgument
from plugrt.interface import CompileOptions

MIN_MAX = "xla_cpu_enable_fast_min_max"


class Compiler:
    """A library that refuses some options; it records the options of each attempt."""

    def __init__(self, *unknown: str) -> None:
        self.unknown = unknown
        self.attempts: list[Mapping[str, object]] = []

    def __call__(self, options: CompileOptions) -> CompileOptions:
        self.attempts.append(options.env_overrides)
        for name in self.unknown:
            if name in options.env_overrides:
                raise InvalidArgument(f"No such compile option: '{name}'")
        return options


def test_it_adds_to_what_the_caller_asked_for() -> None:
    asked = CompileOptions(num_replicas=2, env_overrides={"mine": 1})
    given = CompileDefaults("cpu").compile(asked, Compiler())
    assert given.num_replicas == 2
    assert given.env_overrides == {"mine": 1, MIN_MAX: False}


@pytest.mark.parametrize(
    ("platform", "asked"),
    [
        ("cpu", CompileOptions(env_overrides={MIN_MAX: True})),
        ("cpu", CompileOptions(encoded=b"\x1a\x04\x20\x01\x28\x01")),
        ("other", CompileOptions()),
    ],
)
def test_it_leaves_the_callers_and_other_platforms_alone(
    platform: str, asked: CompileOptions
) -> None:
    assert CompileDefaults(platform).compile(asked, Compiler()) is asked


def test_unknown_options_are_tried_once() -> None:
    strictness, compiler = CompileDefaults("cpu"), Compiler(MIN_MAX)
    for _ in range(2):
        assert strictness.compile(CompileOptions(), compiler).env_overrides == {}
    assert compiler.attempts == [{MIN_MAX: False}, {}, {}]


def test_other_refusals_are_the_callers() -> None:
    strictness, compiler = CompileDefaults("cpu"), Compiler("nonsense")
    with pytest.raises(InvalidArgument, match="nonsense"):
        strictness.compile(CompileOptions(env_overrides={"nonsense": True}), compiler)
    assert len(compiler.attempts) == 1
    assert MIN_MAX in strictness.compile(CompileOptions(), compiler).env_overrides
