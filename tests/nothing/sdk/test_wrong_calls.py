"""The SDK's public functions raise plugrt's errors for wrong arguments, with the accepted types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plugrt.errors import ArgumentTypeError, InvalidArgument, PlugrtError
from plugrt_numpy import plugin
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendClient, BackendPlugin, read_module, result_types
from plugrt_sdk.export import export_capsule, export_library
from support.wrong_calls import WRONG

Call = Callable[[Any], Any]
CALLS: dict[str, Call] = {
    "read_module": read_module,
    "result_types": result_types,
    "BackendClient": BackendClient,
    "NumpyBackend": NumpyBackend,
    "create options": plugin.create_client,
    "number of devices": lambda wrong: plugin.create_client({"num_devices": wrong}),
    "factory of a plugin": lambda wrong: BackendPlugin("n", wrong).create_client({}),
    "export_capsule": lambda wrong: export_capsule(wrong, minor=0),
    "platform": lambda wrong: export_capsule(NumpyBackend, platform=wrong, minor=0),
    "version": lambda wrong: export_capsule(NumpyBackend, minor=wrong),
    "attributes": lambda wrong: export_capsule(NumpyBackend, attributes=wrong, minor=0),
    "an attribute": lambda wrong: export_capsule(NumpyBackend, attributes={"a": wrong}, minor=0),
    "hidden": lambda wrong: export_capsule(NumpyBackend, hidden=wrong, minor=0),
    "name of a library": lambda wrong: export_library(wrong, "/nowhere/lib.so"),
}  # an undeclared version, so that no table is made: a process can make 256
USERS = {"factory of a plugin": {"type", "function"}}
"""Wrong values that are functions of the user's own, whose errors arrive unchanged."""


def wrong_values(call: str) -> Iterator[tuple[str, Any]]:
    for title, wrong in WRONG.items():
        if title not in USERS.get(call, ()):
            yield title, wrong


@pytest.mark.parametrize("call", CALLS)
def test_wrong_calls_raise_plugrt_errors(call: str) -> None:
    foreign = {}
    for title, wrong in wrong_values(call):
        try:
            CALLS[call](wrong)
        except PlugrtError:
            pass
        except Exception as error:  # noqa: BLE001  # what it is, is the question
            foreign[title] = repr(error)
    assert foreign == {}


@pytest.mark.parametrize("count", [0, -1, 2**16 + 1, 2**70, "0", "x", "-2", "1.5", None, [2]])
def test_a_number_of_devices_has_bounds(count: Any) -> None:
    with pytest.raises(InvalidArgument, match="from 1 to 65536"):
        plugin.create_client({"num_devices": count})


def test_create_options_that_a_factory_does_not_take_are_named() -> None:
    with pytest.raises(InvalidArgument, match=r"'numpy'.*'nosuch'; it takes num_devices, check_ty"):
        plugin.create_client({"nosuch": 1})


def test_a_factory_is_a_function() -> None:
    with pytest.raises(ArgumentTypeError, match="makes a Backend; found 3"):
        BackendPlugin("n", 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("hidden", [{"PJRT_NoSuch"}, "PJRT_Buffer_Delete", {"Buffer_Delete"}])
def test_only_functions_are_hidden(hidden: Any) -> None:
    with pytest.raises(InvalidArgument, match="no functions to hide"):
        export_capsule(NumpyBackend, hidden=hidden)


@pytest.mark.parametrize("path", [None, 3, b"lib.so", ["lib.so"]])
def test_a_path_is_one(path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentTypeError):
        export_library("numpy", path)
    assert list(tmp_path.iterdir()) == []
