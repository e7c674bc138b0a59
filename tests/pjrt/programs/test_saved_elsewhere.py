"""Functions that one backend compiled and saved, on another: the error names the former."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.errors import PjrtError
from plugrt.interface import Client
from plugrt.serialize_executable import deserialize_and_load, serialize
from support.xla_cpu import needs_library

pytestmark = needs_library
BACKENDS = ["cpu", "xla_cpu", "numpy"]


def saved(backend: str) -> tuple[bytes, Any, Any]:
    x = plugrt.device_put(np.ones(3, np.float32), plugrt.devices(backend)[0])
    return serialize(plugrt.jit(lambda x: x * 2 + 1).lower(x).compile())


@pytest.mark.parametrize("here", BACKENDS)
@pytest.mark.parametrize("made_by", BACKENDS)
def test_the_error_names_the_backend_that_wrote_it(made_by: str, here: str) -> None:
    """Earlier, it named only the backend that cannot load it, or a parser of the library's."""
    written = pickle.loads(pickle.dumps(saved(made_by)))
    if made_by == here:
        f = deserialize_and_load(*written, backend=here)
        np.testing.assert_array_equal(f(np.ones(3, np.float32)), np.full(3, 3, np.float32))
        return
    client: Client = plugrt.get_backend(here)
    for load in (
        lambda: deserialize_and_load(*written, backend=here),
        lambda: plugrt.compile(written[0], backend=here),
    ):
        with pytest.raises(PjrtError) as error:
            load()
        assert f"was compiled by the backend {made_by!r}" in str(error.value)
        assert f"load it with backend={made_by!r}" in str(error.value)
        assert client.backend_name in str(error.value)
