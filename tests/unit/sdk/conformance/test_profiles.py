"""The profiles ``jax`` and ``torch_xla`` list the hosts' needs; a quick run has a sample."""

from __future__ import annotations

import json
import re

from plugrt_sdk.conformance import Needs
from plugrt_sdk.conformance.operations import SAMPLES
from plugrt_sdk.conformance.profiles import PROFILES, checks_of, missing, sample
from plugrt_sdk.conformance.verdict import Result, Verdict
from support import kit
from support.markdown import ROOT

NEEDS: dict[str, dict[str, list[str]]] = json.loads(
    (ROOT / "docs/data/jax_needs.json").read_text(encoding="utf-8")
)
[(VERSION, RAN)] = NEEDS.items()
"""Function to the programs that ran under JAX while it was refused: ``tools/host_needs.py``."""
TRACES = json.loads((ROOT / "docs/data/hosts.json").read_text(encoding="utf-8"))
CALLS = TRACES[VERSION]
[TORCH_XLA] = [name for name in TRACES if name.startswith("PyTorch/XLA ")]
ON_TWO_DEVICES = {"arrays", "pmap", "sharding"}

TRIED_BY = {
    "Buffer_CopyToMemory": "buffers.copy.devices",
    "Buffer_DecreaseExternalReferenceCount": "handles.buffers.references",
    "Buffer_Delete": "buffers.delete",
    "Buffer_Destroy": "ownership.leak",
    "Buffer_Device": "buffers.place",
    "Buffer_Dimensions": "buffers.type",
    "Buffer_ElementType": "buffers.type",
    "Buffer_IncreaseExternalReferenceCount": "handles.buffers.references",
    "Buffer_IsDeleted": "buffers.delete",
    "Buffer_IsOnCpu": "buffers.put_get.scalar",
    "Buffer_Memory": "buffers.place",
    "Buffer_OpaqueDeviceMemoryDataPointer": "buffers.read_only",
    "Buffer_ReadyEvent": "buffers.ready",
    "Client_AddressableDevices": "client.create",
    "Client_AddressableMemories": "devices.memories",
    "Client_BufferFromHostBuffer": "buffers.put_get.large",
    "Client_Compile": "programs.add",
    "Client_Create": "client.create",
    "Client_Devices": "client.lookup",
    "Client_LookupDevice": "table_places.lookup",
    "Client_PlatformName": "client.platform",
    "Client_PlatformVersion": "client.platform",
    "DeviceDescription_Attributes": "devices.attributes",
    "DeviceDescription_DebugString": "devices.kind",
    "DeviceDescription_Id": "devices.ids",
    "DeviceDescription_Kind": "devices.kind",
    "DeviceDescription_ProcessIndex": "devices.addressable",
    "DeviceDescription_ToString": "handles.devices.strings",
    "Device_AddressableMemories": "devices.memories",
    "Device_DefaultMemory": "devices.memories",
    "Device_GetAttributes": "devices.attributes",
    "Device_GetDescription": "devices.kind",
    "Device_IsAddressable": "devices.addressable",
    "Device_LocalHardwareId": "devices.hardware_id",
    "Error_ForEachPayload": "abi.errors.payloads",
    "Error_GetCode": "abi.errors",
    "Event_Destroy": "buffers.ready",
    "Event_Error": "buffers.ready",
    "Event_IsReady": "buffers.ready",
    "Event_OnReady": "behaviour.events",
    "Executable_Destroy": "ownership.deleted_program",
    "Executable_NumOutputs": "programs.several_results",
    "LoadedExecutable_AddressableDeviceLogicalIds": "table_places.logical_ids",
    "LoadedExecutable_AddressableDevices": "programs.executable",
    "LoadedExecutable_Destroy": "ownership.deleted_program",
    "LoadedExecutable_Execute": "programs.add",
    "LoadedExecutable_GetDeviceAssignment": "table_places.assignment",
    "LoadedExecutable_GetExecutable": "programs.executable",
    "Memory_AddressableByDevices": "devices.memories.devices",
    "Memory_Kind": "devices.memories",
    "Plugin_Attributes": "abi.attributes",
    "Plugin_Initialize": "abi.initialize",
    "TopologyDescription_Attributes": "table_places.topology.attributes",
    "TopologyDescription_PlatformName": "table_places.topology.platform",
    "TopologyDescription_PlatformVersion": "table_places.topology.platform",
}
"""A function that JAX needs, to a check that calls it.

JAX works without a topology, but not with half of one.
"""
DONE_WITHOUT = {
    "Buffer_OnDeviceSizeInBytes": "buffers.size",
    "Device_MemoryStats": "declared.memory_stats",
    "Executable_Fingerprint": "declared.fingerprint",
    "Executable_GetCompiledMemoryStats": "declared.memory_analysis",
    "Executable_GetCostAnalysis": "declared.cost_analysis",
    "Executable_OptimizedProgram": "declared.optimized_program",
    "Executable_OutputMemoryKinds": "executables.memory_kinds.results",
    "Client_TopologyDescription": "topologies.devices",
}
"""A function that JAX calls but does not need, to its check."""


