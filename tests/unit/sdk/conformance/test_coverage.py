"""The kit grows with the interface: an addition to it needs a check, which needs a mutant."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
from jaxlib.mlir.dialects import stablehlo

import plugrt.interface as interface
from plugrt.stablehlo.modules import parse
from plugrt_sdk.conformance.collectives import COLLECTIVES
from plugrt_sdk.conformance.command import PROFILE_NAMES
from plugrt_sdk.conformance.operation_cases import CASES
from plugrt_sdk.conformance.operations import SAMPLES, Sample
from plugrt_sdk.conformance.profiles import PROFILES, checks_of
from support import kit

CHECKS = kit.checks().values()

CLASSES = ("Buffer", "Client", "Device", "Event", "Executable", "LoadedExecutable", "Memory",
           "Topology")  # fmt: skip
"""The classes of the interface whose methods a backend implements."""

FIELDS_WITHIN_CHECKS = {
    "asynchronous_dispatch": "behaviour.synchronous",
    "dtypes": "accepts.dtypes",
    "max_blocking_launches": "executables.wait.collectives",
    "program_formats": "accepts.program_formats",
    "stablehlo_current_version": "declared.stablehlo_version",
    "stablehlo_minimum_version": "declared.stablehlo_version",
    "strided_put": "accepts.strided_put",
    "tuple_arguments_above": "executables.tuple_arguments",
    "zero_copy_get": "declared.zero_copy_get",
    "zero_copy_put": "accepts.zero_copy_put",
}
"""Fields that a check reads itself, because both values are valid."""


JAX_NAMES = {
    "Client": {
        "device_count", "device_from_local_hardware_id", "host_id", "local_device_count",
        "local_devices", "task_id",
    },
    "Device": {
        "addressable_memories", "device_kind", "get_stream_for_external_ready_events", "host_id",
        "task_id",
    },
}  # fmt: skip
"""JAX's names, which the interface itself derives from methods that have checks."""


def methods() -> Iterator[str]:
    for name in CLASSES:
        for member, value in vars(getattr(interface, name)).items():
            public = not member.startswith("_") and member != "backend_name"
            public = public and member not in JAX_NAMES.get(name, ())
            if public and (inspect.isfunction(value) or isinstance(value, property)):
                yield f"{name}.{member}"


def test_each_method_of_the_interface_has_a_check() -> None:
    covered = {method for check in CHECKS for method in check.covers}
    known = set(methods())
    assert known == covered


def test_each_capability_has_a_check() -> None:
    used = {check.capability for check in CHECKS} - {""}
    known = {f.name for f in fields(interface.Capabilities)}
    assert used <= known
    assert not used & set(FIELDS_WITHIN_CHECKS)
    apart = {"late_errors"}  # tests/cpu/remote: no client reports the kit's errors late
    assert known - used - apart == set(FIELDS_WITHIN_CHECKS)
    assert set(FIELDS_WITHIN_CHECKS.values()) <= set(kit.checks())


STEPS = {
    interface.LaunchSteps: {
        "launch": "executables.launcher.steps",
        "take": "executables.launcher.steps",
        "take_arguments": "executables.launcher.steps",
        "argument_class": "executables.launcher.steps",
        "unless": "executables.launcher.steps",
        "explain": "executables.launcher.steps",
        "donated": "executables.launcher.steps.donation",
        "is_deleted": "executables.launcher.steps.donation",
        "delete": "executables.launcher.steps.donation",
        "tidy": "executables.launcher.steps.donation",
        "waits_for_uses": "launch_steps.waits_for_uses",
        "make_scratch": "loans.read",
        "is_ready": "loans.again",
    },
    interface.HeldForm: dict.fromkeys(
        ("open", "held_class", "is_ready", "wait", "view", "lock", "unless"),
        "executables.read_steps",
    ),
}
"""The functions that are called in place of a method, to the check that calls them."""


@pytest.mark.parametrize("steps", STEPS, ids=lambda cls: cls.__name__)
def test_each_step_has_a_check(steps: type[Any]) -> None:
    assert {f.name for f in fields(steps)} == set(STEPS[steps])
    assert set(STEPS[steps].values()) <= set(kit.checks())


WITHIN_CHECKS = {
    "async_done": "operations.async_start.float32",
    "collective_permute": "collectives.collective_permute.swap",
    "constant": "programs.constant",
    "create_token": "operations.after_all.float32",
    "custom_call": "accepts.custom_calls",
    "get_tuple_element": "operations.tuple.float32",
    "infeed": "operations.infeed.compiled",
    "outfeed": "operations.outfeed.compiled",
    "partition_id": "collectives.grid.partition_id",
    "recv": "operations.recv.compiled",
    "replica_id": "collectives.replica_id",
    "return": "operations.while.float32",
    "rng": "random.rng.normal.float32",
    "rng_bit_generator": "random.rng_bit_generator.three_fry.uint32",
    "send": "operations.send.compiled",
    "uniform_dequantize": "operations.uniform_quantize.float32",
    "uniform_quantize": "operations.uniform_quantize.float32",
}
"""Operations without a check of their own, or not in the tables of operations."""

NEWER = {"collective_reduce"}
"""Operations of jaxlib 0.12: the kit's programs are those that every supported jaxlib can write."""


def test_each_operation_of_the_dialect_has_a_check() -> None:
    known = {
        member.OPERATION_NAME.removeprefix("stablehlo.")
        for member in vars(stablehlo).values()
        if hasattr(member, "OPERATION_NAME")
    }
    tabled = {found.name for found in (*CASES, *SAMPLES, *COLLECTIVES)}
    assert not tabled & set(WITHIN_CHECKS)
    assert known - tabled - set(WITHIN_CHECKS) <= NEWER, "operations without a check"
    assert not NEWER & (tabled | set(WITHIN_CHECKS))
    assert set(WITHIN_CHECKS.values()) <= set(kit.checks())


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.id)
def test_programs_of_samples_are_well_formed(sample: Sample) -> None:
    """Backends may refuse programs, so a malformed one, which all refuse, would not be noticed."""
    program, _ = sample.make(sample.dtypes[0], 0)
    text = program.text()
    assert f"stablehlo.{sample.name}" in text
    parse(text)


def test_each_check_says_what_it_rests_on() -> None:
    for check in CHECKS:
        assert check.title.endswith("."), check.title
        assert check.rests_on, check.id
        assert check.why, check.id
        assert not check.why.endswith("."), check.id
        assert set(check.id) <= set("abcdefghijklmnopqrstuvwxyz0123456789_.")


def test_profiles_name_checks_that_there_are() -> None:
    assert tuple(PROFILES) == PROFILE_NAMES
    for name, patterns in PROFILES.items():
        assert checks_of(name), name
        exact = {pattern for pattern in patterns if "*" not in pattern}
        assert exact <= set(kit.checks()), name
