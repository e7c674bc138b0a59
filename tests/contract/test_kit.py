"""The contract of a client, which the conformance kit states, on each client of this repository.

`make test` runs the checks of arrays and launches on the two clients that are no SDK backend, with
every dtype; ``nox -s contract`` runs all chapters on all, with one dtype where a check has many.
A client's own behaviour is tested in ``tests/cpu/client`` and ``tests/pjrt/capi``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from plugrt.interface import OptionValue
from plugrt_sdk.conformance import PluginSuite
from support.effort import WHOLE
from support.xla_cpu import library_path

LEFT_OUT = (
    *("operations.", "composites.", "random.", "declared.", "forms.", "accepts.", "installed."),
    *("sizes.", "lengths.", "huge"),
    *("ahead_of_time.", "table_", "handles.", "arguments.", "abi.", "events."),
)
"""Prefixes of the chapters that `make test` omits."""


class Contract(PluginSuite):
    """The selection of checks that all clients share."""

    __test__ = False
    quick = WHOLE
    level = None if WHOLE else 2
    words = "" if WHOLE else " ".join(f"-{chapter}" for chapter in LEFT_OUT)


class TestCpu(Contract):
    plugin = "cpu"


if library_path() is not None:

    class TestXlaCpu(Contract):
        plugin = "xla_cpu"
        options: ClassVar[Mapping[str, OptionValue]] = {"cpu_device_count": 4}
        waivers = "tools/conformance/xla_cpu.toml"


if WHOLE:

    class TestNumpy(Contract):
        plugin = "numpy"

    class TestExportedNumpy(Contract):
        plugin = "contract.contract_libraries:numpy"
        options: ClassVar[Mapping[str, OptionValue]] = {"num_devices": 4}

    class TestExportedCpu(Contract):
        plugin = "contract.contract_libraries:cpu"
        options: ClassVar[Mapping[str, OptionValue]] = {"num_devices": 4}
