"""The NumPy backend: its operations, refusals, devices and memory."""

from __future__ import annotations

import ctypes
import gc
import itertools
import re
import weakref
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.errors import (
    FailedPrecondition,
    InvalidArgument,
    ProgramError,
    ResourceExhausted,
    Unimplemented,
)
from plugrt.interface import Client, CompileOptions, Program
from plugrt.stablehlo import bindings
from plugrt.stablehlo.modules import parse
from plugrt_numpy import plugin, table
from plugrt_numpy.backend import NumpyBackend
from plugrt_numpy.devices import Grid
from plugrt_numpy.functions import ModuleCompiler
from plugrt_sdk import BackendClient
from plugrt_sdk.testing.program_text import ProgramText, named_dtype, typed
from support.distributions import run_warm
from support.markdown import load_script
from support.stablehlo_cases import CASES, write


def run(
    text: str, *arguments: Any, replicas: int = 1, partitions: int = 1
) -> list[list[np.ndarray[Any, Any]]]:
    """Returns ``results[result][device]``; ``arguments[parameter][device]``."""
    client = BackendClient(NumpyBackend(replicas * partitions, check_types=True))
    options = CompileOptions(num_replicas=replicas, num_partitions=partitions)
    executable = client.compile(Program(text.encode()), options)
    puts = [
        [
            client.buffer_from_host(np.asarray(a), d)
            for a, d in zip(shards, client.devices(), strict=True)
        ]
        for shards in arguments
    ]
    return [[shard.to_host() for shard in result] for result in executable.execute(puts)]


def main(body: str, parameters: str = "", results: str = "") -> str:
    return f"func.func public @main({parameters}) -> ({results}) {{\n{body}\n}}"


def registered() -> set[str]:
    """Returns the StableHLO operations that the installed bindings know."""
    classes = [c for c in vars(bindings.hlo).values() if hasattr(c, "OPERATION_NAME")]
    return {c.OPERATION_NAME for c in classes if c.OPERATION_NAME.startswith("stablehlo.")}


def test_every_operation_is_run_or_refused_with_a_reason() -> None:
    ours = {
        *table.OPERATIONS,
        *table.JOINT,
        *table.REFUSED,
        *table.TERMINATORS,
        "stablehlo.constant",
    }
    assert len(registered()) > 100
    assert sorted(registered() - ours) == []
    run = {name for name in ours - {*table.REFUSED} if name.startswith("stablehlo.")}
    assert sorted(run - registered()) == []
    # Older bindings lack new operations; any other unknown name in REFUSED is misspelt.
    assert {*table.REFUSED} - registered() <= {"stablehlo.collective_reduce"}
    assert not {*table.OPERATIONS, *table.JOINT} & {*table.REFUSED}
    assert all(table.REFUSED.values())


def test_the_page_is_current() -> None:
    generator = load_script("docs/generate/numpy_backend.py")
    assert generator.page() == generator.PAGE.read_text(), "run make docs"


def test_no_operation_is_listed_twice() -> None:
    names = [name for chapter in table.CHAPTERS for name in chapter.OPERATIONS]
    assert len(names) == len(set(names)) == len(table.OPERATIONS)


def test_the_programs_compared_with_xla_hold_nearly_every_operation() -> None:
    held = {
        n
        for name in CASES
        for n in re.findall(r'(?:"|= )(stablehlo\.[a-z_0-9]+)', write(name).text())
    }
    elsewhere = {  # tested here, or in a file of their own
        "after_all", "broadcast", "composite", "create_token", "custom_call", "dot",
        "dynamic_broadcast_in_dim", "dynamic_conv", "dynamic_gather", "dynamic_iota",
        "dynamic_pad", "dynamic_reshape", "get_tuple_element", "real_dynamic_slice", "rng", "tuple",
    }  # fmt: skip
    ours = {name for name in table.OPERATIONS if name.startswith("stablehlo.")}
    assert ours - held == {f"stablehlo.{name}" for name in elsewhere}


