"""The interface: value types check their fields; a backend's missing methods are Unimplemented."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plugrt import interface
from plugrt.errors import Internal, InvalidArgument, PjrtError, Unimplemented
from plugrt.interface import (
    Capabilities,
    CompileOptions,
    DeviceAssignment,
    HostBufferSemantics,
    ReadyEvent,
    TensorType,
)
from support.fake_client import FakeClient


def test_host_buffer_semantics_have_the_values_of_the_c_api() -> None:
    assert [s.value for s in HostBufferSemantics] == [0, 1, 2, 3]
    assert HostBufferSemantics(2) is HostBufferSemantics.IMMUTABLE_ZERO_COPY


def test_tensor_type_prints_as_people_write_it() -> None:
    kind = TensorType((2, 3), np.dtype(np.float32))
    assert str(kind) == "float32[2,3]"
    assert kind.nbytes == 24
    assert TensorType((), np.dtype(np.int8)).nbytes == 1
    assert TensorType((0, 5), np.dtype(np.int8)).nbytes == 0


@pytest.mark.parametrize(
    ("ids", "says"),
    [((), "at least one"), (((),), "at least one"), (((0, 1), (2,)), r"\[2, 1\]"),
     (((0,), (0,)), "appears twice")],
)  # fmt: skip
def test_a_wrong_device_assignment_is_refused(ids: Any, says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        DeviceAssignment(ids)


def test_a_device_assignment_is_replica_major() -> None:
    assignment = DeviceAssignment(((0, 1), (2, 3)))
    assert (assignment.num_replicas, assignment.num_partitions) == (2, 2)
    assert assignment.flat == (0, 1, 2, 3)


def test_compile_options_fit_their_assignment() -> None:
    with pytest.raises(InvalidArgument, match=r"2 x 1 .* 1 replicas x 1"):
        CompileOptions(device_assignment=DeviceAssignment(((0,), (1,))))
    with pytest.raises(InvalidArgument, match="at least 1"):
        CompileOptions(num_replicas=0)
    for shape, ids in (((), ()), ((2,), (0, 1)), ((2, 2), (0, 1, 2, 2)), ((2, 3), (0, 1, 2, 3))):
        with pytest.raises(InvalidArgument, match="each of the 4 partitions once"):
            CompileOptions(
                num_partitions=4, use_auto_spmd_partitioning=True,
                auto_spmd_partitioning_mesh_shape=shape, auto_spmd_partitioning_mesh_ids=ids,
            )  # fmt: skip
    with pytest.raises(TypeError, match="has integers as its shape and ids"):
        CompileOptions(
            use_auto_spmd_partitioning=True, auto_spmd_partitioning_mesh_shape=("x",),  # type: ignore[arg-type]
            auto_spmd_partitioning_mesh_ids=(0,),
        )  # fmt: skip


def test_every_capability_has_its_sentence() -> None:
    sentences = Capabilities(donation=True).sentences()
    assert sentences["donation"][0] is True
    assert sentences["topology"][0] is False
    booleans = [f.name for f in dataclasses.fields(Capabilities) if f.type == "bool"]
    numbers = ("max_blocking_launches", "tuple_arguments_above")
    assert sorted(sentences) == sorted([*booleans, *numbers])
    assert [sentences[name][0] for name in numbers] == [None, None]
    assert all(len(text) > 20 for _, text in sentences.values())
    with pytest.raises(dataclasses.FrozenInstanceError):
        Capabilities().donation = True  # type: ignore[misc]


@pytest.mark.parametrize(
    "ask",
    [
        lambda c: c.topology(),
        lambda c: c.deserialize_executable(b""),
        lambda c: c.devices()[0].memory_stats(),
        lambda c: c.buffer_from_dlpack(None, c.devices()[0]),
    ],
)
def test_optional_methods_are_unimplemented_by_name(ask: Callable[[Any], Any]) -> None:
    client = FakeClient()
    with pytest.raises(Unimplemented, match="not implemented by the backend") as raised:
        ask(client)
    assert raised.value.code == 12
    assert "support" in str(raised.value) or client.platform in str(raised.value)


def test_lookups_list_what_there_is() -> None:
    client = FakeClient()
    with pytest.raises(InvalidArgument, match=r"no device 99; it has \[0"):
        client.lookup_device(99)
    with pytest.raises(InvalidArgument, match="no memory of kind 'attic'; it has"):
        client.devices()[0].memory("attic")
    with pytest.raises(InvalidArgument, match="need 64 devices"):
        client.default_device_assignment(64, 1)
    assert client.default_device_assignment(1, 1).flat == (client.devices()[0].id,)


def test_a_ready_event_tells_at_once() -> None:
    heard: list[PjrtError | None] = []
    event = ReadyEvent()
    event.on_ready(heard.append)
    event.wait()
    assert event.is_ready()
    failure = Internal("broken")
    ReadyEvent(failure).on_ready(heard.append)
    with pytest.raises(Internal):
        ReadyEvent(failure).wait()
    assert heard == [None, failure]


def test_the_interface_imports_nothing_of_ours_but_errors() -> None:
    files = sorted(Path(str(interface.__file__)).parent.glob("*.py"))
    named = {name for path in files for name in _imports_of(path)}
    assert {n for n in named if not n.startswith("plugrt.interface.")} == {"plugrt.errors"}


def _imports_of(path: Path) -> list[str]:
    lines = map(str.strip, path.read_text().splitlines())
    return [line.split()[1] for line in lines if line.startswith(("from plugrt", "import plugrt"))]


def test_the_public_names_are_the_classes_and_values_of_the_package() -> None:
    here = f"{interface.__name__}."
    there = {name: getattr(interface, name) for name in dir(interface)}
    made = {n for n, v in there.items() if getattr(v, "__module__", "").startswith(here)}
    public = {name for name in made if not name.startswith("_")}
    assert {*interface.__all__} == public | {
        "HOST_CALLBACK", "Handler", "HostCallback", "Layout", "OptionValue", "Shards", "VERSION",
    }  # fmt: skip
