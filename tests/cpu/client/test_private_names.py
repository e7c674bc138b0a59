"""Fails if jaxlib drops a private name that plugrt uses."""

from __future__ import annotations

import re
from pathlib import Path

import plugrt_cpu
from plugrt_cpu.jaxlib_import import jaxlib_version
from plugrt_cpu.jaxlib_private_api import PRIVATE_NAMES, missing_names

SOURCE = Path(plugrt_cpu.__file__).parent


def test_installed_jaxlib_has_every_name() -> None:
    missing = missing_names()
    assert not missing, (
        f"jaxlib {jaxlib_version()} lacks {missing}: plugins/cpu/src/plugrt_cpu/adapter.py must "
        "learn what took their place"
    )


def test_every_name_of_the_adapter_is_listed() -> None:
    text = (SOURCE / "adapter.py").read_text()
    used = set(re.findall(r"\b(_(?:jax|hlo)\.[A-Za-z_]+(?:\.[A-Za-z_]+)*)", text))
    used = {name.removesuffix(".__doc__") for name in used}
    listed = "\n".join(PRIVATE_NAMES)
    assert used
    assert [name for name in sorted(used) if name not in listed] == []


def test_only_the_adapter_names_private_modules() -> None:
    for path in SOURCE.glob("*.py"):
        if path.name not in ("adapter.py", "jaxlib_import.py", "jaxlib_private_api.py"):
            assert not re.search(r"jaxlib\._|\b_jax\.|\b_hlo\.", path.read_text()), path.name
