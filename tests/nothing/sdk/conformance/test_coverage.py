"""The kit grows with the interface: what is added there needs a check, which needs a mutant."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields

import plugrt.interface as interface
from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.check import Level
from plugrt_sdk.conformance.command import PROFILE_NAMES
from plugrt_sdk.conformance.profiles import PROFILES, checks_of

CHECKS = registry.checks().values()

CLASSES = ("Buffer", "Client", "Device", "Event", "Executable", "LoadedExecutable", "Memory",
           "Topology")  # fmt: skip
"""The classes of the interface whose methods a backend implements."""

FIELDS_WITHIN_CHECKS = {
    "asynchronous_dispatch": "behaviour.synchronous",
    "dtypes": "accepts.dtypes",
    "max_collectives_in_flight": "executables.wait.collectives",
    "program_formats": "accepts.program_formats",
    "stablehlo_current_version": "declared.stablehlo_version",
    "stablehlo_minimum_version": "declared.stablehlo_version",
    "strided_put": "accepts.strided_put",
    "zero_copy_get": "declared.zero_copy_get",
    "zero_copy_put": "accepts.zero_copy_put",
}
"""Fields that a check reads itself, because it holds in one way or the other."""


def methods() -> Iterator[str]:
    for name in CLASSES:
        for member, value in vars(getattr(interface, name)).items():
            public = not member.startswith("_") and member != "backend_name"
            if public and (inspect.isfunction(value) or isinstance(value, property)):
                yield f"{name}.{member}"


def test_each_method_of_the_interface_has_a_check() -> None:
    covered = {method for check in CHECKS for method in check.covers}
    known = set(methods())
    assert covered <= known, "a check names a method that does not exist"
    assert not known - covered


def test_each_capability_has_a_check() -> None:
    used = {check.capability for check in CHECKS} - {""}
    known = {f.name for f in fields(interface.Capabilities)}
    assert used <= known
    assert not used & set(FIELDS_WITHIN_CHECKS)
    assert known - used == set(FIELDS_WITHIN_CHECKS)
    assert set(FIELDS_WITHIN_CHECKS.values()) <= set(registry.checks())


def test_the_number_of_checks_does_not_fall() -> None:
    least = {Level.INSTALLS: 51, Level.BUFFERS: 151, Level.COMPUTES: 607, Level.BEHAVES: 58,
             Level.SCALES: 74}  # fmt: skip
    found = registry.level_counts()
    assert all(found[level] >= count for level, count in least.items()), found


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
        assert exact <= set(registry.checks()), name
