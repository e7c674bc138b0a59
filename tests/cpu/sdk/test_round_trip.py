"""The suite `plugrt_sdk.testing`, which authors run on their plugins, passes for every client.

The NumPy backend and the cpu plugin pass it directly, through a table in a capsule, and from a
shared library, both by plugrt's host of the C API. The plugin declares the expected capabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plugrt.interface import Client
from plugrt.plugins import LibraryPlugin
from plugrt_cpu import plugin as cpu_backend
from plugrt_numpy import plugin
from plugrt_sdk.export import export_capsule, export_library
from plugrt_sdk.testing import CHECKS, Subject

OPTIONS: dict[str, Any] = {"num_devices": 2}
STARTS: dict[str, Callable[..., Client]] = {
    "numpy": lambda **options: plugin.create_client(options),
    "cpu": lambda **options: cpu_backend.create_client(options),
}


def _through_a_capsule(name: str, folder: Path) -> LibraryPlugin:
    return LibraryPlugin("exported", c_api=export_capsule(STARTS[name]))


def _through_a_library(name: str, folder: Path) -> LibraryPlugin:
    return LibraryPlugin("exported", export_library(name, folder / f"libpjrt_{name}.so"))


@pytest.fixture(scope="module", params=STARTS)
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(scope="module", params=["directly", "capsule", "library"])
def subject(request: pytest.FixtureRequest, name: str, tmp_path_factory: Any) -> Subject:
    start_plugin = STARTS[name]
    if request.param == "directly":
        return Subject(lambda: start_plugin(**OPTIONS))
    wrap = _through_a_capsule if request.param == "capsule" else _through_a_library
    exported = wrap(name, tmp_path_factory.mktemp("exported"))
    declared = start_plugin(**OPTIONS).capabilities
    return Subject(lambda: exported.create_client(OPTIONS), declared)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_round_trip(subject: Subject, check: Callable[[Subject], None]) -> None:
    check(subject)
