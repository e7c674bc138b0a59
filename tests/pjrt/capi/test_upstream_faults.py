"""Faults of XLA in xla-cpu-pjrt: a test that fails here shows that a workaround is not needed.

`docs/data/upstream_faults.toml` has the workaround of each.
"""

from __future__ import annotations

import re
import signal
import sys
from typing import Any

import numpy as np

from plugrt.capi.abi import proto_wire
from plugrt.capi.buffers.host_put import can_keep_layouts
from plugrt.execution.compilation.compiler import _try_sum
from plugrt.interface import Client, CompileOptions, Device, Program
from support import children
from support.markdown import ROOT
from support.xla_cpu import library_path, needs_library, program

pytestmark = needs_library


def run(client: Client, device: Device, made: Program, *arguments: Any) -> Any:
    """Returns the result of a program without the compiler options that plugrt adds."""
    plain = CompileOptions(encoded=proto_wire.compile_options(CompileOptions()))
    put = [(client.buffer_from_host(argument, device),) for argument in arguments]
    ((result,),) = client.compile(made, plain).execute(put)
    return result.to_host()


def test_a_maximum_loses_nan_by_default(client: Client, device: Device) -> None:
    kind = "tensor<2xf32>"
    body = f"%0 = stablehlo.maximum %a, %b : {kind} return %0 : {kind}"
    maximum = program(body, f"%a: {kind}, %b: {kind}", kind)
    x, y = np.array([1, np.nan], np.float32), np.array([np.nan, 1], np.float32)
    assert np.isnan(run(client, device, maximum, x, y)).sum() == 1


def test_signed_constants_are_compared_as_unsigned_ones(client: Client, device: Device) -> None:
    compare = """
      %a = stablehlo.constant dense<-1> : tensor<i32>
      %b = stablehlo.constant dense<0> : tensor<i32>
      %0 = stablehlo.compare LT, %a, %b TYPE : (tensor<i32>, tensor<i32>) -> tensor<i1>
      return %0 : tensor<i1>"""
    untyped, typed = (
        program(compare.replace("TYPE", kind), results="tensor<i1>") for kind in ("", ", SIGNED")
    )
    assert not run(client, device, untyped)
    assert run(client, device, typed)


def end_of(script: str, *arguments: str) -> str:
    """Returns the output of a script on standard error before SIGABRT ends its process."""
    command = [sys.executable, ROOT / "docs/findings" / script, library_path(), *arguments]
    done = children.run(command, timeout=120)
    assert done.returncode == -signal.SIGABRT, done.stderr
    return done.stderr


def test_a_create_option_of_the_wrong_type_ends_the_process() -> None:
    assert "bad_variant_access" in end_of("option_type.py", "cpu_device_count")


def test_a_compiler_without_a_planner_ends_the_process() -> None:
    assert "auto-partitioner callback wasn't registered" in end_of("auto_partitioning.py")


def test_a_put_in_another_layout_loses_the_order(client: Client, device: Device) -> None:
    assert not can_keep_layouts(client._transfers, device)  # type: ignore[attr-defined]


def test_terms_of_a_sum_are_whole_on_each_device(client: Client) -> None:
    assert not _try_sum(client)


LIBRARY_FAULTS = {
    "xla_ffi_type_info": ({-signal.SIGSEGV}, ""),
    "xla_destroyed_in_call": ({-signal.SIGSEGV, -signal.SIGABRT}, ""),
    "xla_references_race": ({-signal.SIGSEGV, -signal.SIGABRT}, ""),
    "xla_cpu_tiles": ({0}, "{0,1} True\n{0,1:T(2,2)} False\n"),
}


def test_each_fault_of_the_library_is_there() -> None:
    command = [sys.executable, ROOT / "docs/findings/library_faults.py", library_path()]
    done = children.run(command, timeout=120)
    found = re.findall(r"((?:.*\n)*?)--- (\w+): (-?\d+)\n", done.stdout)
    assert [name for _, name, _ in found] == list(LIBRARY_FAULTS), done.stdout + done.stderr
    for output, name, status in found:
        statuses, expected = LIBRARY_FAULTS[name]
        assert int(status) in statuses, f"{name}: {status} {output}"
        assert output == expected, name