def test_a_refusal_names_operation_place_and_reason() -> None:
    text = main(
        '%t = stablehlo.create_token : !stablehlo.token\n'
        '%r:2 = "stablehlo.infeed"(%t) {infeed_config = "", layout = [[0]]} : (!stablehlo.token) '
        '-> (tensor<2xf32>, !stablehlo.token) loc("train.py":12:3)\n'
        "return %r#0 : tensor<2xf32>", "", "tensor<2xf32>",
    )  # fmt: skip
    with pytest.raises(Unimplemented) as raised:
        run(text)
    for fact in ("stablehlo.infeed", "train.py:12", "host"):
        assert fact in str(raised.value)


@pytest.mark.parametrize(
    "body",
    [
        "%r = stablehlo.add %x, %x : tensor<2x!quant.uniform<i8:f32, 1.0>> "
        "return %y : tensor<2xf32>",
        "%r = stablehlo.uniform_quantize %y : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, "
        "1.0>> return %y : tensor<2xf32>",
    ],
)
def test_quantised_programs_are_refused(body: str) -> None:
    x = "%x: tensor<2x!quant.uniform<i8:f32, 1.0>>, " if "%x" in body else ""
    with pytest.raises((Unimplemented, ProgramError)) as raised:
        run(main(body, x + "%y: tensor<2xf32>", "tensor<2xf32>"))
    assert "quant" in str(raised.value)


def test_an_unknown_custom_call_is_refused_by_name() -> None:
    text = main(
        '%r = stablehlo.custom_call @somebodys(%x) : (tensor<2xf32>) -> tensor<2xf32> '
        "return %r : tensor<2xf32>", "%x: tensor<2xf32>", "tensor<2xf32>",
    )  # fmt: skip
    with pytest.raises(Unimplemented, match="somebodys"):
        run(text)


def test_integer_powers_wrap_and_negative_ones_are_zero() -> None:
    program = ProgramText()
    base, exponent = np.int32([2, 3, -1, -1, 1, 0, 5, -2]), np.int32([31, 21, -3, -4, -9, 0, -1, 3])
    program.apply(
        "power", [program.argument(base), program.argument(exponent)], [typed((8,), "int32")]
    )
    [[result]] = run(program.text(), [base], [exponent])
    assert result.tolist() == [-(2**31), 1870418611, -1, 1, 1, 1, 0, -8]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("x", [0.0, -0.0])
@pytest.mark.parametrize("y", [0.0, -0.0])
def test_a_minimum_or_maximum_of_zeros_has_the_sign_that_orders_them(
    x: float, y: float, dtype: str
) -> None:
    program, kind = ProgramText(), typed((9,), dtype)
    zeros = [np.full(9, zero, named_dtype(dtype)) for zero in (x, y)]
    arguments = [program.argument(zero) for zero in zeros]
    for name in ("minimum", "maximum"):
        program.apply(name, arguments, [kind])
    [[smaller], [larger]] = run(program.text(), *([zero] for zero in zeros))
    signs = [np.signbit(found.astype(np.float64)).tolist() for found in (smaller, larger)]
    negative = [bool(np.signbit(zero)) for zero in (x, y)]
    assert signs == [[any(negative)] * 9, [all(negative)] * 9]


