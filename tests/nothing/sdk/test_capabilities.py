"""A method that a backend overrides declares a capability; a missing one is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from plugrt.capi.abi.proto_wire import compile_options
from plugrt.capi.probing.trial_computation import try_client
from plugrt.errors import Internal, InvalidArgument, Unimplemented, UnsupportedDtype
from plugrt.interface import (
    Client,
    CompileOptions,
    DeviceAssignment,
    DeviceDescription,
    MemoryAnalysis,
    Program,
)
from plugrt.plugins import LibraryPlugin
from plugrt.stablehlo.modules import is_portable_artifact
from plugrt_sdk import Backend, BackendClient, Compiled, read_module
from plugrt_sdk.export import export_capsule

ADD = b"""func.func public @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %a, %b : tensor<3xf32>
  return %0 : tensor<3xf32>
}"""
ONE = np.float32([1, 2, 3])


class Four(Backend):
    """A backend of the four required methods; `compile` records its arguments."""

    platform, version = "four", "1"

    def __init__(self) -> None:
        self.programs: list[Program] = []
        self.options: list[CompileOptions] = []

    def devices(self) -> Any:
        return ["kind"] * 2

    def put(self, array: Any, device: int) -> Any:
        return array.copy()

    def get(self, handle: Any) -> Any:
        return handle

    def compile(self, program: Program, options: CompileOptions) -> Any:
        self.programs.append(program)
        self.options.append(options)
        return lambda arguments: [[arguments[0][0] + arguments[1][0]]]


class Told(Four):
    """Adds the optional methods that describe devices and programs."""

    def devices(self) -> Any:
        return [DeviceDescription(4 + i, 0, "chip", "", {"coords": [i, 0, 0]}) for i in range(2)]

    def memory_stats(self, device: int) -> Any:
        return {"bytes_in_use": device, "bytes_limit": 100}

    def dtypes(self) -> Any:
        return {"float32", "bfloat16"}

    def replicas(self) -> int:
        return 2

    def collectives(self) -> Any:
        return ["all_reduce"]

    def copy(self, handle: Any, device: int) -> Any:
        return handle.copy()

    def cost_analysis(self, compiled: Compiled) -> Any:
        return {"flops": float(sum(kind.nbytes for kind in compiled.output_types) // 4)}

    def memory_analysis(self, compiled: Compiled) -> Any:
        return MemoryAnalysis(temp_size_in_bytes=5, generated_code_size_in_bytes=7)

    def optimized_program(self, compiled: Compiled) -> Any:
        return compiled.program


def exported(client: Client) -> Client:
    return LibraryPlugin("exported", c_api=export_capsule(lambda: client)).create_client({})


@pytest.fixture(params=["directly", "exported"])
def told(request: pytest.FixtureRequest) -> Client:
    client = BackendClient(Told())
    return client if request.param == "directly" else exported(client)


def compile_add(client: Client) -> Any:
    where = DeviceAssignment(((client.devices()[0].id,),))
    return client.compile(Program(ADD), CompileOptions(device_assignment=where))


def test_four_methods_declare_what_the_sdk_does() -> None:
    declared = BackendClient(Four()).capabilities
    on = {f.name for f in fields(declared) if getattr(declared, f.name) is True}
    assert on == {"fingerprint"}


def test_each_method_declares_its_capability() -> None:
    declared = BackendClient(Told()).capabilities
    on = {f.name for f in fields(declared) if getattr(declared, f.name) is True}
    assert on == {
        "fingerprint", "memory_stats", "cost_analysis", "memory_analysis", "optimized_program",
        "multiple_devices", "collectives", "device_to_device_copy",
    }  # fmt: skip
    assert declared.dtypes == {"float32", "bfloat16"}


def test_a_method_of_the_object_declares_too() -> None:
    backend: Any = Four()
    backend.memory_stats = lambda device: {"bytes_in_use": 1}
    assert BackendClient(backend).devices()[0].memory_stats() == {"bytes_in_use": 1}


@pytest.mark.parametrize(
    "ask",
    [
        lambda client, program, x: client.devices()[0].memory_stats(),
        lambda client, program, x: program.executable.cost_analysis(),
        lambda client, program, x: program.executable.memory_analysis(),
        lambda client, program, x: program.executable.optimized_program(),
        lambda client, program, x: program.executable.as_text(),
        lambda client, program, x: program.executable.serialize(),
        lambda client, program, x: x.copy_to_device(client.devices()[1]),
        lambda client, program, x: client.compile(Program(ADD), CompileOptions(2)),
        lambda client, program, x: client.compile(Program(ADD), CompileOptions(1, 2)),
    ],
)
def test_missing_features_are_refused_with_the_backends_name(ask: Callable[..., Any]) -> None:
    client = BackendClient(Four())
    x = client.buffer_from_host(ONE, client.devices()[0])
    with pytest.raises(Unimplemented, match="'four'"):
        ask(client, compile_add(client), x)


def test_devices_are_as_described(told: Client) -> None:
    assert [(d.id, d.kind, d.attributes["coords"]) for d in told.devices()] == [
        (4, "chip", [0, 0, 0]),
        (5, "chip", [1, 0, 0]),
    ]
    assert told.devices()[1].memory_stats() == {"bytes_in_use": 5, "bytes_limit": 100}


def test_programs_are_as_told(told: Client) -> None:
    executable = compile_add(told).executable
    assert executable.cost_analysis() == {"flops": 3.0}
    assert executable.memory_analysis().temp_size_in_bytes == 5
    assert executable.generated_code_size_in_bytes() == 7
    assert is_portable_artifact(executable.optimized_program().code)


def test_the_optimised_program_is_shown_as_text() -> None:
    assert "stablehlo.add" in compile_add(BackendClient(Told())).executable.as_text()


def test_fingerprints_are_of_program_options_and_version(told: Client) -> None:
    def fingerprint(client: Client, code: bytes = ADD) -> bytes:
        where = DeviceAssignment(((client.devices()[0].id,),))
        loaded = client.compile(Program(code), CompileOptions(device_assignment=where))
        return loaded.executable.fingerprint()

    newer: Any = Told()
    newer.version = "2"
    assert fingerprint(told) == fingerprint(told)
    assert fingerprint(told) != fingerprint(told, ADD.replace(b"add", b"subtract"))
    assert fingerprint(told) != fingerprint(BackendClient(newer))


def test_other_dtypes_are_refused_before_put() -> None:
    client = BackendClient(Told())
    with pytest.raises(UnsupportedDtype, match="float64; it has bfloat16, float32"):
        client.buffer_from_host(np.float64([1]), client.devices()[0])


def test_devices_of_other_processes_are_listed_and_not_used() -> None:
    class Second(Four):
        def devices(self) -> Any:
            return [DeviceDescription(i, i, "chip") for i in range(2)]

        def process_index(self) -> int:
            return 1

    client = BackendClient(Second())
    far, near = client.devices()
    assert (client.process_index, client.process_count) == (1, 2)
    assert client.addressable_devices() == [near]
    assert client.buffer_from_host(ONE, near).to_host()[2] == 3
    with pytest.raises(InvalidArgument, match="is used from the process 0; this is the process 1"):
        client.buffer_from_host(ONE, far)


def test_the_backend_is_given_an_artifact_whatever_the_caller_has() -> None:
    """``plugrt doctor`` passes its trial as text."""
    backend = Four()
    client = BackendClient(backend)
    compile_add(client)
    compile_add(exported(client))
    with pytest.raises(IndexError):  # the program adds two arguments, and the trial has one
        try_client(client, lambda step: None)
    assert [is_portable_artifact(program.code) for program in backend.programs] == [True] * 3


def test_the_device_assignment_is_always_given() -> None:
    backend = Four()
    BackendClient(backend).compile(Program(ADD), CompileOptions())
    assert backend.options[0].device_assignment == DeviceAssignment(((0,),))


def test_compiler_options_of_a_host_are_decoded() -> None:
    backend = Four()
    stated = {"a": True, "b": -3, "c": "text", "d": 0.5, "e": False}
    options = CompileOptions(env_overrides=stated)
    encoded = CompileOptions(encoded=compile_options(options))
    exported(BackendClient(backend)).compile(Program(ADD), encoded)
    assert backend.options[0].env_overrides == stated


def returning(module: str = __name__, **methods: Any) -> Any:
    """Returns a backend whose methods of these names return these values."""
    made = {name: (lambda *_, value=value: value) for name, value in methods.items()}
    return type("Wrong", (Told,), {**made, "__module__": module})()


def put_get(client: Client) -> Any:
    return client.buffer_from_host(ONE, client.devices()[0]).to_host()


def launch(client: Client) -> Any:
    x = client.buffer_from_host(ONE, client.devices()[0])
    return compile_add(client).execute([(x,), (x,)])


@pytest.mark.parametrize(
    ("method", "value", "step", "expected"),
    [
        ("devices", "chip", None, "a sequence of device kinds"),
        ("devices", [3], None, "a sequence of device kinds"),
        ("devices", [DeviceDescription(1, 0, "a")] * 2, None, "in the order of their ids, each on"),
        ("dtypes", ["float3"], None, "names of dtypes"),
        ("replicas", 0, None, "a number of at least 1"),
        ("partitions", None, None, "a number of at least 1"),
        ("put", None, put_get, "a handle"),
        ("get", None, put_get, "a handle"),
        ("get", ONE[:2], put_get, "an array float32[3]"),
        ("get", np.float64(ONE), put_get, "an array float32[3]"),
        ("get", [ONE, "x"], put_get, "an array float32[3]"),
        ("compile", None, compile_add, "a function that launches the program"),
        ("launch", None, launch, "a list for each of 1 results"),
        ("launch", [], launch, "a list for each of 1 results"),
        ("launch", [[ONE, ONE]], launch, "1 handles (one a device)"),
        ("launch", [[None]], launch, "1 handles (one a device)"),
        ("launch", [None], launch, "1 handles (one a device)"),
        ("copy", None, lambda c: c.buffer_from_host(ONE, c.devices()[0]).copy_to_device(
            c.devices()[1]), "a handle"),
        ("memory_stats", {}, lambda c: c.devices()[0].memory_stats(), "bytes_in_use among them"),
        ("memory_stats", {"bytes_in_use": "1"}, lambda c: c.devices()[0].memory_stats(),
            "whole numbers"),
        ("cost_analysis", [1], lambda c: compile_add(c).executable.cost_analysis(), "a mapping"),
        ("memory_analysis", 3, lambda c: compile_add(c).executable.memory_analysis(),
            "a MemoryAnalysis"),
        ("optimized_program", b"", lambda c: compile_add(c).executable.optimized_program(),
            "a Program"),
    ],
)  # fmt: skip
def test_a_wrong_return_names_method_and_distribution(
    method: str, value: Any, step: Any, expected: str
) -> None:
    backend = returning(compile=lambda *_: value) if method == "launch" else None
    backend = backend or returning(**{method: value})
    shown = "the launch that Wrong.compile made" if method == "launch" else f"Wrong.{method} "
    if step is None:
        with pytest.raises(Internal) as caught:
            BackendClient(backend)
    else:
        client = BackendClient(backend)
        with pytest.raises(Internal) as caught:
            step(client)
    assert caught.value.message.startswith(shown)
    assert f"(of the module {__name__}) returned" in caught.value.message
    assert expected in caught.value.message


def test_a_wrong_return_names_the_version_of_an_installed_backend() -> None:
    client = BackendClient(returning("plugrt_cpu.backend", put=None))
    with pytest.raises(Internal, match=r"Wrong.put \(of plugrt-cpu \d[\w.]*\) returned None"):
        put_get(client)


def test_a_program_with_shardings_is_given_as_an_artifact() -> None:
    text = b"""sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
        -> tensor<4xf32> {
      %0 = stablehlo.add %a, %a : tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    backend: Any = Four()
    backend.partitions = lambda: 2
    BackendClient(backend).compile(Program(text), CompileOptions(1, 2))
    [program] = backend.programs
    assert is_portable_artifact(program.code)
    assert "sdy.sharding" in str(read_module(program))
