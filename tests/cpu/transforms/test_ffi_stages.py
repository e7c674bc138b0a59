"""Handlers with stages and state: `plugrt.ffi.register_target` of a dict, and `register_type`."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import ffi
from plugrt.errors import AlreadyExists, ArgumentError, ArgumentTypeError, PjrtError
from support.behaviour import behaviour
from support.clib import needs_cc
from support.staged_handlers import StagedLibrary

pytestmark = needs_cc
THREE = plugrt.ShapeDtypeStruct((3,), "float32")
X = np.float32([1, 2, 3])


@pytest.fixture(autouse=True)
def platform() -> str:
    """Returns the platform under test; skips if its backend registers no handlers."""
    client = plugrt.get_backend()
    if not client.capabilities.custom_calls:
        pytest.skip(f"{client.platform} does not declare custom_calls")
    return client.platform


@pytest.fixture
def handler(tmp_path: Path) -> StagedLibrary:
    return StagedLibrary(tmp_path)


def registered(handler: StagedLibrary, platform: str, *stages: str) -> Any:
    """Registers the handler's type, and the named stages; returns a function that calls it."""
    ffi.register_type(handler.name, handler.registration(), platform=platform)
    ffi.register_target(handler.name, handler.stages(*stages), platform=platform)
    return ffi.ffi_call(handler.name, THREE)


@behaviour(22, "a C handler makes its state once for an executable and finds it at each launch")
def test_a_state_is_made_once_and_deleted_with_the_executable(
    handler: StagedLibrary, platform: str
) -> None:
    """Same as JAX: states of handlers; XLA's CPU client runs no 'prepare' and no 'initialize'."""
    call = registered(handler, platform)
    f = plugrt.jit(lambda x: call(x, factor=np.float32(3)) + 1)
    assert handler.counts == [0, 0, 0, 0, 0]
    results = [np.asarray(f(X)) for _ in range(3)]
    between = 3 if handler.counts[1] else 0  # XLA's CPU client runs no such stages
    assert handler.counts == [1, between, between, 3, 2 * between]
    for result in results:
        np.testing.assert_array_equal(result, 3 * X + 1 + (2 if between else 0))
    # Each call in a program, and each program, has its own state.
    g = plugrt.jit(lambda x: call(x, factor=np.float32(2)) - call(x, factor=np.float32(5)))
    np.testing.assert_array_equal(g(X), -3 * X)
    assert handler.counts[0] == 3
    del f, g
    plugrt.clear_caches()
    gc.collect()
    assert handler.counts[4] - 2 * handler.counts[1] == 3


@behaviour(22, "an error in the stage 'instantiate' is the compilation's")
def test_an_error_of_instantiate(handler: StagedLibrary, platform: str) -> None:
    call = registered(handler, platform)
    f = plugrt.jit(lambda x: call(x, factor=np.float32(-1)))
    with pytest.raises(PjrtError, match="the factor is negative"):
        f.lower(X).compile()
    assert handler.counts[3] == 0
    np.testing.assert_array_equal(plugrt.jit(lambda x: call(x, factor=np.float32(1)) > 0)(X), True)


@behaviour(
    22, "a state that is missing, set twice or of another type is an error that names the type"
)
def test_wrong_states(handler: StagedLibrary, platform: str) -> None:
    call = registered(handler, platform)
    with pytest.raises(PjrtError, match="already"):
        np.asarray(call(X, factor=np.float32(1), twice=np.int64(1)))
    ffi.register_type(f"{handler.name}_other", {"type_id": handler.capsule("other_id")}, platform)
    with pytest.raises(PjrtError, match="type"):
        np.asarray(call(X, factor=np.float32(1), other=np.int64(1)))
    ffi.register_target(f"{handler.name}_alone", handler.stages("execute"), platform=platform)
    with pytest.raises(PjrtError, match=r"(?i)state.* not set|set no state"):
        np.asarray(ffi.ffi_call(f"{handler.name}_alone", THREE)(X))
    np.testing.assert_array_equal(np.asarray(call(X, factor=np.float32(1))) > 0, True)


def test_a_state_whose_type_has_no_deleter(handler: StagedLibrary, platform: str) -> None:
    ffi.register_type(handler.name, {"type_id": handler.capsule("state_id")}, platform)
    ffi.register_target(handler.name, handler.stages("instantiate", "execute"), platform=platform)
    with pytest.raises(PjrtError, match="delete"):
        np.asarray(ffi.ffi_call(handler.name, THREE)(X, factor=np.float32(1)))


def test_the_id_of_a_type_is_written_for_the_first_program(
    handler: StagedLibrary, platform: str
) -> None:
    call = registered(handler, platform, "instantiate", "execute")
    id_at = handler.address("state_id")
    read = ctypes.c_int64.from_address
    assert read(id_at).value == 0
    np.testing.assert_array_equal(call(X, factor=np.float32(2)), 2 * X)
    assert read(id_at).value != 0
    # A type that is registered later is available to the next program.
    ffi.register_type(f"{handler.name}_late", {"type_id": handler.capsule("other_id")}, platform)
    np.testing.assert_array_equal(call(X, factor=np.float32(4)), 4 * X)
    assert read(handler.address("other_id")).value not in (0, read(id_at).value)


@behaviour(22, "wrong stages and types are refused by name")
def test_wrong_registrations(handler: StagedLibrary, platform: str) -> None:
    name, here = handler.name, {"platform": platform}
    with pytest.raises(ArgumentError, match=r"the stages \['execut'\]; the stages are 'instantia"):
        ffi.register_target(name, {"execut": handler.capsule("execute")}, **here)
    with pytest.raises(ArgumentError, match="'execute' is always there"):
        ffi.register_target(name, handler.stages("instantiate"), **here)
    with pytest.raises(ArgumentTypeError, match=r"the stage 'prepare' of .* is <built-in"):
        ffi.register_target(name, {**handler.stages("execute"), "prepare": print}, **here)
    registration = handler.registration()
    for wrong in (3, None, registration["type_id"], {"type_id": 3}, {"type_id": "x"}):
        with pytest.raises(ArgumentTypeError, match="is registered by a dict of PyCapsules"):
            ffi.register_type(name, wrong, **here)  # type: ignore[arg-type]
    for keys in ({}, {"type_info": registration["type_info"]}, {**registration, "size": name}):
        capsules = dict.fromkeys(keys, registration["type_id"])
        with pytest.raises(ArgumentError, match=r"by 'type_id' and, .*'type_info'; got \["):
            ffi.register_type(name, capsules, **here)
    with pytest.raises(ArgumentTypeError, match="takes names as text; got 3"):
        ffi.register_type(3, registration, **here)  # type: ignore[arg-type]
    short = {**registration, "type_info": handler.capsule("short_info")}
    with pytest.raises(ArgumentError, match="has 8 bytes; an XLA_FFI_TypeInfo has 24"):
        ffi.register_type(name, short, **here)
    ffi.register_type(name, registration, **here)
    ffi.register_type(name, handler.registration(), **here)  # the same again
    with pytest.raises(AlreadyExists, match=f"{name!r} is registered on .* with another type_id"):
        ffi.register_type(name, handler.registration("other_id"), **here)
    with pytest.raises(AlreadyExists, match="with another type_info"):
        ffi.register_type(name, {"type_id": registration["type_id"]}, **here)
    ffi.register_target(name, handler.stages(), **here)
    with pytest.raises(AlreadyExists, match=f"{name!r} has another handler"):
        ffi.register_target(name, handler.stages("instantiate", "execute"), **here)
