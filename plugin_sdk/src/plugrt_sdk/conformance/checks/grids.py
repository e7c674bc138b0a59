"""Level 4: replicas and partitions in one launch, and collectives between both kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from plugrt_sdk.conformance.check import Chapter, Level, Needs
from plugrt_sdk.conformance.collectives import COLLECTIVES, SHAPE, Collective, Groups
from plugrt_sdk.conformance.expect import Array, expect_same_bits
from plugrt_sdk.conformance.operations.sample import whole
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.verdict import NotTried, Verdict
from plugrt_sdk.testing.program_text import operation_text, typed

CHAPTER = Chapter(
    "collectives.grid", Level.SCALES, "StableHLO specification: Parallel execution",
    needs=Needs.TWO_DEVICES,
)  # fmt: skip

_REPLICAS = _PARTITIONS = 2
_DEVICES = _REPLICAS * _PARTITIONS
_WHY = "data-parallel training of a sharded model adds up other devices' gradients"
_CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
_PROGRAM = """module attributes {{mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 2 : i32}} {{
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%a: {taken} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
      -> ({given} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) {{
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"x"}}, {{}}]>]
        out_shardings=[<@mesh, [{{"x"}}, {{}}]>] manual_axes={{"x"}} (%b: {part}) {{
      {lines}
      sdy.return %r : {result}
    }} : ({taken}) -> {given}
    return %0 : {given}
  }}
}}"""


def _run(
    subject: PluginSubject, lines: str, shape: Sequence[int], arrays: Sequence[Array]
) -> list[Array]:
    """Runs lines from ``%b`` to ``%r`` on a part for each of two partitions of two replicas.

    ``shape`` is the shape of ``%r``. Returns the results in the order of the devices, replica by
    replica.
    """
    if len(subject.client.addressable_devices()) < _DEVICES:
        why = f"the client has fewer than {_DEVICES} devices"
        raise NotTried(Verdict.NOT_RUN, why, applies=False)
    text = _PROGRAM.format(
        taken=_twice(SHAPE), given=_twice(shape), part=typed(SHAPE, "float32"),
        result=typed(shape, "float32"), lines=lines,
    )  # fmt: skip
    program = subject.compile_text(
        text, num_replicas=_REPLICAS, num_partitions=_PARTITIONS, use_spmd_partitioning=True,
        use_shardy_partitioner=True,
    )  # fmt: skip
    [results] = program.execute([[subject.put(a, i) for i, a in enumerate(arrays)]])
    return [buffer.to_host() for buffer in results]


def _twice(shape: Sequence[int]) -> str:
    """Returns the type of an array that two partitions divide into parts of this shape."""
    return typed((_PARTITIONS * shape[0], *shape[1:]), "float32")


def _arrays(subject: PluginSubject, name: str) -> list[Array]:
    random = subject.random(name)
    return [whole(random, SHAPE, "float32") for _ in range(_DEVICES)]


_NUMBERS = {"replica_id": [0, 0, 1, 1], "partition_id": [0, 1, 0, 1]}


def _number(subject: PluginSubject, name: str) -> None:
    one, part = typed((), "float32"), typed(SHAPE, "float32")
    number = typed((), "uint32")
    lines = (
        f"%i = stablehlo.{name} : {number} %f = stablehlo.convert %i : ({number}) -> {one} "
        f"%r = stablehlo.broadcast_in_dim %f, dims = [] : ({one}) -> {part}"
    )
    found = _run(subject, lines, SHAPE, _arrays(subject, name))
    for i, array in enumerate(found):
        expect_same_bits(array, np.full(SHAPE, _NUMBERS[name][i], np.float32), _part(i))


for _name in _NUMBERS:
    CHAPTER.add(
        _name, f"{_name} tells each of two partitions of two replicas its own.",
        partial(_number, name=_name), capability="partitions", refusable=True,
        rests_on=f"StableHLO specification: {_name}",
        why="each device takes the same part of the data for its own",
    )  # fmt: skip


Strategy = tuple[str, Groups, Groups, str]
"""Attributes, rows of ``replica_groups``, the devices of each group, and a description."""
_REPLICA = ("", ((1, 0),), ((2, 0), (3, 1)), "the replicas of each partition")
_BOTH = (_CHANNEL, ((1,), (0,)), ((2, 3), (0, 1)), "all partitions of a group of replicas")
_FLATTENED = (
    f"{_CHANNEL}, use_global_device_ids", ((0, 3), (2, 1)), ((0, 3), (2, 1)),
    "devices by their numbers",
)  # fmt: skip
_PARTITION = (_CHANNEL, ((1, 0),), ((1, 0), (3, 2)), "the partitions of each replica")
_OF_REDUCTIONS = {
    "cross_replica": _REPLICA, "cross_replica_and_partition": _BOTH, "flattened_ids": _FLATTENED
}  # fmt: skip
_OF_OTHERS = {"cross_replica": _REPLICA, "cross_partition": _PARTITION}
STRATEGIES: Mapping[str, Mapping[str, Strategy]] = {
    "all_reduce.add": _OF_REDUCTIONS, "all_gather": _OF_REDUCTIONS,
    "reduce_scatter": _OF_REDUCTIONS, "all_to_all": _OF_OTHERS,
    "collective_broadcast": _OF_OTHERS,
}  # fmt: skip
"""The process groups of the specification, for each collective that has them."""


def _collective(subject: PluginSubject, collective: Collective, strategy: Strategy) -> None:
    attributes, rows, devices, _ = strategy
    arrays = _arrays(subject, collective.id)
    members = len(devices[0])
    types, written, regions = collective.parts("float32", rows, attributes, members)
    value = ("%b", typed(SHAPE, "float32"))
    line = f"%r = {operation_text(collective.name, [value], types, written, regions)}"
    found = _run(subject, line, collective.shape(members), arrays)
    for i, wanted in enumerate(collective.expected(arrays, devices)):
        expect_same_bits(found[i], wanted, _part(i))


def _part(device: int) -> str:
    return f"the result of replica {device // _PARTITIONS}, partition {device % _PARTITIONS}"


for _found in COLLECTIVES:
    for _name, _strategy in STRATEGIES.get(_found.id, {}).items():
        CHAPTER.add(
            f"{_found.id}.{_name}",
            f"{_found.id} joins {_strategy[3]} ({_name}), of two replicas by two partitions.",
            partial(_collective, collective=_found, strategy=_strategy), why=_WHY,
            rests_on=f"StableHLO specification: {_found.name}, {_name}",
            capability="collectives", refusable=True,
        )  # fmt: skip


def _permute(subject: PluginSubject, attributes: str, source_of: Callable[[int], int]) -> None:
    arrays = _arrays(subject, "collective_permute")
    part = typed(SHAPE, "float32")
    pairs = "source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>"
    joined = ", ".join(filter(None, (pairs, attributes)))
    line = f"%r = {operation_text('collective_permute', [('%b', part)], [part], joined)}"
    found = _run(subject, line, SHAPE, arrays)
    for i, array in enumerate(found):
        expect_same_bits(array, np.asarray(arrays[source_of(i)]), _part(i))


for _name, _attributes, _source_of in (
    ("cross_replica", "", lambda i: (i + _PARTITIONS) % _DEVICES),
    ("cross_partition", _CHANNEL, lambda i: i ^ 1),
):
    CHAPTER.add(
        f"collective_permute.{_name}",
        f"collective_permute swaps arrays ({_name}), of two replicas by two partitions.",
        partial(_permute, attributes=_attributes, source_of=_source_of), why=_WHY,
        rests_on=f"StableHLO specification: collective_permute, {_name}",
        capability="collectives", refusable=True,
    )  # fmt: skip
