"""Arrays whose elements have fewer than 8 bits, which XLA packs, in reads and in callbacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt.capi import create_client, load_library
from plugrt.capi.extensions.ffi import address_of, make_c_handler
from plugrt.capi.extensions.ffi_frames import call_c_handler
from support.xla_cpu import library_path, needs_library

pytestmark = needs_library


@pytest.fixture(scope="module", autouse=True)
def client() -> Iterator[None]:
    path = library_path()
    assert path is not None
    made = create_client(load_library(path), {"cpu_device_count": 1}, name="sub-byte reads")
    with plugrt.default_device(made.devices()[0]):
        yield
    plugrt.clear_caches()
    made.close()


@pytest.mark.parametrize("name", ["int2", "int4", "uint4", "float4_e2m1fn"])
def test_one_element_has_the_bytes_that_it_has_beside_others(name: str) -> None:
    """XLA leaves arbitrary bits beside the only element of a byte."""
    dtype = np.dtype(getattr(ml_dtypes, name))
    every = np.arange(4 if name == "int2" else 16, dtype=np.uint8).view(dtype)
    jitted = plugrt.jit(lambda x: x + np.ones((), dtype))
    results = jitted(every)
    for shape in ((), (1,)):
        for i, value in enumerate(every):
            put = plugrt.device_put(value.reshape(shape))
            assert np.asarray(put).tobytes() == value.tobytes()
            assert np.asarray(jitted(put)).tobytes() == np.asarray(results)[i].tobytes()


@pytest.mark.parametrize("name", ["int2", "int4", "uint4", "float4_e2m1fn"])
@pytest.mark.parametrize("shape", [(), (5,), (2, 4), (100_000,)])
def test_callbacks_get_and_give_elements_that_the_program_has_packed(
    name: str, shape: tuple[int, ...]
) -> None:
    """Read as a byte each, elements are wrong, and accesses go past the buffer's end."""
    dtype = np.dtype(getattr(ml_dtypes, name))
    bits = 3 if name == "int2" else 15
    host = (np.arange(np.prod(shape, dtype=int)).reshape(shape) + 3 & bits).astype(np.uint8)
    seen = list[bytes]()

    def flip(x: np.ndarray) -> np.ndarray:
        seen.append(x.tobytes())
        return (x.view(np.uint8) ^ bits).view(dtype)

    promised = plugrt.ShapeDtypeStruct(shape, dtype)
    jitted = plugrt.jit(lambda x: plugrt.pure_callback(flip, promised, x))
    assert np.asarray(jitted(host.view(dtype))).tobytes() == (host ^ bits).tobytes()
    assert seen == [host.tobytes()]


def test_handlers_called_by_a_backend_in_python_have_packed_elements_too() -> None:
    def double(arguments: Any, results: Any, attributes: Any) -> None:
        results[0][...] = arguments[0] + arguments[0]

    call = call_c_handler("double", address_of(make_c_handler("double", double)))
    host = np.array([1, 2, 3, -4, 1]).astype(ml_dtypes.int4)
    result = np.zeros_like(host)
    call([host], [result], {})
    assert result.tobytes() == (host + host).tobytes()
