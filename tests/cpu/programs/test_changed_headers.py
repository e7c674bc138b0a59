"""Saved functions and executables with changed headers and valid checksums.

Loading one raises `DataLoss`, or it runs and gives a result.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax, serialize_executable
from plugrt.errors import DataLoss, FailedPrecondition, InvalidArgument, UnknownPlatform
from plugrt.sharding import Mesh, NamedSharding
from plugrt.sharding import PartitionSpec as P
from support.changed_headers import changed, join, split
from support.effort import EFFORT

X = np.arange(6, dtype=np.float32).reshape(2, 3)
TABLE = np.arange(2000, dtype=np.float32)
MOST = 2**20
"""The maximum size of arguments in bytes; programs of larger ones are not run."""


@pytest.fixture(autouse=True)
def saves_executables() -> None:
    """Skips if the backend cannot save executables."""
    client = plugrt.get_backend()
    if not client.capabilities.executable_serialization:
        pytest.skip(f"{client.platform} does not declare executable_serialization")


def closing() -> Any:
    return plugrt.jit(lambda x, y, z: (x * 2 + TABLE[:3], TABLE.sum() + y, y, 7)).lower(X, 3, X)


def donating() -> Any:
    return plugrt.jit(lambda x, y: {"a": x + 1, "b": y}, donate_argnums=0).lower(X, X)


def trivial() -> Any:
    return plugrt.jit(lambda x: (x, 3)).lower(X)


def mapped() -> Any:
    several(2)
    return plugrt.pmap(lambda x, y: lax.psum(x + y, "i"), axis_name="i").lower(X, X)


def divided() -> Any:
    several(2)
    mesh = Mesh(np.array(plugrt.local_devices()[:2]), ("x",))
    rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    jitted = plugrt.jit(
        lambda x, y: (x + 1, xp.sum(x) + y), in_shardings=(rows, whole), out_shardings=(rows, whole)
    )
    return jitted.lower(X, np.float32(1))


def several(count: int) -> None:
    if plugrt.local_device_count() < count:
        pytest.skip(f"there are not {count} devices here")


def run(saved: bytes) -> None:
    loaded = plugrt.compile(saved)
    assert isinstance(loaded, serialize_executable.LoadedFunction)
    types = loaded.input_types
    if sum(kind.nbytes for kind in types) <= MOST:
        arguments = [np.zeros(kind.shape, kind.dtype) for kind in types]
        for result in loaded.call_flat(arguments):
            np.asarray(result)


def outcomes(files: Any, load: Any) -> Counter[str]:
    """Returns how many files were accepted and refused; another error fails the test."""
    found: Counter[str] = Counter()
    for saved in files:
        try:
            load(saved)
            found["taken"] += 1
        except DataLoss:
            found["refused"] += 1
        except Exception as error:  # noqa: BLE001 the fault that is looked for
            pytest.fail(f"{type(error).__name__}: {error}\n{split(saved)[:2]}")
    return found


@pytest.mark.parametrize("make", [closing, donating, trivial, mapped, divided])
def test_a_changed_function_is_refused_or_runs(make: Any) -> None:
    saved, *_ = serialize_executable.serialize(make().compile())
    run(saved)
    found = outcomes(changed(saved, 60 * EFFORT, seed=1), run)
    assert found["refused"] > found["taken"]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("kept",), [5]),
        (("donated",), [0, 0, 7]),
        (("name",), 3),
        (("arrays",), [{"shape": [2**40], "dtype": "float32", "weak": False}]),
        (("arrays",), [{"shape": [2**40, 2**40], "dtype": "float32", "weak": False}]),
        (("outputs", 0, "dtype"), "datetime64[s]"),
        (("outputs", 0, "dtype"), "int32"),
        (("outputs", 0, "shape"), [3, 2]),
        (("types", 0, "weak"), 1),
        (("sources",), [["argument", 9]] * 4),
        (("launch", "devices"), [0, 0]),
        (("launch", "replicas"), 2),
        (("launch", "arguments", 0, 1), "no memory of this kind"),
    ],
)
def test_a_field_that_lies_is_refused(place: tuple[Any, ...], value: Any) -> None:
    saved, *_ = serialize_executable.serialize(closing().compile())
    magic, header, contents = split(saved)
    *within, last = place
    container = header
    for key in within:
        container = container[key]
    container[last] = value
    with pytest.raises(DataLoss, match="damaged, or was not written by plugrt"):
        run(join(magic, header, contents))


ORIGIN = {
    "jaxlib", "machine", "platform", "version", "platform_version", "pjrt_api", "attributes", "abi",
    "devices", "device_assignment",
}  # fmt: skip
"""The fields with an executable's origin: a changed one is refused as another backend's."""


@pytest.mark.parametrize("backend", [None, "numpy"])
def test_a_changed_executable_is_refused_or_runs(backend: str | None) -> None:
    try:
        plugrt.get_backend(backend)
    except UnknownPlatform:
        pytest.skip(f"no {backend} backend here")
    jitted = plugrt.jit(lambda x, y: (x + 1, y), backend=backend)
    saved = jitted.lower(X, X).compile().serialize()
    here = split(saved)[1]

    def load(changed_file: bytes) -> None:
        stated = split(changed_file)[1]
        try:
            program = plugrt.compile(changed_file, backend=backend)
            if sum(kind.nbytes for kind in program.input_types or ()) <= MOST:
                program(*[np.zeros(k.shape, k.dtype) for k in program.input_types or [X]])
        except (FailedPrecondition, InvalidArgument):
            if _origin(stated) == _origin(here):
                raise

    found = outcomes(changed(saved, 60 * EFFORT, seed=2), load)
    assert found["refused"] > found["taken"]


def _origin(header: Any) -> Any:
    """Returns the fields of a header with the executable's origin."""
    stated = header.get("facts", header) if isinstance(header, dict) else {}
    if not isinstance(stated, dict):
        return None
    options = stated.get("options")
    stated = {**stated, **(options if isinstance(options, dict) else {})}
    return {name: stated.get(name) for name in ORIGIN}
