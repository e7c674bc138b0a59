"""A pytest plugin (``-p support.backend_name``): the summary names the default backend."""

from __future__ import annotations

import pytest

from plugrt import get_backend


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"default backend: {get_backend().backend_name}")
