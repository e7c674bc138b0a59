"""Compiling, launching, donating, analysing and storing programs on a real library."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from plugrt.errors import (
    DataLoss,
    DeletedBuffer,
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


class TestBadArguments:
    """Arguments that no launch can be made with: an exception each, and the next launch works."""

    @pytest.mark.parametrize("launched_before", [False, True])
    def test_all(
        self, client: Client, own_client: Client, device: Device, launched_before: bool
    ) -> None:
        loaded = client.compile(add(), CompileOptions())
        x = ones(client, device)
        if launched_before:
            loaded.execute([(x,), (x,)])
        deleted = ones(client, device)
        deleted.delete()
        foreign = ones(own_client, own_client.devices()[0])
        elsewhere = ones(client, client.devices()[1])
        small = client.buffer_from_host(np.ones(2, F4), device)
        for arguments, error, message in [
            ([(x,)], InvalidArgument, "1"),
            ([], InvalidArgument, "0"),
            ([(x,), (x,), (x,)], InvalidArgument, "3"),
            ([(x,), (deleted,)], DeletedBuffer, r"argument 1 of 'add' .* was deleted"),
            ([(x,), (foreign,)], InvalidArgument, "argument 1 .* not a buffer of the client"),
            ([(x,), (object(),)], InvalidArgument, "argument 1 .* not a buffer of the client"),
            ([(x,), (x, x)], InvalidArgument, "argument 1 of 'add' has 2 shards"),
            ([(x,), ()], InvalidArgument, "argument 1 of 'add' has 0 shards"),
            ([(x,), (elsewhere,)], InvalidArgument, "on device TFRT_CPU_1"),
            ([(small,), (x,)], InvalidArgument, "size 16 but got buffer .* size 8"),
        ]:
            with pytest.raises(error, match=message):
                loaded.execute(arguments)  # type: ignore[arg-type]
        assert loaded.execute([(x,), (x,)])[0][0].to_host()[0] == 2


class TestDonation:
    """Arguments whose memory a launch takes."""

    def test_donor(self, client: Client, device: Device) -> None:
        donor = add(donate="{jax.buffer_donor = true}")
        loaded = client.compile(donor, CompileOptions())
        x = ones(client, device)
        ((result,),) = loaded.execute([(x,), (ones(client, device),)])
        assert result.to_host()[0] == 2
        assert (
            x.is_deleted()
            == client.library.call("Buffer_IsDeleted", buffer=x._pointer or x._dead).is_deleted
        )

    def test_one_array_as_both_arguments(self, client: Client) -> None:
        """Refused before a device runs: XLA refuses it on one of two, and hangs the next launch."""
        loaded = client.compile(add(donate=DONATED), CompileOptions(num_replicas=2))
        launches = (loaded.execute, loaded.launcher)
        for launch in (*launches, *launches):  # what the first launch checks, later ones do not
            x, y = (
                client.shards([ones(client, d) for d in client.devices()[:2]]) for _ in range(2)
            )
            with pytest.raises(InvalidArgument, match="argument 0 of 'add' is donated, and is arg"):
                launch([x, x])
            (results,) = launch([x, y])
            assert [r.to_host()[0] for r in results] == [2, 2]


class TestStoring:
    """Executables as bytes."""

    def test_corrupt_and_cut(self, client: Client) -> None:
        stored = client.compile(add(), CompileOptions()).executable.serialize()
        for size in (1, 10, 30, 200, len(stored) // 2, len(stored) - 1):
            with pytest.raises(DataLoss):
                client.deserialize_executable(stored[:size])
        changed = bytearray(stored)
        changed[-100] ^= 0xFF
        with pytest.raises(DataLoss, match="damaged"):
            client.deserialize_executable(bytes(changed))

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


def test_threads_launch_at_once(client: Client, device: Device) -> None:
    loaded = client.compile(add(), CompileOptions())
    wrong: list[object] = []

    def work(value: int) -> None:
        x = ones(client, device, value)
        for _ in range(300):
            ((result,),) = loaded.execute([(x,), (x,)])
            if result.to_host().tolist() != [2 * value] * 4:
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
