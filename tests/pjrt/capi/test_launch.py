"""Compiling, launching, donating, analysing and storing programs on a real library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrt.errors import (
    FailedPrecondition,
    Internal,
    InvalidArgument,
    PjrtError,
    Unimplemented,
    Unknown,
)
from plugrt.interface import Client, CompileOptions, Device, Program
from support.changed_headers import rewrite_header
from support.xla_cpu import DONATED, add

F4 = np.dtype(np.float32)


def ones(client: Client, device: Device, value: float = 1) -> Any:
    return client.buffer_from_host(np.full(4, value, F4), device)


def test_facts_of_an_executable(client: Client) -> None:
    loaded = client.compile(add("tensor<2x3xf32>"), CompileOptions())
    executable = loaded.executable
    assert executable.name == "add"
    assert (executable.num_replicas, executable.num_partitions) == (1, 1)
    assert [(t.shape, t.dtype.name) for t in executable.output_types] == [((2, 3), "float32")]
    assert [(t.shape, t.dtype.name) for t in executable.input_types] == [((2, 3), "float32")] * 2
    assert [*executable.donated_parameters] == []
    with pytest.raises(Unimplemented, match="GetOutputMemoryKinds is not supported"):
        _ = executable.output_memory_kinds
    cost = executable.cost_analysis()
    assert cost["flops"] == 6.0
    assert cost["bytes accessed"] == 72.0
    memory = executable.memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes) == (48, 24)
    optimized = executable.optimized_program()
    assert optimized.format == "hlo_with_config"
    assert b"main" in optimized.code
    assert executable.generated_code_size_in_bytes() >= 0
    same = client.compile(add("tensor<2x3xf32>"), CompileOptions()).executable
    assert executable.fingerprint() == same.fingerprint() != b""
    other = client.compile(add(), CompileOptions()).executable
    assert executable.fingerprint() != other.fingerprint()


class TestDonation:
    """Arguments whose memory a launch reuses."""

    def test_one_array_as_both_arguments(self, client: Client) -> None:
        """Refused before a device runs: XLA refuses it on one of two, and hangs the next launch."""
        loaded = client.compile(add(donate=DONATED), CompileOptions(num_replicas=2))
        launches = (loaded.execute, loaded.launcher)
        for launch in (*launches, *launches):  # later launches skip the checks of the first one
            x, y = (
                client.shards([ones(client, d) for d in client.devices()[:2]]) for _ in range(2)
            )
            with pytest.raises(InvalidArgument, match="argument 0 of 'add' is donated, and is arg"):
                launch([x, x])
            (results,) = launch([x, y])
            assert [r.to_host()[0] for r in results] == [2, 2]


class TestStoring:
    """Executables as bytes."""

    def test_foreign(self, client: Client) -> None:
        stored = client.compile(add(), CompileOptions()).executable.serialize()
        with pytest.raises(InvalidArgument, match="for the platform 'gpu'"):
            client.deserialize_executable(rewrite_header(stored, b'"cpu"', b'"gpu"'))
        with pytest.raises(FailedPrecondition, match=r"another version .*pjrt_api: made with"):
            client.deserialize_executable(rewrite_header(stored, b"[0, 81]", b"[0, 80]"))
        with pytest.raises(InvalidArgument, match="there are no bytes"):
            client.deserialize_executable(b"")
        for bare in (b"garbage" * 20, b"\x00"):
            with pytest.raises(Internal):
                client.deserialize_executable(bare)

    def test_bare_bytes_of_the_library(self, client: Client) -> None:
        bare = client.compile(add(), CompileOptions()).executable.serialize_bare()
        assert client.deserialize_executable(bare).executable.name == "add"


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (Program(b"", name="x"), InvalidArgument, "the program 'x' is empty"),
        (Program(b" "), Unknown, "main"),
        (Program(b"module {}"), Unknown, "main"),
        (Program(b"\x00\xff garbage"), Unknown, "error"),
        (Program(b"ML\xefRgarbage"), Unknown, "bytecode"),
        (Program(b"ML\xefR\rStableHLO_v1.0.0\x00garbage"), Unknown, "error"),
        (Program(b"x", format="hlo"), InvalidArgument, "failed to deserialize"),
        (Program(b"x", format="nonsense"), InvalidArgument, "Unknown program format 'nonsense'"),
        (Program(b"x", format=""), InvalidArgument, "Unknown program format"),
    ],
)
def test_program_that_cannot_be_compiled(
    client: Client, bad: Program, error: type[PjrtError], message: str
) -> None:
    with pytest.raises(error, match=message):
        client.compile(bad, CompileOptions())


@pytest.mark.parametrize("encoded", [b"", b"\x1a\x00", b"\x1a\x02\x20\x01"])
def test_options_that_would_abort_the_library(client: Client, encoded: bytes) -> None:
    with pytest.raises(InvalidArgument, match="num_replicas and num_partitions"):
        client.compile(add(), CompileOptions(encoded=encoded))


def test_options_that_are_no_proto(client: Client) -> None:
    with pytest.raises(InvalidArgument, match="failed to deserialize CompileOptionsProto"):
        client.compile(add(), CompileOptions(encoded=b"\xff\xff\xff"))


def test_compiler_options(client: Client) -> None:
    client.compile(add(), CompileOptions(env_overrides={"xla_cpu_enable_fast_math": True}))
    with pytest.raises(InvalidArgument, match="No such compile option: 'xla_nonsense'"):
        client.compile(add(), CompileOptions(env_overrides={"xla_nonsense": True}))
