"""`show`: the text of ``plugrt doctor`` for an examination in its ``--json``."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from typing import Any

import pytest

from plugrt.cli.doctor import print_examination
from plugrt.cli.doctor_checks import Examination


def show(found: Mapping[str, Any], columns: int = 200) -> str:
    """Returns the text for a terminal of that width, without a further examination."""
    examination = Examination(**{name: value for name, value in found.items() if name != "ok"})
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(io.StringIO()) as printed,
    ):
        patch.setenv("COLUMNS", str(columns))
        print_examination(examination)
    return printed.getvalue()
