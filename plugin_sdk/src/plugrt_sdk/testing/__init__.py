"""The checks that every backend's client must pass, for an author's own tests.

Three lines of pytest run them all, and ``pytest --collect-only`` lists them::

    @pytest.mark.parametrize("check", client_checks(lambda: plugin.create_client({})))
    def test_client(check):
        check()

What the client's `plugrt.interface.Capabilities` declare must work. What they do not declare is
tried as well, and must be refused with `plugrt.errors.Unimplemented` or `InvalidArgument`.
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(
    *(f"plugrt_sdk.testing.{name}" for name in ("arrays", "declarations", "launches", "ownership"))
)

from plugrt_sdk.testing.subject import Subject  # noqa: E402
from plugrt_sdk.testing.suite import CHECKS, client_checks  # noqa: E402  # after the line above

__all__ = ["CHECKS", "Subject", "client_checks"]
