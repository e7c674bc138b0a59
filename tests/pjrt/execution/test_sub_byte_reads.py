"""Reads of arrays whose elements have fewer than 8 bits, from a PJRT library, which packs them."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt.capi import create_client, load_library
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
    """XLA leaves in the bits beside the only element of a byte whatever it computed there."""
    dtype = np.dtype(getattr(ml_dtypes, name))
    every = np.arange(4 if name == "int2" else 16, dtype=np.uint8).view(dtype)
    jitted = plugrt.jit(lambda x: x + np.ones((), dtype))
    results = jitted(every)
    for shape in ((), (1,)):
        for i, value in enumerate(every):
            put = plugrt.device_put(value.reshape(shape))
            assert np.asarray(put).tobytes() == value.tobytes()
            assert np.asarray(jitted(put)).tobytes() == np.asarray(results)[i].tobytes()
