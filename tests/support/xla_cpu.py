"""The real PJRT library of the tests: the one in the wheel ``xla-cpu-pjrt``, or another.

``PJRT_NAMES_AND_LIBRARY_PATHS=xla_cpu:PATH`` makes tests/pjrt use the library PATH.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from plugrt.interface import Program
from support import children
from support.requirements import needs


def library_path() -> Path | None:
    """Returns the path of the library, None without one."""
    name, _, path = os.environ.get("PJRT_NAMES_AND_LIBRARY_PATHS", "").partition(":")
    if name == "xla_cpu":
        return Path(path)
    spec = importlib.util.find_spec("xla_plugins")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / "xla_cpu_pjrt" / "xla_cpu_pjrt.so"
        if path.exists():
            return path
    return None


needs_library = needs(library_path(), "the wheel xla-cpu-pjrt")


def header_path() -> Path | None:
    """Returns the path of the header in the wheel."""
    path = library_path()
    return path.parent / "include" / "pjrt_c_api.h" if path else None


def run_python(code: str, *, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Runs code in a process of its own, with the library's path in ``PATH_OF_LIBRARY``."""
    env = {**os.environ, "PATH_OF_LIBRARY": str(library_path()), "TF_CPP_MIN_LOG_LEVEL": "3"}
    return children.run([sys.executable, "-c", code], env=env, timeout=timeout)


def program(body: str, arguments: str = "", results: str = "", name: str = "main") -> Program:
    """Returns a StableHLO program of one function."""
    arrow = f" -> ({results})" if results else ""
    text = f"module @{name} {{ func.func public @main({arguments}){arrow} {{\n{body}\n}} }}"
    return Program(text.encode(), name=name)


def add(kind: str = "tensor<4xf32>", donate: str = "") -> Program:
    """Returns a program that adds two arrays; ``donate`` are attributes of the first."""
    return program(
        f"%0 = stablehlo.add %a, %b : {kind} return %0 : {kind}",
        f"%a: {kind} {donate}, %b: {kind}",
        kind,
        name="add",
    )


DONATED = "{tf.aliasing_output = 0 : i32}"
