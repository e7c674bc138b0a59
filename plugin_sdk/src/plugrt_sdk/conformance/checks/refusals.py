"""Level 2: programs and arguments that must be refused, and leave the client unchanged."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from plugrt.errors import PjrtError, PlugrtError
from plugrt.interface import CompileOptions, Program
from plugrt_sdk.conformance.check import Chapter, Demand, Level, Needs
from plugrt_sdk.conformance.expect import expect_mistake, expect_refusal, expect_same_bits
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter(
    "programs.refused", Level.COMPUTES, "StableHLO specification; PJRT_Client_Compile"
)


@CHAPTER.check("nonsense", why="a damaged file crashes the compiler")
def nonsense(subject: PluginSubject) -> None:
    """Bytes that are not a program, no bytes at all, and half a program are refused."""
    for code in (b"this is no program", b"", programs.ADD.encode()[:60]):
        expect_mistake(
            lambda c=code: subject.client.compile(Program(c), CompileOptions()),  # type: ignore[misc]
            f"compile({code[:20]!r})",
        )


_ADD = "stablehlo.add %a, %b : tensor<3xf32>"
_SECOND = "%b: tensor<3xf32>"
BAD: dict[str, tuple[str, str]] = {
    "types": ("operands of two types", programs.ADD.replace(_SECOND, "%b: tensor<3xi32>")),
    "shapes": ("operands of two shapes", programs.ADD.replace(_SECOND, "%b: tensor<4xf32>")),
    "value": ("a value that nothing defines", programs.ADD.replace(_ADD, _ADD.replace("%b", "%c"))),
    "name": ("an operation that does not exist", programs.ADD.replace("hlo.add", "hlo.ad")),
    "main": ("no function main", programs.ADD.replace("@main", "@other")),
    "result": (
        "a result of another type than it states",
        programs.ADD.replace("-> tensor<3xf32>", "-> tensor<3xi32>"),
    ),
}
"""The name of a fault, to its description and the program; mutants use these, too."""


def _refused_module(subject: PluginSubject, text: str, words: str) -> None:
    expect_mistake(
        lambda: subject.client.compile(Program(text.encode()), CompileOptions()),
        f"compile(a program with {words})",
    )
    subject.compile(programs.ADD)


for _name, (_words, _text) in BAD.items():
    CHAPTER.add(
        f"module.{_name}", f"A program with {_words} is refused, and the next one compiled.",
        partial(_refused_module, text=_text, words=_words),
        why="a faulty program crashes the compiler, or is run as another one",
    )  # fmt: skip


@CHAPTER.check(
    "truncated", why="a file that was not written to its end crashes the compiler",
    rests_on="StableHLO compatibility: portable artifacts",
)  # fmt: skip
def truncated(subject: PluginSubject) -> None:
    """A portable artifact that ends early is refused."""
    from plugrt.stablehlo.modules import parse, portable_artifact

    whole = portable_artifact(parse(programs.ADD), subject.declared.stablehlo_current_version)
    for part in (whole[: len(whole) // 2], whole[: len(whole) * 9 // 10]):
        expect_mistake(
            lambda p=part: subject.client.compile(Program(p), CompileOptions()),  # type: ignore[misc]
            f"compile(the first {len(part)} of {len(whole)} bytes)",
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
    expect_mistake(
        lambda: subject.client.compile(program, CompileOptions()),
        "compile(a program of an unknown format)", known=True,
    )  # fmt: skip


@CHAPTER.check(
    "operation",
    why="a missing operation becomes a wrong number or a crash",
    rests_on="jax-ml/jax#16489: unimplemented must fail gracefully",
    demand=Demand.REFERENCE,
)
def operation(subject: PluginSubject) -> None:
    """A custom call without a handler is refused when it is compiled or launched."""

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


@CHAPTER.check(
    "arguments.device", needs=Needs.TWO_DEVICES, level=Level.SCALES,
    why="a launch reads memory of another device",
)  # fmt: skip
def argument_on_another_device(subject: PluginSubject) -> None:
    """An array on another device than the program's is refused, and the program still works."""
    program, x = subject.compile_for(programs.ADD, 1), subject.put(ONE, 1)
    expect_mistake(
        lambda: program.execute([(subject.put(ONE, 0),), (x,)]),
        "an argument on the first device for a program on the second", known=True,
    )  # fmt: skip
    [[total]] = program.execute([(x,), (x,)])
    expect_same_bits(total.to_host(), 2 * ONE, "the launch after the wrong one:")


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
    expect_mistake(lambda: program.execute(wrong), words, known=True)
    x = subject.put(ONE)
    [[total]] = program.execute([(x,), (x,)])
    expect_same_bits(total.to_host(), 2 * ONE, "the launch after the wrong one:")


for _name, (_words, _make) in _WRONG.items():
    CHAPTER.add(
        f"arguments.{_name}", f"{_words} is refused, and the program works on.",
        partial(_refused_arguments, words=_words, make=_make),
        why="a launch reads memory that is not the argument's",
        rests_on="plugrt.interface.LoadedExecutable.execute: errors in the arguments raise",
        # XLA's own libraries accept arguments of another rank or dtype and the same size.
        demand=Demand.PLUGRT if _name in ("rank", "dtype") else Demand.REFERENCE,
    )  # fmt: skip
