"""Level 4: collectives for each dtype and with other groups, and changes of shardings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from plugrt_sdk.conformance.check import Chapter, Demand, Level, Needs
from plugrt_sdk.conformance.collectives import (
    ALL,
    COLLECTIVES,
    EACH,
    FOUR,
    MOVED,
    PAIRS,
    SHAPE,
    Collective,
    Groups,
)
from plugrt_sdk.conformance.expect import Array, expect_equal, expect_same_bits
from plugrt_sdk.conformance.operations.sample import numbered, whole
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.verdict import NotTried, Verdict
from plugrt_sdk.testing.program_text import ProgramText, typed

CHAPTER = Chapter(
    "collectives", Level.SCALES, "StableHLO specification: Parallel execution",
    needs=Needs.TWO_DEVICES,
)  # fmt: skip


def _run(subject: PluginSubject, text: str, arrays: Sequence[Array]) -> list[Array]:
    """Runs a program on as many devices as there are arrays."""
    program = subject.compile_for(text, *range(len(arrays)))
    [results] = program.execute([[subject.put(a, i) for i, a in enumerate(arrays)]])
    return [buffer.to_host() for buffer in results]


def _collective(subject: PluginSubject, collective: Collective, dtype: str, groups: Groups) -> None:
    count = sum(map(len, groups))
    if count > len(subject.client.addressable_devices()):
        why = f"the client has fewer than {count} devices"
        raise NotTried(Verdict.NOT_RUN, why, applies=False)
    make = numbered if dtype == "bool" else whole
    random = subject.random(f"{collective.id}.{dtype}")
    arrays = [make(random, SHAPE, dtype) for _ in range(count)]
    found = _run(subject, collective.program(dtype, groups).text(), arrays)
    for i, wanted in enumerate(collective.expected(arrays, groups)):
        expect_same_bits(found[i], wanted, f"the result of replica {i}")


_WHY = "a step on several devices computes with other devices' numbers"
for _collective_ in COLLECTIVES:
    for _dtype in _collective_.dtypes:
        CHAPTER.add(
            f"{_collective_.id}.{_dtype}",
            f"{_collective_.id} of {_dtype} gives two replicas NumPy's result.",
            partial(_collective, collective=_collective_, dtype=_dtype, groups=ALL),
            rests_on=f"StableHLO specification: {_collective_.name}", capability="collectives",
            refusable=(_collective_.id, _dtype) != ("all_reduce.add", "float32"), why=_WHY,
        )  # fmt: skip
    if _collective_.variant in ("", "add"):
        for _name, _groups, _dtype, _words in (
            ("alone", EACH, "float32", "replicas that are alone in their groups"),
            ("pairs", PAIRS, "float32", "pairs of four replicas, in an order of their own,"),
            ("pairs.int32", PAIRS, "int32", "pairs of four replicas, with int32,"),
            ("pairs.bfloat16", PAIRS, "bfloat16", "pairs of four replicas, with bfloat16,"),
            ("four", FOUR, "float32", "four replicas, in an order of their own,"),
        ):
            CHAPTER.add(
                f"{_collective_.id}.groups.{_name}",
                f"{_collective_.id} gives {_words} NumPy's result.",
                partial(_collective, collective=_collective_, dtype=_dtype, groups=_groups),
                rests_on=f"StableHLO specification: {_collective_.name}, replica_groups",
                capability="collectives", refusable=True, why=_WHY,
            )  # fmt: skip


def _permute(
    subject: PluginSubject, pairs: Sequence[Sequence[int]], dtype: str = "float32"
) -> None:
    text = ProgramText()
    make = numbered if dtype == "bool" else whole
    arrays = [make(subject.random(f"permute.{i}"), SHAPE, dtype) for i in range(2)]
    rows = ", ".join(f"[{source}, {target}]" for source, target in pairs)
    text.apply("collective_permute", [text.argument(arrays[0])], [typed(SHAPE, dtype)],
               f"source_target_pairs = dense<[{rows}]> : tensor<{len(pairs)}x2xi64>")  # fmt: skip
    found = _run(subject, text.text(), arrays)
    sources = {target: source for source, target in pairs}
    for i in range(2):
        wanted = arrays[sources[i]] if i in sources else np.zeros_like(arrays[0])
        expect_same_bits(found[i], wanted, f"the result of replica {i}")


_SWAP = ((0, 1), (1, 0))
for _dtype in MOVED[1:]:
    CHAPTER.add(
        f"collective_permute.swap.{_dtype}",
        f"collective_permute swaps the arrays of two replicas, of {_dtype}.",
        partial(_permute, pairs=_SWAP, dtype=_dtype), capability="collectives", refusable=True,
        rests_on="StableHLO specification: collective_permute", why=_WHY,
    )  # fmt: skip
for _name, _pairs, _words in (
    ("swap", _SWAP, "swaps the arrays of two replicas"),
    ("shift", ((0, 1),), "sends one array on, and gives zeros to whom nobody sends one"),
):
    CHAPTER.add(
        f"collective_permute.{_name}", f"collective_permute {_words}.",
        partial(_permute, pairs=_pairs), capability="collectives", refusable=True, why=_WHY,
        rests_on="StableHLO specification: collective_permute",
    )  # fmt: skip


@CHAPTER.check(
    "replica_id", capability="multiple_devices", refusable=True,
    rests_on="StableHLO specification: replica_id",
    why="each device takes the same part of the data for its own",
)  # fmt: skip
def replica_id(subject: PluginSubject) -> None:
    """Each replica has its number, whatever devices they run on."""
    text = ProgramText()
    text.apply("replica_id", [], [typed((), "uint32")])
    program = subject.compile_for(text.text(), 1, 0)
    [results] = program.execute([])
    expect_equal([int(buffer.to_host()) for buffer in results], [0, 1], "the numbers")


ROWS, COLUMNS, WHOLE = '[{"x"}, {}]', '[{}, {"x"}]', "[{}, {}]"
_SHARDED = """module attributes {{mhlo.num_partitions = 2 : i32}} {{
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(
      %a: tensor<4x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {given}>}})
      -> (tensor<4x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {wanted}>}}) {{
    %0 = stablehlo.negate %a : tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }}
}}"""
_PRODUCT = """module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(
      %a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
      -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [1],
      precision = [HIGHEST, HIGHEST] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}"""


def _parts(array: Array, sharding: str) -> list[Array]:
    """Returns the part of each of two devices."""
    if sharding == WHOLE:
        return [array, array]
    return np.split(array, 2, 0 if sharding == ROWS else 1)


def _partitioned(subject: PluginSubject, text: str, parts: Sequence[Array]) -> list[Array]:
    program = subject.compile_text(
        text, num_partitions=2, use_spmd_partitioning=True, use_shardy_partitioner=True
    )
    [results] = program.execute([[subject.put(part, i) for i, part in enumerate(parts)]])
    return [buffer.to_host() for buffer in results]


def _resharded(subject: PluginSubject, given: str, wanted: str) -> None:
    array = numbered(subject.random("sharded"), SHAPE, "float32")
    text = _SHARDED.format(given=given, wanted=wanted)
    found = _partitioned(subject, text, _parts(array, given))
    for i, part in enumerate(_parts(-array, wanted)):
        expect_same_bits(found[i], part, f"the part of device {i}")


_SHARDINGS = {"rows": ROWS, "columns": COLUMNS, "whole": WHOLE}
for _given in _SHARDINGS:
    for _wanted in _SHARDINGS:
        if _given != _wanted:
            CHAPTER.add(
                f"sharding.{_given}_to_{_wanted}",
                f"An array that lies on two devices by {_given} is given back by {_wanted}.",
                partial(_resharded, given=_SHARDINGS[_given], wanted=_SHARDINGS[_wanted]),
                rests_on="Shardy: sdy.sharding", demand=Demand.REFERENCE, capability="partitions",
                why="a sharded array is put together wrong",
            )  # fmt: skip


@CHAPTER.check(
    "sharding.product", rests_on="Shardy: sdy.sharding",
    demand=Demand.REFERENCE, capability="partitions",
    why="products of sharded matrices leave out what other devices have",
)  # fmt: skip
def sharded_product(subject: PluginSubject) -> None:
    """A product that sums over a dimension divided between two devices is complete."""
    array = whole(subject.random("product"), SHAPE, "float32")
    found = _partitioned(subject, _PRODUCT, _parts(array, COLUMNS))
    for i, part in enumerate(_parts(array @ array.T, ROWS)):
        expect_same_bits(found[i], part, f"the part of device {i}")
