"""How ``setup.py`` of the runtime and of the SDK builds the parts in C, each in its own sdist.

The repository has one file, and a symbolic link to it in ``plugin_sdk``; each sdist has a copy.
CPython's limited API is used, so that one build serves Python 3.11 and later. Where it cannot be
built (no compiler, a Python without the GIL, whose C API is another) a distribution is installed
without it. ``PLUGRT_BUILD_CORE=no`` leaves it out: so the pure wheels are made.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from setuptools import Extension
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

_ALL_FLAGS = ["-O2", "-g0", "-fvisibility=hidden", "-Wall", "-Wextra"]
FLAGS = ["-std=c11", *_ALL_FLAGS]
LIMITED = [("Py_LIMITED_API", "0x030B0000")]
_RUNTIME_OF_CPLUSPLUS = "c++" if sys.platform == "darwin" else "stdc++"


def find(folder: str, pattern: str) -> list[str]:
    """Returns the files of that pattern, as setuptools names them."""
    return sorted(map(str, Path(folder).glob(pattern)))


def is_built() -> bool:
    """Whether the parts in C are to be built here."""
    wanted = os.environ.get("PLUGRT_BUILD_CORE") != "no"
    return wanted and not sysconfig.get_config_var("Py_GIL_DISABLED")


class Build(build_ext):
    """Optimises over all files at once where the compiler and the linker can: a trial says that."""

    together: tuple[str, ...] = ("-O3", "-flto=auto")
    old_libraries: tuple[str, ...] = ()
    """Options for libraries of older versions of glibc."""
    cplusplus: tuple[str, ...] = ()
    """Left out where the compiler has no C++; setuptools knows no flags for one file."""

    def build_extensions(self) -> None:
        if self._accepts(self.together):
            for extension in self.extensions:
                extension.extra_compile_args = [*extension.extra_compile_args, *self.together]
                extension.extra_link_args = [*extension.extra_link_args, *self.together]
        if self.old_libraries and self._accepts(self.old_libraries):
            for extension in self.extensions:
                extension.extra_link_args = [*extension.extra_link_args, *self.old_libraries]
        if self.cplusplus:
            self._add_cplusplus(self.extensions[0])
        super().build_extensions()

    def _add_cplusplus(self, extension: Extension) -> None:
        library = [f"-l{_RUNTIME_OF_CPLUSPLUS}"]
        include = [f"-I{folder}" for folder in extension.include_dirs]
        try:
            objects = self.compiler.compile(
                [*self.cplusplus],
                output_dir=self.build_temp,
                extra_postargs=["-std=c++14", *include, *_ALL_FLAGS],
            )
            made = str(Path(self.build_temp) / "trial.so")
            self.compiler.link_shared_object(objects, made, extra_postargs=library)
        except (CompileError, LinkError):
            return
        extension.extra_objects = [*extension.extra_objects, *objects]
        extension.extra_link_args = [*extension.extra_link_args, *library]
        extension.define_macros = [*extension.define_macros, ("PLUGRT_CATCHES", "1")]

    def _accepts(self, flags: tuple[str, ...]) -> bool:
        with TemporaryDirectory() as folder:
            source = Path(folder) / "trial.c"
            source.write_text("int trial(void) { return 0; }\n", encoding="utf-8")
            try:
                objects = self.compiler.compile(
                    [str(source)], output_dir=folder, extra_postargs=[*flags]
                )
                made = str(Path(folder) / "trial.so")
                self.compiler.link_shared_object(objects, made, extra_postargs=[*flags])
            except (CompileError, LinkError):
                return False
        return True


class Wheel(bdist_wheel):
    """A wheel that is pure, and says so, where no part in C could be built."""

    def run(self) -> None:
        if not self.skip_build:
            self.run_command("build")
            self.skip_build = True
            if not any(map(os.path.isfile, self.get_finalized_command("build_ext").get_outputs())):
                self.distribution.ext_modules = []
                self.root_is_pure, self.py_limited_api = True, False
        super().run()


def extension(name: str, sources: list[str], depends: list[str], **more: Any) -> Extension:
    """Returns an extension that is left out where it cannot be built."""
    flags = more.pop("flags", FLAGS)
    return Extension(
        name, sources, depends=depends, extra_compile_args=flags,
        py_limited_api=True, optional=True, **more,
    )  # fmt: skip


def options(extensions: list[Extension], build: type[Build]) -> dict[str, Any]:
    """Returns the arguments of `setuptools.setup`; without extensions the wheel is pure."""
    return {
        "ext_modules": extensions,
        "options": {"bdist_wheel": {"py_limited_api": "cp311"} if extensions else {}},
        "cmdclass": {"bdist_wheel": Wheel, "build_ext": build},
    }
