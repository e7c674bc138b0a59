"""Builds the library of a defect, and runs its witness on it and on a library without it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.kit_strength.grammar import Defect, library_source

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SECONDS = 180
"""The limit of a witness; a library that hangs has shown its defect."""


def find_library() -> Path | None:
    """Returns the library in the wheel xla-cpu-pjrt; KIT_STRENGTH_LIBRARY names another."""
    if named := os.environ.get("KIT_STRENGTH_LIBRARY"):
        return Path(named)
    spec = importlib.util.find_spec("xla_plugins")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / "xla_cpu_pjrt" / "xla_cpu_pjrt.so"
        if path.exists():
            return path
    return None


@dataclass
class Bench:
    """The real library, and the folder of the compiled shims."""

    real: Path
    folder: Path

    def compile_c(self, source: Path, output: Path, *flags: str) -> Path:
        """Compiles against the header of the library."""
        header = self.real.parent / "include" / "pjrt_c_api.h"
        define = (f'-DHEADER="{header}"', f'-DLIBRARY="{self.real}"', "-D_GNU_SOURCE")
        command = ("cc", "-O1", "-w", f"-I{HERE}", *define, *flags, str(source), "-o", str(output))
        subprocess.run([*command, "-ldl", "-lpthread"], check=True)
        return output

    def shim(self, source: str, name: str) -> Path:
        """Returns a shim library with the text, which is compiled once."""
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        text, library = folder / f"{name}.c", folder / f"lib{name}.so"
        if not library.exists() or not text.exists() or text.read_text() != source:
            text.write_text(source)
            self.compile_c(text, library, "-shared", "-fPIC")
        return library

    def without(self) -> Path:
        """Returns the shim that has no defect."""
        return self.shim(library_source(""), "without")

    def witness(self, library: Path, script: tuple[str, ...]) -> list[str]:
        """Returns the output lines of the witness; after a crash the last one is not ``end``."""
        program = self.folder / "witness"
        if not program.exists() or program.stat().st_mtime < (HERE / "witness.c").stat().st_mtime:
            self.compile_c(HERE / "witness.c", program)
        command = [str(program), str(library), "4"]
        try:
            done = subprocess.run(
                command, input="\n".join(script) + "\n", capture_output=True, text=True,
                timeout=SECONDS, check=False, errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return ["it hangs"]
        return done.stdout.splitlines()

    def shown(self, defect: Defect) -> str:
        """Returns how a witness without plugrt shows the defect; nothing if it does not show it."""
        if defect.family == "backend":
            return self._shown_by_jax(defect)
        right = self.witness(self.without(), defect.script)
        if self.witness(self.without(), defect.script) != right:
            return ""  # the output is not deterministic
        wrong = self.witness(self.shim(defect.source, defect.name), defect.script)
        return _difference(right, wrong)

    def _shown_by_jax(self, defect: Defect) -> str:
        right, again = self.jax_witness("{}"), self.jax_witness("{}")
        return "" if right != again else _difference(right, self.jax_witness(defect.source))

    def jax_witness(self, settings: str) -> list[str]:
        """Returns what stock JAX observes of the backend with the settings."""
        kept = self.folder / "jax_without.txt"
        if settings == "{}" and kept.exists():
            return kept.read_text().splitlines()
        environment = {**os.environ, "KIT_STRENGTH": settings, "JAX_PLATFORMS": "kit_strength",
                       "JAX_PJRT_CLIENT_CREATE_OPTIONS": "num_devices:4",
                       "PYTHONPATH": str(ROOT)}  # fmt: skip
        command = [sys.executable, "-m", "tools.kit_strength.jax_witness"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=ROOT,
                env=environment,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return ["it hangs"]
        lines = done.stdout.splitlines()
        if settings == "{}" and done.returncode == 0:
            kept.write_text("\n".join(lines))
        return lines


def _difference(right: list[str], wrong: list[str]) -> str:
    for one, other in zip(right, wrong, strict=False):
        if one != other:
            at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
            start = max(at - 60, 0)
            return f"{one[start : at + 60]!r} is {other[start : at + 60]!r}"
    return "" if len(right) == len(wrong) else f"it ends after {len(wrong)} of {len(right)} lines"


def has_compiler() -> bool:
    """Returns whether there is a C compiler."""
    return shutil.which("cc") is not None
