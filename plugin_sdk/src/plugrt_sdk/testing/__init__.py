"""The checks that every backend's client must pass, for an author's own tests.

Three lines of pytest run them all, and ``pytest --collect-only`` lists them::

    @pytest.mark.parametrize("check", client_checks(lambda: plugin.create_client({})))
    def test_client(check):
        check()

Every capability that the client's `plugrt.interface.Capabilities` declare must work. The others are
tried as well, and must raise `plugrt.errors.Unimplemented` or `InvalidArgument`.
"""

from __future__ import annotations

import sys

# The conformance kit's processes do not import pytest: it costs 0.2 s.
if pytest := sys.modules.get("pytest"):
    for _name in ("arrays", "declarations", "launches", "ownership"):
        pytest.register_assert_rewrite(f"plugrt_sdk.testing.{_name}")

# After the lines above, which these modules' asserts need.
from plugrt_sdk.testing.subject import Subject
from plugrt_sdk.testing.suite import CHECKS, client_checks

__all__ = ["CHECKS", "Subject", "client_checks"]
