"""Stages and state of handlers in C on exported plugins, through XLA's functions for these."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plugrt.capi import library_in
from plugrt.capi.abi._abi import ffi
from plugrt.capi.extensions import ffi_registration
from plugrt.capi.extensions.ffi_types import register_type
from plugrt.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    Unimplemented,
)
from plugrt.interface import CompileOptions, HandlerStages, Program
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendClient, instantiate
from support.clib import needs_cc
from support.exported import ONE, Exported, put
from support.late_client import Adder
from support.staged_handlers import STAGES, StagedLibrary

pytestmark = needs_cc


@pytest.fixture(params=["exported", "inside"])
def client(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A backend in Python, through the C API and directly."""
    inner = lambda: BackendClient(NumpyBackend(num_devices=2))  # noqa: E731
    made = Exported(inner).client() if request.param == "exported" else inner()
    yield made
    made.close()


@pytest.fixture
def handler(tmp_path: Path) -> StagedLibrary:
    return StagedLibrary(tmp_path)


def stages(handler: StagedLibrary, *names: str) -> HandlerStages:
    return HandlerStages(**{name: handler.address(name) for name in names or STAGES})


def register(client: Any, handler: StagedLibrary, *names: str) -> None:
    info = handler.address("state_info")
    client.register_handler_type(handler.name, handler.address("state_id"), info)
    client.register_handler(handler.name, stages(handler, *names))


def load(client: Any, target: str, attributes: str = "factor = 3.0 : f32") -> Any:
    text = f"""func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {{
      %0 = stablehlo.custom_call @{target}(%a)
        {{api_version = 4 : i32, backend_config = {{{attributes}}}}}
        : (tensor<3xf32>) -> tensor<3xf32>
      return %0 : tensor<3xf32> }}"""
    return client.compile(Program(text.encode()), CompileOptions())


def launch(client: Any, loaded: Any) -> Any:
    [[result]] = loaded.execute([(put(client),)])
    return result.to_host()


def test_the_stages_run_in_order_with_their_states(client: Any, handler: StagedLibrary) -> None:
    register(client, handler)
    loaded = load(client, handler.name)
    assert handler.counts == [1, 0, 0, 0, 0]
    for count in (1, 2, 3):
        # The states of 'prepare' and 'initialize', 1 each, are deleted with the launch.
        np.testing.assert_array_equal(launch(client, loaded), 3 * ONE + 2)
        assert handler.counts == [1, count, count, count, 2 * count]
    loaded.delete()
    del loaded
    gc.collect()
    assert handler.counts[4] == 7


@pytest.mark.parametrize(
    ("attributes", "error", "words"),
    [
        ("factor = -1.0 : f32", InvalidArgument, "the factor is negative"),
        ("factor = 1.0 : f32, twice = 1", FailedPrecondition, "'instantiate' of .* set a state al"),
        (
            "factor = 1.0 : f32, of_prepare = 1",
            InvalidArgument,
            "sets the state of the stage 'prepare' in its stage 'instantiate'",
        ),
    ],
    ids=["its own error", "a second state", "another stage's state"],
)
def test_errors_of_instantiate_fail_the_compilation(
    client: Any, handler: StagedLibrary, attributes: str, error: type[Exception], words: str
) -> None:
    register(client, handler)
    with pytest.raises(error, match=words):
        load(client, handler.name, attributes)
    gc.collect()
    assert handler.counts[4] == ("negative" not in words)  # a state that was set is deleted
    np.testing.assert_array_equal(launch(client, load(client, handler.name)), 3 * ONE + 2)


def test_states_that_are_not_there_or_of_another_type(client: Any, handler: StagedLibrary) -> None:
    register(client, handler, "instantiate", "execute")
    other = f"{handler.name}_other"
    client.register_handler_type(other, handler.address("other_id"))
    loaded = load(client, handler.name, "factor = 1.0 : f32, other = 1")
    with pytest.raises(InvalidArgument, match=rf"has the type \d+ \('{handler.name}'\); .*{other}"):
        launch(client, loaded)
    # Handlers without 'instantiate': with one stage, and as a function.
    for alone in (stages(handler, "execute"), handler.address("execute")):
        name = f"{handler.name}_{type(alone).__name__}"
        client.register_handler(name, alone)
        with pytest.raises(NotFound, match=r"'instantiate' of .* has set no state"):
            launch(client, load(client, name))