TORCH_XLA_ALONE = {
    "Buffer_DynamicDimensionIndices": "handles.buffers.dynamic",
    "Buffer_ToHostBuffer": "buffers.put_get.scalar",
    "Buffer_UnpaddedDimensions": "handles.buffers.unpadded",
    "Executable_OptimizedProgram": "declared.optimized_program",
}
"""A function that PyTorch/XLA calls and JAX does not, or does without, to a check that calls it."""
TORCH_XLA_DOES_WITHOUT = {
    "Client_TopologyDescription": "topologies.devices",
    "Executable_GetCompiledMemoryStats": "declared.memory_analysis",
    "Layouts_Buffer_MemoryLayout": "layouts.default",
    "Layouts_MemoryLayout_Destroy": "layouts.default",
    "Layouts_MemoryLayout_Serialize": "layouts.default",
    "TopologyDescription_Serialize": "topologies.identity",
}
"""A function that PyTorch/XLA calls but does not need, to its check."""


def test_functions_that_torch_xla_calls_are_in_its_profile() -> None:
    called = {name for functions in TRACES[TORCH_XLA].values() for name in functions}
    assert called >= TORCH_XLA_ALONE.keys() | TORCH_XLA_DOES_WITHOUT.keys()
    needed = called - TORCH_XLA_DOES_WITHOUT.keys()
    assert needed <= (TRIED_BY | TORCH_XLA_ALONE).keys(), "a function that no check is known for"
    ids = {check.id for check in checks_of("torch_xla")}
    lacking = {name for name in needed if (TORCH_XLA_ALONE | TRIED_BY)[name] not in ids}
    assert lacking == set()
    assert not ids & set(TORCH_XLA_DOES_WITHOUT.values())


def test_functions_that_jax_needs_are_in_its_profile() -> None:
    programs = set(RAN["Device_MemoryStats"])
    needed = {name: programs - set(ran) for name, ran in RAN.items() if programs - set(ran)}
    assert set(needed) == TRIED_BY.keys()
    ids = {check.id for check in checks_of("jax")}
    with_devices = ids | {check.id for check in checks_of("multi-device")}
    for name, check in TRIED_BY.items():
        assert check in (with_devices if needed[name] <= ON_TWO_DEVICES else ids), name


def test_functions_that_jax_does_without_are_not_in_its_profile() -> None:
    ids = {check.id for check in checks_of("jax")}
    assert set(RAN) >= DONE_WITHOUT.keys()
    assert not ids & set(DONE_WITHOUT.values())


def test_no_profile_needs_what_hosts_seldom_write() -> None:
    uncommon = {f"operations.{sample.id}" for sample in SAMPLES if sample.uncommon}
    assert "operations.einsum" in uncommon
    for profile in PROFILES:
        needed = {check.id.rpartition(".")[0] for check in checks_of(profile)}
        assert not needed & {*uncommon, "operations.uniform_quantize"}, profile


def test_each_function_of_the_table_that_jax_called_was_tried() -> None:
    called = {name for functions in CALLS.values() for name in functions}
    assert set(RAN) <= called
    extensions = ("Layouts_", "Shardings_")
    assert {name for name in called - set(RAN) if not name.startswith(extensions)} == set()


def test_one_device_is_enough_for_all_profiles_but_one() -> None:
    of_two = {
        name: {c.id for c in checks_of(name) if c.needs is Needs.TWO_DEVICES} for name in PROFILES
    }
    assert of_two.pop("multi-device") >= {"scales.replicas", "buffers.copy.devices"}
    assert set().union(*of_two.values()) == set()
    assert "programs.refused.arguments.device" in kit.checks(), "which a pattern would add"


def test_a_check_that_does_not_apply_is_not_missing() -> None:
    passed = {check.id: Result(Verdict.PASS) for check in checks_of("jax")}
    elsewhere = Result(Verdict.NOT_RUN, applies=False)
    assert missing("jax", {**passed, "abi.size": elsewhere}) == []
    refused = Result(Verdict.REFUSED)
    assert missing("jax", {**passed, "programs.add": refused}) == ["programs.add"]


def test_one_dtype_stands_for_all_in_a_quick_run() -> None:
    assert not sample([check for check in kit.checks().values() if check.slow])
    every = [check for check in kit.checks().values() if not check.slow]
    left = [check.id for check in sample(every)]
    assert left == [check.id for check in every if check.id in left], "the kit's order"
    out = {check.id.rpartition(".")[::2] for check in every} - {
        n.rpartition(".")[::2] for n in left
    }
    assert {dtype for _, dtype in out} - {"bool", "bfloat16"} == {
        name for _, name in out if re.fullmatch(r"(float|int|uint|complex)\d.*", name)
    }
    kept = {stem: [n for n in left if n.startswith(f"{stem}.")] for stem, _ in out}
    for stem, dtype in out:
        assert {n.removeprefix(f"{stem}.") for n in kept[stem]} & {
            "float32", "int32", "uint32", "complex64", "bfloat16"
        }, (stem, dtype)  # fmt: skip
    assert {"operations.add.float32", "operations.not.int32", "endurance.exit.at_work"} <= {*left}
    assert {"operations.add.bfloat16", "buffers.views.int1"}.isdisjoint(left)
    assert 600 < len(left) < 0.45 * len(every)
    names = ["operations.add.int8", "operations.add.bfloat16", "buffers.ready"]
    some = [*map(kit.find, kit.select(names))]
    assert [check.id for check in sample(some)] == ["buffers.ready", "operations.add.bfloat16"]
