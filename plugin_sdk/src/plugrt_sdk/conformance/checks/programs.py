"""Level 2: programs: their forms, arguments, results and refusals."""

from __future__ import annotations

import numpy as np

from plugrt.errors import PjrtError
from plugrt_sdk.conformance.check import Chapter, Level
from plugrt_sdk.conformance.expect import (
    expect,
    expect_close,
    expect_equal,
    expect_refusal,
    expect_same_bits,
)
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter("programs", Level.COMPUTES, "StableHLO specification; PJRT_Client_Compile")

_MANY = 200


@CHAPTER.check("add", why="nothing computes", covers=("Client.compile", "LoadedExecutable.execute"))
def add(subject: PluginSubject) -> None:
    """A program of two arguments computes, and its result is the next launch's argument."""
    program = subject.compile(programs.ADD)
    x, y = subject.put(ONE), subject.put(10 * ONE)
    [[total]] = program.execute([(x,), (y,)])
    [[twice]] = program.execute([(total,), (total,)])
    expect_same_bits(total.to_host(), 11 * ONE, "the sum")
    expect_same_bits(twice.to_host(), 22 * ONE, "the sum of the results")


@CHAPTER.check("argument_order", why="a - b is b - a")
def argument_order(subject: PluginSubject) -> None:
    """Arguments are in the program's order."""
    text = programs.ADD.replace("stablehlo.add", "stablehlo.subtract")
    expect_same_bits(subject.run(text, 10 * ONE, ONE)[0], 9 * ONE, "a - b")


@CHAPTER.check(
    "executable",
    why="hosts allocate too few results",
    covers=(
        "LoadedExecutable.executable",
        "LoadedExecutable.client",
        "Executable.name",
        "Executable.num_replicas",
        "Executable.num_partitions",
        "Executable.output_types",
    ),
)
def executable(subject: PluginSubject) -> None:
    """A program states its client, its counts and the types of its results."""
    loaded = subject.compile(programs.SEVERAL_RESULTS)
    expect(loaded.client is subject.client, "its client", loaded.client)
    found = loaded.executable
    expect_equal((found.num_replicas, found.num_partitions), (1, 1), "replicas and partitions")
    expect(isinstance(found.name, str), "a name", found.name)
    types = ["float32[]", "int32[2]", "int32[2]", "float32[0,4]"]
    expect_equal([str(kind) for kind in found.output_types], types, "the results' types")


@CHAPTER.check(
    "input_types",
    refusable=True,
    why="hosts convert arguments to another type than the program takes",
    covers=("Executable.input_types",),
)
def input_types(subject: PluginSubject) -> None:
    """A program states the types of its parameters, or that it cannot."""
    for text, wanted in (
        (programs.SEVERAL_RESULTS, ["int32[2]", "float32[0,4]", "float32[]"]),
        (programs.IDENTITY, ["float32[3]"]),
        (programs.CONSTANT, []),
    ):
        found = subject.compile(text).executable.input_types
        expect_equal([str(kind) for kind in found], wanted, "types")


@CHAPTER.check("result_type", why="hosts read a result as another type")
def result_type(subject: PluginSubject) -> None:
    """A result has the shape, the dtype and the device that the program states."""
    program = subject.compile(programs.ADD)
    [[total]] = program.execute([(subject.put(ONE),), (subject.put(ONE),)])
    expect_equal((tuple(total.shape), total.dtype), ((3,), ONE.dtype), "the type")
    expect(total.device is subject.client.devices()[0], "the first device", total.device)


@CHAPTER.check("text", why="programs of other tools cannot be run")
def text(subject: PluginSubject) -> None:
    """StableHLO text compiles to the same result as a portable artifact."""
    program = subject.compile_text(programs.ADD)
    [[total]] = program.execute([(subject.put(ONE),), (subject.put(ONE),)])
    expect_same_bits(total.to_host(), 2 * ONE, "the sum")


@CHAPTER.check("identity", why="programs that a host makes trivial fail")
def identity(subject: PluginSubject) -> None:
    """A program that returns its argument gives an array that outlives the argument."""
    program = subject.compile(programs.IDENTITY)
    x = subject.put(ONE)
    [[same]] = program.execute([(x,)])
    x.delete()
    expect_same_bits(same.to_host(), ONE, "the result")


@CHAPTER.check("constant", why="programs without arguments fail")
def constant(subject: PluginSubject) -> None:
    """A program without arguments returns its constant."""
    [found] = subject.run(programs.CONSTANT)
    expect_same_bits(found, np.array([7, -1], np.int32), "the constant")


@CHAPTER.check("no_results", why="programs that are run for their effects fail")
def no_results(subject: PluginSubject) -> None:
    """A program without results is launched and returns none."""
    program = subject.compile(programs.NO_RESULTS)
    expect_equal(len(program.execute([(subject.put(ONE),)])), 0, "results:")


@CHAPTER.check("nothing", why="programs that only call the host fail")
def nothing(subject: PluginSubject) -> None:
    """A program without arguments and results is launched several times, and returns none."""
    program = subject.compile(programs.NOTHING)
    for launch in (program.execute, program.launcher, program.execute):
        expect_equal(len(launch([])), 0, "results:")


@CHAPTER.check(
    "empty_tuples", refusable=True, rests_on="StableHLO specification: tuple, case",
    why="programs with operations run for their effects alone do not compile",
)  # fmt: skip
def empty_tuples(subject: PluginSubject) -> None:
    """A call, a case and a barrier without results do not affect other operations."""
    [found] = subject.run(programs.EMPTY_TUPLES, ONE, np.int32(1))
    expect_same_bits(found, 2 * ONE, "the sum")


