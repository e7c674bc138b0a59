"""The library is loaded, and says which function is missing."""

from __future__ import annotations

import pytest
from plugrt.errors import Unimplemented

from my_chip.for_plugrt import plugin


def test_it_is_loaded() -> None:
    """plugrt loads the library; it checks the table when it opens a library."""
    assert plugin.open().attributes()["stablehlo_current_version"] == [1, 0, 0]


def test_it_says_what_is_missing() -> None:
    """The error names the stub that is called first. Delete this test when there is a client."""
    with pytest.raises(Unimplemented, match="PJRT_Client_Create is not written yet"):
        plugin.create_client({})
