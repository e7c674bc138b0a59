"""The pytest plugin of ``pytest --plugrt NAME``; without the option it does nothing.

pytest imports this module wherever plugrt-sdk is installed, so it imports nothing itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option."""
    parser.getgroup("plugrt", "PJRT plugins").addoption(
        "--plugrt",
        metavar="NAME",
        help="Put a plugin through the conformance kit: NAME is an installed plugin, the path of a "
        "PJRT library, or module:object. Also makes the fixtures client and device. The kit's "
        "checks are added to the tests unless paths are named.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Registers fixtures and checks, with the option."""
    if config.getoption("plugrt"):
        from plugrt_sdk.conformance import pytest_option

        config.pluginmanager.register(pytest_option, "plugrt-checks")
