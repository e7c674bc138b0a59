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
from plugrt.interface import (
    Client,
    CompileOptions,
    Device,
    DeviceAssignment,
    ExecuteOptions,
    Program,
    TensorType,
)
from support.changed_headers import rewrite_header
from support.xla_cpu import DONATED, add, program

F4 = np.dtype(np.float32)


def ones(client: Client, device: Device, value: float = 1) -> Any:
    return client.buffer_from_host(np.full(4, value, F4), device)


@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_any_number_of_arguments_and_results(client: Client, device: Device, count: int) -> None:
    kinds = ", ".join(f"%a{i}: tensor<2xi32>" for i in range(count))
    values = ", ".join(f"%a{i}" for i in range(count))
    types = ", ".join(["tensor<2xi32>"] * count)
    body = f"return {values} : {types}" if count else "return"
    loaded = client.compile(program(body, kinds, types), CompileOptions())
    arguments = [
        (client.buffer_from_host(np.array([i, -i], np.int32), device),) for i in range(count)
    ]
    for _ in range(2):
        results = loaded.execute(arguments)
        assert [r.to_host()[0] for (r,) in results] == list(range(count))


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


def test_events_when_they_are_wanted(client: Client, device: Device) -> None:
    loaded = client.compile(add(), CompileOptions())
    x = ones(client, device)
    results, events = loaded.execute_with_events([(x,), (x,)])
    assert len(events) == 1
    told: list[object] = []
    done = threading.Event()
    events[0].on_ready(lambda error: (told.append(error), done.set()))
    assert done.wait(60)
    assert told == [None]
    assert results[0][0].to_host()[0] == 2


class TestSeveralDevices:
    """Replicas and partitions in one launch."""

    def test_replicas(self, client: Client) -> None:
        body = """
        %0 = "stablehlo.all_reduce"(%a) ({
          ^bb0(%x: tensor<f32>, %y: tensor<f32>):
            %s = stablehlo.add %x, %y : tensor<f32>
            stablehlo.return %s : tensor<f32>
        }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<f32>) -> tensor<f32>
        return %0 : tensor<f32>"""
        psum = program(body, "%a: tensor<f32>", "tensor<f32>")
        loaded = client.compile(psum, CompileOptions(num_replicas=4))
        assert loaded.addressable_devices == tuple(client.devices())
        assert loaded.device_assignment() == DeviceAssignment(((0,), (1,), (2,), (3,)))
        shards = [
            client.buffer_from_host(np.array(i, F4), d) for i, d in enumerate(client.devices())
        ]
        (results,) = loaded.execute([shards])
        assert [r.device for r in results] == list(client.devices())
        assert [float(r.to_host()) for r in results] == [6, 6, 6, 6]

    def test_partitions(self, client: Client) -> None:
        kind = 'tensor<8x2xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}'
        body = "%0 = stablehlo.add %a, %a : tensor<8x2xf32> return %0 : tensor<8x2xf32>"
        loaded = client.compile(
            program(body, f"%a: {kind}", kind),
            CompileOptions(num_partitions=4, use_spmd_partitioning=True),
        )
        assert list(loaded.executable.output_types) == [TensorType((2, 2), F4)]
        array = np.arange(16, dtype=F4).reshape(8, 2)
        shards = [
            client.buffer_from_host(array[2 * i : 2 * i + 2], d)
            for i, d in enumerate(client.devices())
        ]
        (results,) = loaded.execute([shards])
        np.testing.assert_array_equal(np.vstack([r.to_host() for r in results]), array * 2)

    def test_device_assignment(self, client: Client) -> None:
        options = CompileOptions(2, 1, DeviceAssignment(((3,), (1,))))
        loaded = client.compile(add(), options)
        assert [d.id for d in loaded.addressable_devices] == [3, 1]
        assert loaded.device_assignment() == options.device_assignment
        arguments = [[ones(client, client.devices()[i], value=i) for i in (3, 1)] for _ in range(2)]
        (results,) = loaded.execute(arguments)
        assert [r.to_host()[0] for r in results] == [6, 2]

    def test_wrong_number_of_shards(self, client: Client, device: Device) -> None:
        loaded = client.compile(add(), CompileOptions(num_replicas=2))
        x = ones(client, device)
        with pytest.raises(InvalidArgument, match=r"0 of 'add' has 1 shards; .* 2 devices"):
            loaded.execute([(x,), (x,)])

    @pytest.mark.parametrize("options", [
        CompileOptions(num_replicas=8),
        CompileOptions(device_assignment=DeviceAssignment(((77,),))),
    ])  # fmt: skip
    def test_devices_that_are_not_there(self, client: Client, options: CompileOptions) -> None:
        with pytest.raises(InvalidArgument, match="No matching device found for device_id"):
            client.compile(add(), options)


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

    def test_deleted_executable(self, client: Client, device: Device) -> None:
        loaded = client.compile(add(), CompileOptions())
        x = ones(client, device)
        loaded.execute([(x,), (x,)])
        loaded.delete()
        loaded.delete()
        assert loaded.is_deleted()
        with pytest.raises(FailedPrecondition, match="'add' was deleted"):
            loaded.execute([(x,), (x,)])