def test_a_type_must_be_registered_with_its_deleter(client: Any, handler: StagedLibrary) -> None:
    client.register_handler(handler.name, stages(handler))
    with pytest.raises(
        InvalidArgument, match=r"the type 0 \(of no registered type\), for which no"
    ):
        load(client, handler.name)
    client.register_handler_type(handler.name, handler.address("state_id"))
    with pytest.raises(InvalidArgument, match=f"'{handler.name}'.* no function is registered that"):
        load(client, handler.name)
    with pytest.raises(InvalidArgument, match="has 8 bytes; 24 are needed"):
        client.register_handler_type(
            handler.name, handler.address("state_id"), handler.address("short_info")
        )
    register(client, handler)
    np.testing.assert_array_equal(launch(client, load(client, handler.name)), 3 * ONE + 2)


def test_types_have_one_id_each(client: Any, handler: StagedLibrary) -> None:
    first, second = handler.address("state_id"), handler.address("other_id")
    client.register_handler_type(handler.name, first)
    given = ctypes.c_int64.from_address(first).value
    assert given > 1 << 31  # XLA's libraries give small ones
    ctypes.c_int64.from_address(second).value = given
    with pytest.raises((AlreadyExists, InvalidArgument), match=f"cannot have the id {given}"):
        client.register_handler_type(f"{handler.name}_other", second)
    assert register_type(handler.name, given, 1) == given
    with pytest.raises((AlreadyExists, InvalidArgument), match="another function that deletes"):
        client.register_handler_type(handler.name, first, handler.address("state_info"))


def test_a_handler_with_stages_is_one_of_its_name(handler: StagedLibrary) -> None:
    exported = Exported(lambda: BackendClient(NumpyBackend()))
    first = exported.client()
    register(first, handler)
    register(first, handler)
    with pytest.raises(InvalidArgument, match="has another handler on 'NUMPY'"):
        first.register_handler(handler.name, stages(handler, "execute"))
    later = exported.client()  # gets the registered stage
    np.testing.assert_array_equal(launch(later, load(later, handler.name)), 3 * ONE + 2)
    first.close()
    later.close()


def test_stages_and_types_are_registered_before_there_is_a_client(handler: StagedLibrary) -> None:
    """Like JAX, whose users may register before the backends start."""
    exported = Exported(lambda: BackendClient(NumpyBackend()))
    library = library_in(exported.capsule, "exported")
    id_at, info_at = handler.address("state_id"), handler.address("state_info")
    ffi_registration.register_type(library, handler.name, id_at, info_at, "numpy")
    ffi_registration.register(library, handler.name, stages(handler), "numpy")
    client = exported.client()
    np.testing.assert_array_equal(launch(client, load(client, handler.name)), 3 * ONE + 2)
    client.close()


def test_a_backend_that_executes_without_instantiating(handler: StagedLibrary) -> None:
    inside = BackendClient(NumpyBackend())
    register(inside, handler)
    kept: Any = inside.backend
    staged = kept._handlers[handler.name]
    with pytest.raises(Unimplemented, match=r"Fix, in its compile: plugrt_sdk\.instantiate"):
        staged([ONE], [np.zeros(3, np.float32)], {"factor": np.float32(1)})
    result = np.zeros(3, np.float32)
    attributes = {"factor": np.float32(2)}
    instantiate(staged, attributes)([ONE], [result], attributes)
    np.testing.assert_array_equal(result, 2 * ONE + 2)
    assert instantiate(print, {}) is print
    inside.close()


def test_a_backend_without_handlers_refuses_them(handler: StagedLibrary) -> None:
    inside = BackendClient(Adder())
    through: Any = Exported(lambda: BackendClient(Adder())).client()
    for each in (inside, through):
        with pytest.raises(Unimplemented, match=r"register_handler|takes no handlers"):
            each.register_handler(handler.name, stages(handler))
        with pytest.raises(Unimplemented, match=r"register_handler_type|takes no handlers"):
            each.register_handler_type(handler.name, handler.address("state_id"))
        each.close()


def test_the_c_api_s_own_function_takes_deleters(handler: StagedLibrary) -> None:
    client = Exported(lambda: BackendClient(NumpyBackend())).client()
    name = ffi.new("char[]", handler.name.encode())
    deleter = ctypes.c_void_p.from_address(handler.address("state_info") + 16).value
    info = ffi.new("PJRT_FFI_Type_Info*")
    info.deleter = ffi.cast("void(*)(void*)", deleter)
    table = client.library.extension("FFI")
    told = table.call(
        "FFI_Type_Register", type_name=name, type_name_size=len(handler.name), type_info=info
    )
    ctypes.c_int64.from_address(handler.address("state_id")).value = told.type_id
    client.register_handler(handler.name, stages(handler))
    np.testing.assert_array_equal(launch(client, load(client, handler.name)), 3 * ONE + 2)
    assert handler.counts[4] == 3
    client.close()
