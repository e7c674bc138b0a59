"""A copy of the repository, with an environment of its own, for mutants."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

HERE = Path(__file__).parent
PYTHON_SOURCES = (
    "runtime/src/plugrt", "plugins/cpu/src", "plugins/cuda/src", "plugins/tpu/src",
    "plugins/numpy/src", "plugins/remote/src", "plugin_sdk/src/plugrt_sdk",
)  # fmt: skip
COMPILE = (
    "gcc", "-std=c11", "-D_GNU_SOURCE", "-fPIC", "-fvisibility=hidden", "-w",
    "-DPy_LIMITED_API=0x030B0000",
)  # fmt: skip
PLAIN = ("-O2", "-g0")
COUNTED = ("-O0", "-g", "-fsanitize-coverage=trace-pc")
START_CHILDREN = f"""\
import os, sys; os.environ.get("PLUGRT_MUTANTS_CHILDREN") and (sys.path.append({str(HERE)!r}), \
__import__("mutation_children").begin(), sys.path.pop())
"""
"""A line in a ``.pth`` file that makes interpreters of tests count lines, too."""


@dataclass(frozen=True)
class Extension:
    """A library in C: its sources, its build folder, and whether it has Python's `main`."""

    sources: str
    built: str
    module: str | None
    deep: bool = False
    """Whether folders in ``sources`` belong to it."""


EXTENSIONS = (
    Extension("runtime/core", "runtime/src/plugrt/_core.abi3.so", "plugrt._core", deep=True),
    Extension(
        "plugin_sdk/core",
        "plugin_sdk/src/plugrt_sdk/export/_core.abi3.so",
        "plugrt_sdk.export._core",
    ),
    Extension("plugin_sdk/core/library", "plugin_sdk/src/plugrt_sdk/export/_library.abi3.so", None),
    Extension("plugin_sdk/core/trace", "plugin_sdk/src/plugrt_sdk/tracing/_tracer.abi3.so", None),
)


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Runs a command and returns its output; exits if it fails."""
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {ended.stderr or ended.stdout}")
    return ended.stdout


class Tree:
    """A clone of ``repository`` at ``revision`` in ``folder``, made if it is not there."""

    def __init__(self, repository: Path, revision: str, folder: Path) -> None:
        self.folder = folder
        self.objects = folder.with_name(f"{folder.name}-objects")
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("VIRTUAL_ENV", "PYTHONPATH", "PLUGRT_TEST_TARGET", "CI")
        }
        if not (folder / ".git").exists():
            run("git", "clone", "--quiet", "--shared", "--no-checkout", repository, folder)
        else:
            self.restore()
        run("git", "checkout", "--quiet", "--force", "--detach", revision, cwd=folder)
        if not (folder / ".venv/.synced").exists() or not self.objects.exists():
            run("make", ".venv/.synced", cwd=folder)
            run(".venv/bin/uv", "pip", "install", "--quiet", "coverage", cwd=folder)
        for packages in (folder / ".venv/lib").glob("python*/site-packages"):
            (packages / "mutation_children.pth").write_text(START_CHILDREN, encoding="utf-8")
        self.build()

    @property
    def python(self) -> str:
        """The interpreter of the copy."""
        return str(self.folder / ".venv/bin/python")

    @cached_property
    def include(self) -> str:
        """The folder of Python.h."""
        return sysconfig.get_paths()["include"]

    def sources_of(self, extension: Extension) -> list[Path]:
        """Returns the C files of an extension."""
        found = (self.folder / extension.sources).glob("**/*.c" if extension.deep else "*.c")
        return sorted(found)

    def compile(
        self, source: Path, made: Path, flags: Sequence[str] = PLAIN, place: Path | None = None
    ) -> bool:
        """Compiles one C file with the path ``place``; returns whether that worked."""
        made.parent.mkdir(parents=True, exist_ok=True)
        folder = (place or source).parent
        command = [*COMPILE, *flags, f"-I{self.include}", f"-I{folder}", f"-I{folder.parent}"]
        ended = subprocess.run(
            [*command, "-c", source, "-o", made], capture_output=True, check=False
        )
        return ended.returncode == 0

    def object_of(self, source: Path, kind: str = "plain") -> Path:
        """Returns the path of the object file of a C file."""
        name = str(source.relative_to(self.folder).with_suffix(".o")).replace("/", "-")
        return self.objects / kind / name

    def link(self, extension: Extension, objects: Sequence[Path]) -> None:
        """Links these objects to a library at the path that the extension is imported from."""
        made = self.folder / extension.built
        new = made.with_suffix(".new")
        run("gcc", "-shared", "-o", new, *objects, "-ldl", "-lpthread")
        new.replace(made)  # never writes to a file that a process maps

    def build(self, counted: bool = False) -> None:
        """Builds all extensions; with ``counted``, ``blocks.c`` records the blocks that run."""
        for extension in EXTENSIONS:
            sources = self.sources_of(extension)
            if not sources:
                continue
            counts = counted and extension.module is not None
            kind, flags = ("counted", COUNTED) if counts else ("plain", PLAIN)
            objects = [self.object_of(source, kind) for source in sources]
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(self._keep, sources, objects, [flags] * len(sources)))
            if counts:
                blocks = self.objects / "blocks.o"
                self.compile(HERE / "blocks.c", blocks)
                objects.append(blocks)
            self.link(extension, objects)

    def _keep(self, source: Path, made: Path, flags: Sequence[str]) -> None:
        if not made.exists() and not self.compile(source, made, flags):
            raise SystemExit(f"{source} does not compile")

    def write(self, path: str, text: str) -> None:
        """Writes a file with a modification time that no bytecode of another text has."""
        file = self.folder / path
        later = max(time.time(), file.stat().st_mtime + 1)
        file.write_text(text, encoding="utf-8")
        os.utime(file, (int(later) + 1, int(later) + 1))

    def restore(self) -> None:
        """Restores the committed files."""
        changed = run("git", "diff", "--name-only", cwd=self.folder).split()
        for path in changed:
            self.write(path, run("git", "show", f"HEAD:{path}", cwd=self.folder))

    def remove(self) -> None:
        """Deletes the copy."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.objects, ignore_errors=True)