class TestDonation:
    """Arguments whose memory a launch takes."""

    def test_donated_argument_is_marked(self, client: Client, device: Device) -> None:
        loaded = client.compile(add(donate=DONATED), CompileOptions())
        for _ in range(2):
            x, y = ones(client, device), ones(client, device)
            ((result,),) = loaded.execute([(x,), (y,)])
            assert (x.is_deleted(), y.is_deleted()) == (True, False)
            with pytest.raises(DeletedBuffer, match="was donated to a launch of 'add'"):
                x.to_host()
            with pytest.raises(DeletedBuffer, match=r"argument 0 of 'add' .* was donated"):
                loaded.execute([(x,), (y,)])
            assert result.to_host()[0] == 2

    def test_non_donatable_input(self, client: Client, device: Device) -> None:
        loaded = client.compile(add(donate=DONATED), CompileOptions())
        x, y = ones(client, device), ones(client, device)
        options = ExecuteOptions(non_donatable_input_indices=(0,))
        ((result,),) = loaded.execute([(x,), (y,)], options)
        assert not x.is_deleted()
        assert (x.to_host()[0], result.to_host()[0]) == (1, 2)

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

    def test_on_several_devices(self, client: Client) -> None:
        loaded = client.compile(add(donate=DONATED), CompileOptions(num_replicas=2))
        x = [ones(client, d) for d in client.devices()[:2]]
        y = [ones(client, d) for d in client.devices()[:2]]
        (results,) = loaded.execute([x, y])
        assert all(b.is_deleted() for b in x)
        assert not any(b.is_deleted() for b in y)
        assert [r.to_host()[0] for r in results] == [2, 2]

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

    def test_there_and_back(self, client: Client, own_client: Client) -> None:
        stored = client.compile(add(), CompileOptions()).executable.serialize()
        for where in (client, own_client):
            loaded = where.deserialize_executable(stored)
            device = where.devices()[0]
            x = ones(where, device)
            assert list(loaded.executable.output_types) == [TensorType((4,), F4)]
            assert loaded.execute([(x,), (x,)])[0][0].to_host()[0] == 2

    def test_with_other_options(self, client: Client) -> None:
        stored = client.compile(add(), CompileOptions()).executable.serialize()
        options = CompileOptions(device_assignment=DeviceAssignment(((2,),)))
        loaded = client.deserialize_executable(stored, options)
        assert [d.id for d in loaded.addressable_devices] == [2]

    def test_donation_is_known_again(self, client: Client, device: Device) -> None:
        stored = client.compile(add(donate=DONATED), CompileOptions()).executable.serialize()
        x = ones(client, device)
        client.deserialize_executable(stored).execute([(x,), (ones(client, device),)])
        assert x.is_deleted()

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
