"""Public attributes of JAX's devices, clients and arrays: present, or an error with a hint."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import interface
from plugrt.execution.arrays.array_methods import INSTEAD
from support.fake_client import FakeClient, FakeDevice

jax = pytest.importorskip("jax")


def public(owner: object) -> set[str]:
    return {name for name in dir(owner) if not name.startswith("_")}


def hint(owner: object, name: str) -> str:
    """Returns the cure in an AttributeError, the text after "has no attribute"."""
    with pytest.raises(AttributeError) as error:
        getattr(owner, name)
    assert error.value.name == name
    text = str(error.value)
    assert f"has no attribute {name!r}" in text
    return text.partition(f"has no attribute {name!r}")[2].lstrip(":, ")


def pairs() -> dict[str, tuple[Any, Any]]:
    theirs, ours = jax.devices("cpu")[0], plugrt.devices()[0]
    array = jax.device_put(np.eye(3), theirs), plugrt.device_put(np.eye(3), ours)
    return {"device": (theirs, ours), "client": (theirs.client, ours.client), "array": array}


@pytest.mark.parametrize("kind", ["device", "client", "array"])
def test_each_public_attribute_is_there_or_says_what_to_use(kind: str) -> None:
    """Earlier, `device_kind`, in the first line of many scripts, was an AttributeError alone.

    Same as JAX: public attributes of devices and clients, where the backend has them.
    """
    theirs, ours = pairs()[kind]
    lacking = sorted(name for name in public(theirs) if not hasattr(ours, name))
    assert [name for name in lacking if not hint(ours, name)] == []
    assert all("states no such fact" not in hint(ours, name) for name in lacking)


def test_attributes_of_devices_and_clients_as_in_jax() -> None:
    theirs, ours = pairs()["device"]
    for name in ("device_kind", "host_id", "task_id", "process_index", "id", "platform"):
        assert getattr(ours, name) == getattr(theirs, name), name
    kinds = [memory.kind for memory in theirs.addressable_memories()]
    assert [memory.kind for memory in ours.addressable_memories()] == kinds
    for name in ("device_count", "local_device_count", "host_id", "task_id"):
        value = getattr(ours.client, name)()
        assert type(value) is int
        assert (name.endswith("count")) == (value == len(plugrt.devices()))
    assert ours.client.local_devices() == plugrt.local_devices()
    for device in plugrt.devices():
        assert device.client.device_from_local_hardware_id(device.local_hardware_id) is device
    with pytest.raises(plugrt.errors.InvalidArgument, match="local hardware id 99; it has"):
        ours.client.device_from_local_hardware_id(99)
    with pytest.raises(plugrt.errors.Unimplemented):
        ours.get_stream_for_external_ready_events()


FACTS: dict[str, interface.OptionValue] = {
    "coords": [1, 2, 0], "core_on_chip": 1, "slice_index": 3, "num_cores": 2,
    "compute_capability": "9.0",
}  # fmt: skip


def test_a_fact_that_the_backend_states_is_an_attribute() -> None:
    """JAX has such attributes of TPUs and GPUs. The error for a missing one lists them."""

    class Stating(FakeDevice):
        attributes = FACTS

    class StatingClient(FakeClient):
        attributes = FACTS

    client = StatingClient("tpu")
    for owner in (Stating(client, 0), client):
        assert {name: getattr(owner, name) for name in FACTS} == FACTS
        said = hint(owner, "numa_node")
        assert "its attributes: compute_capability, coords, core_on_chip, num_cores" in said
    assert "its attributes: none" in hint(plugrt.devices()[0], "coords")


def test_an_attribute_that_fails_does_not_ask_for_itself_without_end() -> None:
    class Failing(FakeDevice):
        @property
        def attributes(self) -> Any:
            raise AttributeError("no library")

    device = Failing(FakeClient(), 0)
    for name in ("coords", "attributes", "_private", "__deepcopy__"):
        assert not hasattr(device, name)


@pytest.mark.parametrize("name", sorted(INSTEAD))
def test_hints_of_missing_attributes_name_existing_ones(name: str) -> None:
    x = plugrt.device_put(np.ones((3, 3)))
    assert not hasattr(x, name)
    words = hint(x, name)
    for path in re.findall(r"plugrt((?:\.\w+)+)", words):
        value: object = plugrt
        for part in path[1:].split("."):
            value = getattr(value, part)
    for called in re.findall(r"(?<![.\w])x\.(\w+)", words):
        assert hasattr(x, called), called


def test_traced_arrays_say_the_same() -> None:
    seen: list[str] = []

    def f(x: Any) -> Any:
        seen.append(hint(x, "ptp"))
        seen.append(hint(x, "searchsorted"))
        assert not x.weak_type
        return x

    plugrt.jit(f)(np.ones(3))
    assert "x.max()" in seen[0]
    assert "searchsorted(x, values)" in seen[1]


@pytest.mark.parametrize("value", [1, 2.5, np.float32(1), np.ones(3)])
def test_weak_type_is_jaxs(value: Any) -> None:
    """Same as JAX: which arrays' dtypes yield to others, `weak_type`."""
    assert xp.asarray(value).weak_type == jax.numpy.asarray(value).weak_type
    ours, theirs = plugrt.jit(lambda x: x + 1)(value), jax.jit(lambda x: x + 1)(value)
    assert ours.weak_type == theirs.weak_type
    for mine, other in (
        (ours.aval, theirs.aval),
        (xp.asarray(value).aval, jax.numpy.asarray(value).aval),
    ):
        assert (mine.shape, mine.ndim, mine.size) == (other.shape, other.ndim, other.size)
        assert mine.weak_type == other.weak_type
    seen: list[Any] = []
    plugrt.jit(lambda v: seen.append(v.aval))(value)
    assert [x.weak_type for x in seen] == [ours.weak_type]


@pytest.mark.parametrize("name", ["shape", "dtype", "weak", "sharding", "committed", "layout"])
def test_an_aval_cannot_change_since_arrays_share_it(name: str) -> None:
    x, y = (plugrt.device_put(np.float32([1, i])) for i in range(2))
    assert x.aval is y.aval
    with pytest.raises(AttributeError, match=f"cannot assign to '{name}'.* share their avals"):
        setattr(x.aval, name, getattr(x.aval, name))
    with pytest.raises(AttributeError, match=f"cannot delete '{name}'"):
        delattr(x.aval, name)
    assert copy.copy(x.aval) is x.aval
    kind = plugrt.typeof(np.float32(1))
    loaded = pickle.loads(pickle.dumps(kind))
    assert (loaded.shape, loaded.dtype, loaded.weak) == (kind.shape, kind.dtype, kind.weak)