@pytest.mark.parametrize(
    ("dtype", "literal", "wanted"),
    [
        ("int4", "[7, -8, 0]", [7, -8, 0]),
        ("uint4", "[15, 0, 3]", [15, 0, 3]),
        ("bfloat16", "[1.5, 0x7F80, -0.0]", [1.5, np.inf, -0.0]),
        ("float8_e4m3fn", "[448.0, 0x7F, 1.0]", [448, np.nan, 1]),
        ("complex64", "[(1.0, -2.0), (0x7F800000, 0.0), (0.0, 3.0)]",
         [1 - 2j, complex(np.inf, 0), 3j]),
        ("bool", "[true, false, true]", [True, False, True]),
        ("uint64", "[18446744073709551615, 0, 1]", [2**64 - 1, 0, 1]),
        ("int8", "-3", [-3, -3, -3]),
        ("complex128", "(1.0, 2.0)", [1 + 2j] * 3),
    ],
)  # fmt: skip
def test_constants_of_every_kind(dtype: str, literal: str, wanted: list[Any]) -> None:
    kind = typed((3,), dtype)
    text = main(f"%r = stablehlo.constant dense<{literal}> : {kind}\nreturn %r : {kind}", "", kind)
    [[result]] = run(text)
    assert result.dtype == named_dtype(dtype)
    exact = (
        np.complex128 if "complex" in dtype else named_dtype(dtype) if "64" in dtype else np.float64
    )
    np.testing.assert_array_equal(result.astype(exact), np.array(wanted, exact))
    big = np.resize(result, 300)
    if dtype in ("int4", "bfloat16", "complex64"):
        values = ", ".join(re.findall(r"\([^)]*\)|[^,\[\] ]+", literal) * 100)
        kind = typed((300,), dtype)
        text = main(
            f"%r = stablehlo.constant dense<[{values}]> : {kind}\nreturn %r : {kind}", "", kind
        )
        np.testing.assert_array_equal(run(text)[0][0], big)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5)])
