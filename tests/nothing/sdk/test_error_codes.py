"""An exported plugin's exceptions have the codes by which hosts distinguish them."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import pytest

from plugrt.errors import Unimplemented, UnsupportedDtype
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendClient
from support.exported import Exported, put


def test_a_dtype_that_the_backend_lacks_is_unimplemented() -> None:
    class Narrow(NumpyBackend):
        def put(self, array: np.ndarray, device: int) -> NoReturn:  # type: ignore[type-arg]
            raise UnsupportedDtype(f"there is no {array.dtype} here")

    client = Exported(lambda: BackendClient(Narrow())).client()
    with pytest.raises(Unimplemented, match="there is no float32 here"):
        put(client)