@CHAPTER.check("several_results", why="results are mixed up")
def several_results(subject: PluginSubject) -> None:
    """Results of several types come in order, among them arguments and empty arrays."""
    a, b = np.array([1, 2], np.int32), np.zeros((0, 4), np.float32)
    found = subject.run(programs.SEVERAL_RESULTS, a, b, np.float32(5))
    for i, wanted in enumerate((np.array(5, np.float32), a + a, a, b)):
        expect_same_bits(found[i], wanted, f"result {i}")


@CHAPTER.check("many_arguments", why="large models do not fit a launch")
def many_arguments(subject: PluginSubject) -> None:
    """A program of 200 arguments returns them in reverse."""
    names = [f"%a{i}" for i in range(_MANY)]
    kinds = ", ".join(["tensor<i32>"] * _MANY)
    text = (
        f"func.func public @main({', '.join(f'{n}: tensor<i32>' for n in names)}) -> ({kinds}) {{\n"
        f"  return {', '.join(reversed(names))} : {kinds}\n}}"
    )
    found = subject.run(text, *[np.array(i, np.int32) for i in range(_MANY)])
    expect_equal([int(x) for x in found], list(range(_MANY))[::-1], "the results")


@CHAPTER.check(
    "loop",
    refusable=True,
    why="loops stop early, or never",
    rests_on="StableHLO specification: while",
)
def loop(subject: PluginSubject) -> None:
    """A while loop counts from its argument to ten."""
    expect_equal(int(subject.run(programs.COUNT_UP, np.int32(3))[0]), 10, "the count")
    expect_equal(int(subject.run(programs.COUNT_UP, np.int32(12))[0]), 12, "the count")


@CHAPTER.check(
    "branches",
    refusable=True,
    why="the wrong branch is taken",
    rests_on="StableHLO specification: case",
)
def branches(subject: PluginSubject) -> None:
    """A case takes the branch of its index, and the last one for an index out of range."""
    found = [int(subject.run(_CASE, np.int32(i))[0]) for i in (0, 1, 2, -1, 9)]
    expect_equal(found, [10, 11, 12, 12, 12], "the branches")


_CASE = """func.func public @main(%i: tensor<i32>) -> tensor<i32> {
  %0 = "stablehlo.case"(%i) ({
      %a = stablehlo.constant dense<10> : tensor<i32>
      stablehlo.return %a : tensor<i32>
    }, {
      %b = stablehlo.constant dense<11> : tensor<i32>
      stablehlo.return %b : tensor<i32>
    }, {
      %c = stablehlo.constant dense<12> : tensor<i32>
      stablehlo.return %c : tensor<i32>
    }) : (tensor<i32>) -> tensor<i32>
  return %0 : tensor<i32>
}"""


@CHAPTER.check("call", refusable=True, why="programs of several functions fail")
def call(subject: PluginSubject) -> None:
    """A function that is called twice computes each call's own result."""
    [found] = subject.run(_CALL, ONE)
    expect_same_bits(found, 4 * ONE, "twice twice x")


_CALL = """module {
  func.func private @twice(%a: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.add %a, %a : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
  func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {
    %0 = call @twice(%a) : (tensor<3xf32>) -> tensor<3xf32>
    %1 = call @twice(%0) : (tensor<3xf32>) -> tensor<3xf32>
    return %1 : tensor<3xf32>
  }
}"""


@CHAPTER.check(
    "tokens",
    refusable=True,
    why="programs with ordered effects fail",
    rests_on="StableHLO specification: token; JAX passes a bool[0] as the first of a chain",
)
def tokens(subject: PluginSubject) -> None:
    """A token that a launch returns is empty, becomes ready, and is the next argument."""
    program = subject.compile(programs.TOKEN)
    kinds = [str(kind) for kind in program.executable.output_types]
    expect_equal(kinds, ["token", "float32[3]"], "the results' types")
    first = subject.put(np.zeros(0, np.bool_))
    token, x = program.execute([(first,), (subject.put(ONE),)])
    _, [y] = program.execute([token, x])
    token[0].block_until_ready()
    expect_same_bits(y.to_host(), ONE, "the array beside the second token")
    expect_refusal(token[0].to_host, PjrtError, what="reading a token")


@CHAPTER.check("network", refusable=True, why="a model's step gives wrong numbers")
def network(subject: PluginSubject) -> None:
    """A layer of a network: product, bias, maximum with zero, and the sum over a batch."""
    random = subject.random("network")
    x = random.integers(-3, 4, (4, 3)).astype(np.float32)
    w, b = random.integers(-3, 4, (3, 5)).astype(np.float32), np.arange(5, dtype=np.float32)
    [found] = subject.run(_NETWORK, x, w, b)
    wanted = np.maximum(x @ w + b, 0).sum(0, dtype=np.float32)
    expect_close(found, wanted, subject.ulps("float32", 4), "the sums")


_NETWORK = """func.func public @main(
    %x: tensor<4x3xf32>, %w: tensor<3x5xf32>, %b: tensor<5xf32>) -> tensor<5xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0],
    precision = [HIGHEST, HIGHEST]
    : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<5xf32>) -> tensor<4x5xf32>
  %2 = stablehlo.add %0, %1 : tensor<4x5xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %3 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
  %4 = stablehlo.maximum %2, %3 : tensor<4x5xf32>
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<4x5xf32>, tensor<f32>) -> tensor<5xf32>
  return %5 : tensor<5xf32>
}"""