def test_the_qr_decomposition_that_jax_writes(dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    a = rng.normal(size=shape).astype(dtype)
    if dtype == "complex128":
        a += 1j * rng.normal(size=shape)
    small = min(shape[-2:])
    program = ProgramText()
    x = program.argument(a)
    taus = typed((*shape[:-2], small), dtype)
    packed, tau = program.apply("custom_call", [x], [x[1], taus], 'call_target_name = "Qr"')
    kind = typed((*shape[:-1], small), dtype)
    if shape[-2] >= shape[-1]:
        program.apply(
            "custom_call", [packed, tau], [kind],
            'call_target_name = "ProductOfElementaryHouseholderReflectors"',
        )  # fmt: skip
        [r], _, [q] = run(program.text(), [a])
        np.testing.assert_allclose(q @ np.triu(r[..., :small, :]), a, atol=1e-5)
        identity = np.broadcast_to(np.eye(small), r[..., :small, :].shape)
        np.testing.assert_allclose(np.conj(np.swapaxes(q, -1, -2)) @ q, identity, atol=1e-5)
    else:
        [r], [t] = run(program.text(), [a])
        assert t.shape == (small,)
        np.testing.assert_allclose(np.abs(np.diag(r)[0]), np.linalg.norm(a[:, 0]), rtol=1e-5)


GROUPS = "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"
SUM = (
    "({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %s = stablehlo.add %a, %b : tensor<f32> "
    "stablehlo.return %s : tensor<f32> })"
)
VECTOR = "tensor<4xf32>"


def collective(line: str, result: str = VECTOR) -> str:
    return main(f"%r = {line} -> {result}\nreturn %r : {result}", f"%x: {VECTOR}", result)


def test_devices_leave_loops_and_choose_branches_on_their_own() -> None:
    text = main(
        f"""%i = stablehlo.replica_id : tensor<ui32>
        %two = stablehlo.constant dense<2> : tensor<ui32>
        %group = stablehlo.divide %i, %two : tensor<ui32>
        %one = stablehlo.constant dense<1> : tensor<ui32>
        %zero = stablehlo.constant dense<0> : tensor<ui32>
        %w:2 = stablehlo.while(%n = %zero, %v = %x) : tensor<ui32>, {VECTOR}
          cond {{ %c = stablehlo.compare LE, %n, %group : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
                 stablehlo.return %c : tensor<i1> }}
          do {{ %m = stablehlo.add %n, %one : tensor<ui32>
               %s = "stablehlo.all_reduce"(%v) {SUM} {{{GROUPS}}} : ({VECTOR}) -> {VECTOR}
               stablehlo.return %m, %s : tensor<ui32>, {VECTOR} }}
        return %w#1 : {VECTOR}""",
        f"%x: {VECTOR}", VECTOR,
    )  # fmt: skip
    [result] = run(text, [np.ones(4, np.float32)] * 4, replicas=4)
    assert [int(r[0]) for r in result] == [2, 2, 4, 4]


def test_a_collective_that_not_all_of_a_group_reach_is_an_error() -> None:
    everyone = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
    text = main(
        f"""%i = stablehlo.replica_id : tensor<ui32>
        %n = stablehlo.bitcast_convert %i : (tensor<ui32>) -> tensor<i32>
        %r = "stablehlo.case"(%n) ({{
          %s = "stablehlo.all_reduce"(%x) {SUM} {{{everyone}}} : ({VECTOR}) -> {VECTOR}
          stablehlo.return %s : {VECTOR} }}, {{ stablehlo.return %x : {VECTOR} }})
          : (tensor<i32>) -> {VECTOR}
        return %r : {VECTOR}""",
        f"%x: {VECTOR}", VECTOR,
    )  # fmt: skip
    with pytest.raises(FailedPrecondition, match=r"all_reduce.*\[0, 1\].*\[0\]"):
        run(text, [np.ones(4, np.float32)] * 2, replicas=2)


SHARDED = """module {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @main(%x: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
      %y: tensor<4x4xf32>) -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b", "a"}]>}) {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"b"}, {}]>] out_shardings=[<@mesh, [{"b"}, {}]>] manual_axes={"b"} (%z: tensor<2x4xf32>) {
      %i = stablehlo.partition_id : tensor<ui32>
      %s = "stablehlo.all_reduce"(%z) SUM {channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
      sdy.return %s : tensor<2x4xf32>
    } : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
}""".replace("SUM", SUM)  # noqa: E501  # a program as JAX prints it


def test_a_partitioned_program_takes_and_gives_parts() -> None:
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    y = np.eye(4, dtype=np.float32)[::-1] * 2
    parts = [x[:2, :2], x[:2, 2:], x[2:, :2], x[2:, 2:]]
    [result] = run(SHARDED, parts, [y] * 4, partitions=4)
    whole = x @ y
    whole = np.concatenate([whole[:2] + whole[2:]] * 2)
    # The columns are divided over b first, then over a; device 2 * a + b.
    for device, column in enumerate((0, 2, 1, 3)):
        np.testing.assert_array_equal(result[device], whole[:, column : column + 1])


MEETING = """module attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["a"=2]>
  func.func public @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>})
      -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
    %i = stablehlo.replica_id : tensor<ui32>
    %j = stablehlo.convert %i : (tensor<ui32>) -> tensor<f32>
    %k = stablehlo.broadcast_in_dim %j, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}]>]
        out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a"} (%y: tensor<2xf32>) {
      %p = stablehlo.partition_id : tensor<ui32>
      %q = stablehlo.convert %p : (tensor<ui32>) -> tensor<f32>
      %m = stablehlo.broadcast_in_dim %q, dims = [] : (tensor<f32>) -> tensor<2xf32>
      %z = stablehlo.multiply %y, %m : tensor<2xf32>
      %s = "stablehlo.all_reduce"(%z) SUM {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}
        : (tensor<2xf32>) -> tensor<2xf32>
      sdy.return %s : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.reverse %0, dims = [0] : tensor<4xf32>
    %2 = stablehlo.add %1, %k : tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}""".replace("SUM", SUM)


def test_replicas_of_a_partitioned_program_exchange_data() -> None:
    """Code outside of `manual_computation` runs on each replica's whole array."""
    parts = [np.array([1, 2], np.float32) * 10**i for i in range(4)]
    [result] = run(MEETING, parts, replicas=2, partitions=2)
    # Each part times its partition's id, summed over the replicas; then the arrays are reversed.
    reversed_parts = [(parts[1] + parts[3])[::-1], np.zeros(2)]
    for device in range(4):
        replica, partition = divmod(device, 2)
        np.testing.assert_array_equal(result[device], reversed_parts[partition] + replica)


def test_replicas_exchange_data_in_a_manual_computation_of_one_partition() -> None:
    text = MEETING.replace('"a"=2', '"a"=1').replace("num_partitions = 2", "num_partitions = 1")
    text = text.replace("tensor<2xf32>", "tensor<4xf32>").replace("multiply %y, %m", "add %y, %m")
    x = [np.arange(4, dtype=np.float32) * 10**i for i in range(2)]
    [result] = run(text, x, replicas=2)
    for replica in range(2):
        np.testing.assert_array_equal(result[replica], (x[0] + x[1])[::-1] + replica)


WHOLE = """module attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }
}"""


def test_arrays_of_every_launch_have_an_address() -> None:
    client = BackendClient(NumpyBackend(2))
    for options in (CompileOptions(2, 1), CompileOptions(1, 2)):
        loaded = client.compile(Program(WHOLE.encode()), options)
        x = [client.buffer_from_host(np.array(3, np.float32), d) for d in client.devices()]
        for buffer in loaded.execute([x])[0]:
            address = buffer.unsafe_pointer()
            assert ctypes.c_float.from_address(address).value == 3
            assert buffer.unsafe_pointer() == address


def test_compiled_programs_keep_no_module() -> None:
    module = parse(write("control_flow").text())
    seen = weakref.ref(module)
    with module.context:
        launch = ModuleCompiler(module, Grid()).function("main")
    del module
    gc.collect()
    assert seen() is None
    assert len(launch(*write("control_flow").arguments)) > 3


def test_arrays_are_the_devices_own() -> None:
    client: Client = BackendClient(NumpyBackend(2))
    source = np.arange(3.0)
    buffer = client.buffer_from_host(source, client.devices()[0])
    source[:] = 0
    copy = buffer.copy_to_device(client.devices()[1])
    buffer.delete()
    assert copy.to_host().tolist() == [0, 1, 2]
    assert not copy.to_host().flags.writeable


def test_each_result_has_memory_of_its_own() -> None:
    """An argument, one array twice, a slice, a view, and constants of both forms."""
    kind = "tensor<4xf32>"
    text = main(
        f"%c = stablehlo.constant dense<[1., 2., 3., 4.]> : {kind}\n"
        f"%d = stablehlo.constant dense<7.> : {kind}\n"
        f"%y = stablehlo.add %x, %x : {kind}\n"
        f"%s = stablehlo.slice %x [0:2] : ({kind}) -> tensor<2xf32>\n"
        f"%p = stablehlo.slice %y [0:2] : ({kind}) -> tensor<2xf32>\n"
        f"%r = stablehlo.reshape %x : ({kind}) -> tensor<2x2xf32>\n"
        "return %x, %x, %y, %y, %s, %p, %r, %c, %d : "
        f"{kind}, {kind}, {kind}, {kind}, tensor<2xf32>, tensor<2xf32>, tensor<2x2xf32>, "
        f"{kind}, {kind}",
        f"%x: {kind}",
        f"{kind}, {kind}, {kind}, {kind}, tensor<2xf32>, tensor<2xf32>, tensor<2x2xf32>, "
        f"{kind}, {kind}",
    )
    client: Client = BackendClient(NumpyBackend())
    loaded = client.compile(Program(text.encode()), CompileOptions())
    x = client.buffer_from_host(np.arange(4, dtype=np.float32), client.devices()[0])
    buffers = [x, *(shard for _ in range(2) for [shard] in loaded.execute([[x]]))]
    sizes = [buffer.to_host().nbytes for buffer in buffers]
    begins = sorted(zip([buffer.unsafe_pointer() for buffer in buffers], sizes, strict=True))
    for (address, size), (following, _) in itertools.pairwise(begins):
        assert address + size <= following
    for before, size, after in zip(buffers[1:10], sizes[1:10], buffers[10:], strict=True):
        ctypes.memset(before.unsafe_pointer(), 0, size)  # as a DLPack consumer may
        assert after.to_host().any()
    [again, *_, constant, splat] = [shard for [shard] in loaded.execute([[x]])]
    assert again.to_host().tolist() == [0, 1, 2, 3]
    assert constant.to_host().tolist() == [1, 2, 3, 4]
    assert splat.to_host().tolist() == [7, 7, 7, 7]


def test_a_result_that_is_a_piece_keeps_no_larger_array_in_memory() -> None:
    kind = "tensor<1000xf32>"
    text = main(
        f"%y = stablehlo.add %x, %x : {kind}\n"
        f"%p = stablehlo.slice %y [0:2] : ({kind}) -> tensor<2xf32>\n"
        "return %p : tensor<2xf32>",
        f"%x: {kind}",
        "tensor<2xf32>",
    )
    client = BackendClient(NumpyBackend())
    loaded = client.compile(Program(text.encode()), CompileOptions())
    x = client.buffer_from_host(np.ones(1000, np.float32), client.devices()[0])
    [[piece]] = loaded.execute([[x]])
    assert piece.handle.tolist() == [2, 2]
    assert piece.handle.base is None


def test_results_can_be_read_contiguously() -> None:
    program = ProgramText()
    x = program.argument(np.arange(6, dtype="f4").reshape(2, 3))
    program.apply("transpose", [x], [typed((3, 2), "float32")], "permutation = array<i64: 1, 0>")
    [[result]] = run(program.text(), [program.arguments[0]])
    assert result.flags.c_contiguous
    assert result.shape == (3, 2)


def test_a_result_too_large_for_memory_is_resource_exhausted() -> None:
    kind = "tensor<1048576x1048576x8xf64>"
    text = main(
        f"%r = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f64>) -> {kind}\n"
        f"%s = stablehlo.add %r, %r : {kind}\nreturn %s : {kind}", "%x: tensor<f64>", kind,
    )  # fmt: skip
    with pytest.raises(ResourceExhausted, match="float64"):
        run(text, [np.float64(1)])


@pytest.mark.parametrize("count", [0, -1])
def test_too_few_devices_are_refused(count: int) -> None:
    with pytest.raises(InvalidArgument, match="num_devices"):
        NumpyBackend(count)


def test_the_plugin_is_below_the_cpu_and_takes_the_number_of_devices() -> None:
    client = plugin.create_client({"num_devices": 3})
    assert [d.kind for d in client.devices()] == ["NumPy"] * 3
    assert client.platform == plugin.name == "numpy"
    assert plugin.priority < 0


def test_it_is_used_where_it_is_named_and_never_chosen() -> None:
    code = """
import sys, plugrt
try:
    print([d.platform for d in plugrt.devices()])
except plugrt.errors.PlugrtError as error:
    print(type(error).__name__)
print("plugrt_sdk.client" in sys.modules)
"""
    named = run_warm(code, JAX_PLATFORMS="numpy")
    assert named.stdout.split() == ["['numpy']", "True"], named.stderr
    others = sorted({row.name for row in plugrt.plugins.table()} - {"numpy"})
    unnamed = run_warm(code, PLUGRT_PLUGINS_BLOCK=",".join(others))
    assert unnamed.stdout.split() == ["PluginUnavailable", "False"], unnamed.stderr


@pytest.mark.parametrize("sharded", ["an argument", "a result"])
def test_parts_of_unequal_sizes_are_refused(sharded: str) -> None:
    given, taken = (
        '{mhlo.sharding = "{devices=[2]<=[2]}"}' if sharded == side else ""
        for side in ("an argument", "a result")
    )
    text = f"""module attributes {{mhlo.num_partitions = 2 : i32}} {{
      func.func public @main(%a: tensor<5xf32> {given}) -> (tensor<5xf32> {taken}) {{
        return %a : tensor<5xf32>
      }}
    }}"""
    client = BackendClient(NumpyBackend(2))
    with pytest.raises(Unimplemented, match=r"dimension 0 .* shape \(5,\) .* no multiple of 2"):
        client.compile(Program(text.encode()), CompileOptions(num_partitions=2))


MESH = 'sdy.mesh @mesh = <["x"=2, "y"=2]>\n'
ROWS = '#sdy.sharding<@mesh, [{"y"}]>'
TERMS = '#sdy.sharding<@mesh, [{"y"}], unreduced={"x"}>'
KIND = "tensor<4xf32>"


def test_an_unreduced_result_is_the_sum_of_what_the_devices_have() -> None:
    text = MESH + main(
        f"return %x : {KIND}",
        f"%x: {KIND} {{sdy.sharding = {ROWS}}}",
        f"{KIND} {{sdy.sharding = {TERMS}}}",
    )
    lower, upper = np.float32([1, 2]), np.float32([3, 4])
    [terms] = run(text, [lower, upper, lower, upper], partitions=4)
    np.testing.assert_array_equal(terms[0] + terms[2], lower)
    np.testing.assert_array_equal(terms[1] + terms[3], upper)


def test_an_unreduced_argument_is_summed_over_its_axes_alone() -> None:
    text = MESH + main(
        f"return %x : {KIND}",
        f"%x: {KIND} {{sdy.sharding = {TERMS}}}",
        f"{KIND} {{sdy.sharding = {ROWS}}}",
    )
    [given] = run(text, [np.float32([n, 10 * n]) for n in (1, 2, 4, 8)], partitions=4)
    assert [x.tolist() for x in given] == [[5, 50], [10, 100], [5, 50], [10, 100]]


def test_a_manual_computation_takes_and_gives_partial_sums() -> None:
    result = f"{KIND} {{sdy.sharding = {ROWS}}}"
    taken, given = TERMS.removeprefix("#sdy.sharding"), ROWS.removeprefix("#sdy.sharding")
    body = f"""
      %0 = sdy.manual_computation(%x) in_shardings=[{given}] out_shardings=[{taken}]
        manual_axes={{"x", "y"}} (%a: tensor<2xf32>) {{
        %p = stablehlo.partition_id : tensor<ui32>
        %f = stablehlo.convert %p : (tensor<ui32>) -> tensor<f32>
        %n = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<2xf32>
        %t = stablehlo.add %a, %n : tensor<2xf32>
        sdy.return %t : tensor<2xf32>
      }} : ({KIND}) -> {KIND}
      %1 = sdy.manual_computation(%0) in_shardings=[{taken}] out_shardings=[{given}]
        manual_axes={{"x", "y"}} (%b: tensor<2xf32>) {{
        %2 = "stablehlo.all_reduce"(%b) ({{
          ^bb0(%l: tensor<f32>, %r: tensor<f32>):
          %3 = stablehlo.add %l, %r : tensor<f32>
          stablehlo.return %3 : tensor<f32>
        }}) {{replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>,
             channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
             use_global_device_ids}} : (tensor<2xf32>) -> tensor<2xf32>
        sdy.return %2 : tensor<2xf32>
      }} : ({KIND}) -> {KIND}
      return %1 : {KIND}"""
    text = MESH + main(body, f"%x: {KIND} {{sdy.sharding = {ROWS}}}", result)
    lower, upper = np.float32([1, 2]), np.float32([3, 4])
    [found] = run(text, [lower, upper, lower, upper], partitions=4)
    assert [x.tolist() for x in found] == [[4, 6], [10, 12]] * 2
