"""Level 2: programs and arguments that must be refused, and leave the client as it was."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from plugrt.errors import PjrtError, PlugrtError
from plugrt.interface import CompileOptions, Program
from plugrt_sdk.conformance.check import Chapter, Level
from plugrt_sdk.conformance.expect import expect_refusal, expect_same_bits
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter(
    "programs.refused", Level.COMPUTES, "StableHLO specification; PJRT_Client_Compile"
)


@CHAPTER.check("nonsense", why="a damaged file crashes the compiler")
def nonsense(subject: PluginSubject) -> None:
    """What is no program, nothing at all, and half a program are refused."""
    for code in (b"this is no program", b"", programs.ADD.encode()[:60]):
        expect_refusal(
            lambda c=code: subject.client.compile(Program(c), CompileOptions()),  # type: ignore[misc]
            PlugrtError,
            what=f"compile({code[:20]!r})",
        )


@CHAPTER.check(
    "version",
    why="a newer host's programs crash the compiler",
    rests_on="StableHLO compatibility: portable artifacts",
)
def version(subject: PluginSubject) -> None:
    """A portable artifact of a version that does not exist is refused."""
    code = b"ML\xefR\rStableHLO_v99.0.0\0\0"
    expect_refusal(
        lambda: subject.client.compile(Program(code), CompileOptions()),
        PlugrtError,
        what="compile(an artifact of version 99)",
    )


@CHAPTER.check(
    "format",
    why="a host's fallback program crashes the compiler",
    rests_on="PJRT_Program.format",
)
def format(subject: PluginSubject) -> None:
    """A format that does not exist is refused."""
    program = Program(programs.ADD.encode(), "no such format")
    expect_refusal(
        lambda: subject.client.compile(program, CompileOptions()),
        PlugrtError,
        what="compile(a program of an unknown format)",
    )


@CHAPTER.check(
    "operation",
    why="a missing operation becomes a wrong number or a crash",
    rests_on="jax-ml/jax#16489: unimplemented must fail gracefully",
)
def operation(subject: PluginSubject) -> None:
    """A custom call that nobody has registered is refused when it is compiled or launched."""

    expect_refusal(
        lambda: subject.run(_UNKNOWN, ONE), PjrtError, what="a custom call that does not exist"
    )


_UNKNOWN = """func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.custom_call @no_such_target(%a) {api_version = 2 : i32}
    : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}"""


@CHAPTER.check("devices", why="a program for more devices than there are runs on some")
def devices(subject: PluginSubject) -> None:
    """A program for one replica more than there are devices is refused."""
    count = len(subject.client.devices()) + 1
    expect_refusal(
        lambda: subject.compile(programs.ADD, num_replicas=count),
        PjrtError,
        what=f"compile() for {count} replicas",
    )


_INTEGERS = ONE.astype(np.int32)
_WRONG: dict[str, tuple[str, Callable[[PluginSubject], list[Any]]]] = {
    "fewer": ("One argument for two", lambda s: [(s.put(ONE),)]),
    "more": ("A third argument for two", lambda s: [(s.put(ONE),)] * 3),
    "size": ("A shorter array", lambda s: [(s.put(ONE[:2]),), (s.put(ONE),)]),
    "rank": ("An array of another rank", lambda s: [(s.put(ONE.reshape(1, 3)),), (s.put(ONE),)]),
    "dtype": ("An array of another dtype", lambda s: [(s.put(_INTEGERS),), (s.put(ONE),)]),
    "buffers": ("Two buffers for one device", lambda s: [(s.put(ONE),) * 2, (s.put(ONE),)]),
}


def _refused_arguments(subject: PluginSubject, words: str, make: Callable[..., list[Any]]) -> None:
    program = subject.compile(programs.ADD)
    wrong = make(subject)
    expect_refusal(lambda: program.execute(wrong), PlugrtError, what=words)
    x = subject.put(ONE)
    [[total]] = program.execute([(x,), (x,)])
    expect_same_bits(total.to_host(), 2 * ONE, "the launch after the wrong one:")


for _name, (_words, _make) in _WRONG.items():
    CHAPTER.add(
        f"arguments.{_name}", f"{_words} is refused, and the program works on.",
        partial(_refused_arguments, words=_words, make=_make),
        why="a launch reads memory that is not the argument's",
        rests_on="plugrt.interface.LoadedExecutable.execute: errors in the arguments raise",
    )  # fmt: skip
