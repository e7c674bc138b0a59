"""Builds the core in C: CPython's limited API, so that one build serves Python 3.11 and later.

Where it cannot be built (no compiler, a Python without the GIL, whose C API is another) plugrt is
installed without it, and Python does the same. The SDK's ``setup.py`` builds its own in this way.
``PLUGRT_BUILD_CORE=no`` leaves both out: so the pure wheels are made.
"""

import os
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

CORE = sorted(map(str, Path("core").rglob("*.c")))
HEADERS = sorted(map(str, Path("core").rglob("*.h")))
FLAGS = ["-std=c11", "-O2", "-g0", "-fvisibility=hidden", "-Wall", "-Wextra"]
TOGETHER = ["-O3", "-flto=auto"]
# The SDK's parts in C link libraries of older versions of glibc; the runtime's call none of them.
OLD_LIBRARIES: list[str] = []
# Left out where the compiler has no C++; setuptools knows no flags for one file of an extension.
CPLUSPLUS: list[str] = ["core/library/trampolines.cc"]
CPLUSPLUS_FLAGS = ["-std=c++14", "-Icore", "-O2", "-g0", "-fvisibility=hidden", "-Wall", "-Wextra"]
RUNTIME_OF_CPLUSPLUS = "c++" if sys.platform == "darwin" else "stdc++"
LIMITED = "0x030B0000"
wanted = os.environ.get("PLUGRT_BUILD_CORE") != "no"
built = wanted and not sysconfig.get_config_var("Py_GIL_DISABLED")


class Build(build_ext):
    """Optimises over all files at once where the compiler and the linker can: a trial says that."""

    def build_extensions(self) -> None:
        if self._takes(TOGETHER):
            for extension in self.extensions:
                extension.extra_compile_args = [*extension.extra_compile_args, *TOGETHER]
                extension.extra_link_args = [*extension.extra_link_args, *TOGETHER]
        if OLD_LIBRARIES and self._takes(OLD_LIBRARIES):
            for extension in self.extensions:
                extension.extra_link_args = [*extension.extra_link_args, *OLD_LIBRARIES]
        if CPLUSPLUS:
            self._add_cplusplus(self.extensions[0])
        super().build_extensions()

    def _add_cplusplus(self, extension: Extension) -> None:
        library = [f"-l{RUNTIME_OF_CPLUSPLUS}"]
        try:
            objects = self.compiler.compile(
                CPLUSPLUS, output_dir=self.build_temp, extra_postargs=CPLUSPLUS_FLAGS
            )
            made = str(Path(self.build_temp) / "trial.so")
            self.compiler.link_shared_object(objects, made, extra_postargs=library)
        except (CompileError, LinkError):
            return
        extension.extra_objects = [*extension.extra_objects, *objects]
        extension.extra_link_args = [*extension.extra_link_args, *library]
        extension.define_macros = [*extension.define_macros, ("PLUGRT_CATCHES", "1")]

    def _takes(self, flags: list[str]) -> bool:
        with TemporaryDirectory() as folder:
            source = Path(folder) / "trial.c"
            source.write_text("int trial(void) { return 0; }\n", encoding="utf-8")
            try:
                objects = self.compiler.compile(
                    [str(source)], output_dir=folder, extra_postargs=flags
                )
                made = str(Path(folder) / "trial.so")
                self.compiler.link_shared_object(objects, made, extra_postargs=flags)
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


setup(
    ext_modules=[
        Extension(
            "plugrt._core",
            CORE,
            depends=[*HEADERS, *CPLUSPLUS],
            include_dirs=["core"],
            define_macros=[("Py_LIMITED_API", LIMITED)],
            extra_compile_args=FLAGS,
            py_limited_api=True,
            optional=True,
        )
    ]
    if built
    else [],
    options={"bdist_wheel": {"py_limited_api": "cp311"} if built else {}},
    cmdclass={"bdist_wheel": Wheel, "build_ext": Build},
)
