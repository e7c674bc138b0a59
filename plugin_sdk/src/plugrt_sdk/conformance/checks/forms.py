"""Level 2: one program in several forms: old and new artifacts, bytecode, many arguments."""

from __future__ import annotations

from functools import partial

import numpy as np

from plugrt.interface import CompileOptions, Program
from plugrt_sdk.conformance.check import Chapter, Demand, Level
from plugrt_sdk.conformance.expect import expect_equal, expect_same_bits
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter(
    "forms", Level.COMPUTES, "StableHLO compatibility: portable artifacts; PJRT_Client_Compile"
)

_OLD = ((1, 0, 0), (1, 5, 0), (1, 9, 0))
"""Versions within StableHLO's compatibility guarantee of five years."""


def _run(subject: PluginSubject, code: bytes, what: str) -> None:
    """Compiles the sum of two arrays in this form, and launches it."""
    program = subject.client.compile(Program(code), CompileOptions())
    [[total]] = program.execute([(subject.put(ONE),), (subject.put(10 * ONE),)])
    expect_same_bits(total.to_host(), 11 * ONE, f"the sum of {what}")


def _artifact(subject: PluginSubject, version: tuple[int, int, int]) -> None:
    from plugrt.stablehlo.modules import minimum_version, parse, portable_artifact

    least = subject.declared.stablehlo_minimum_version or version
    if max(least, minimum_version()) > version:
        subject.refuse(f"the client reads StableHLO from {least} on, jaxlib writes it from "
                       f"{minimum_version()} on")  # fmt: skip
    code = portable_artifact(parse(programs.ADD), version)
    _run(subject, code, f"a portable artifact of version {'.'.join(map(str, version))}")


for _version in _OLD:
    CHAPTER.add(
        f"artifact.version_{_version[0]}_{_version[1]}",
        f"A portable artifact of StableHLO {'.'.join(map(str, _version))} is read, unless the "
        "client states that it reads newer ones only.",
        partial(_artifact, version=_version), refusable=True,
        why="programs that were saved some years ago no longer run",
    )  # fmt: skip


@CHAPTER.check("artifact.newest", why="what hosts write by default is not read")
def newest(subject: PluginSubject) -> None:
    """A portable artifact of the newest version that the client states is read."""
    from plugrt.stablehlo.modules import parse, portable_artifact

    newest = subject.declared.stablehlo_current_version
    _run(subject, portable_artifact(parse(programs.ADD), newest), "a portable artifact")


@CHAPTER.check("bytecode", refusable=True, why="programs of the same jaxlib need a detour")
def bytecode(subject: PluginSubject) -> None:
    """A program in MLIR's bytecode is read."""
    from plugrt.stablehlo.modules import bytecode, parse

    _run(subject, bytecode(parse(programs.ADD)), "a program in bytecode")


_JAX_WRITES = """module @jit_f attributes {
    mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32,
    jax.uses_shape_polymorphism = false} {
  func.func public @main(%arg0: tensor<3xf32> {jax.arg_info = "x"}, %arg1: tensor<3xf32>)
      -> (tensor<3xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<3xf32> loc("f/add"("f.py":3:4))
    return %0 : tensor<3xf32>
  } loc("f"("f.py":1:0))
}"""


@CHAPTER.check(
    "attributes", why="no program of JAX is read", rests_on="JAX's lowering: mlir.py",
    demand=Demand.REFERENCE
)  # fmt: skip
def attributes(subject: PluginSubject) -> None:
    """Attributes and locations as JAX writes them have no effect."""
    from plugrt.stablehlo.modules import parse, portable_artifact

    newest = subject.declared.stablehlo_current_version
    _run(subject, portable_artifact(parse(_JAX_WRITES), newest), "a program as JAX writes it")


_THOUSAND = 1000


@CHAPTER.check("thousand_arguments", why="the launch of a large model with its weights fails")
def thousand_arguments(subject: PluginSubject) -> None:
    """A program of a thousand arguments, two of them used, and a thousand results."""
    kinds = ", ".join(["tensor<i32>"] * _THOUSAND)
    parameters = ", ".join(f"%a{i}: tensor<i32>" for i in range(_THOUSAND))
    text = (
        f"func.func public @main({parameters}) -> ({kinds}) {{\n"
        f"  %0 = stablehlo.add %a0, %a{_THOUSAND - 1} : tensor<i32>\n"
        f"  return {', '.join(['%0', *(f'%a{i}' for i in range(1, _THOUSAND))])} : {kinds}\n}}"
    )
    found = subject.run(text, *[np.array(i, np.int32) for i in range(_THOUSAND)])
    expect_equal([int(x) for x in found], [_THOUSAND - 1, *range(1, _THOUSAND)], "the results")


@CHAPTER.check("large_constant", why="weights that are part of a program are cut off")
def large_constant(subject: PluginSubject) -> None:
    """A constant of a megabyte keeps its elements."""
    count = 1 << 18
    values = np.arange(count, dtype=np.int32)
    text = (
        f"func.func public @main() -> tensor<{count}xi32> {{\n"
        f'  %0 = stablehlo.constant dense<"0x{values.tobytes().hex().upper()}"> : '
        f"tensor<{count}xi32>\n  return %0 : tensor<{count}xi32>\n}}"
    )
    expect_same_bits(subject.run(text)[0], values, "the constant")


@CHAPTER.check("same_result_twice", why="two results share memory, and one frees the other's")
def same_result_twice(subject: PluginSubject) -> None:
    """A value that is returned twice gives two arrays, and each outlives the other."""
    text = programs.ADD.replace("-> tensor<3xf32>", "-> (tensor<3xf32>, tensor<3xf32>)").replace(
        "return %0 : tensor<3xf32>", "return %0, %0 : tensor<3xf32>, tensor<3xf32>"
    )
    x = (subject.put(ONE),)
    [[first], [second]] = subject.compile(text).execute([x, x])
    first.delete()
    expect_same_bits(second.to_host(), 2 * ONE, "the second result")


@CHAPTER.check("same_argument_twice", why="f(x, x) is wrong, or crashes")
def same_argument_twice(subject: PluginSubject) -> None:
    """One array can be two arguments of a launch."""
    x = (subject.put(ONE),)
    product = subject.compile(programs.ADD.replace("stablehlo.add", "stablehlo.multiply"))
    [[found]] = product.execute([x, x])
    expect_same_bits(found.to_host(), ONE * ONE, "the product")
    expect_same_bits(x[0].to_host(), ONE, "the argument")
