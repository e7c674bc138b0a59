"""Builds the core in C: CPython's limited API, so that one build serves Python 3.11 and later.

For Linux; elsewhere the SDK is installed without it (docs/export.md says what keeps it there), as
it is where it cannot be built: without a compiler, or for a Python without the GIL, whose C API is
another. What needs it says so then. The runtime's ``setup.py`` builds its own in this way.
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

HEADERS = sorted(map(str, Path("core").glob("*.h")))
CORE = sorted(map(str, Path("core").glob("*.c")))
TRACER = sorted(map(str, Path("core/trace").glob("*.c")))
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-g0", "-fvisibility=hidden", "-Wall", "-Wextra"]
FLAGS += ["-include", "core/old_glibc.h"]
# In one part: the versions that old_glibc.h names are known in a single part only.
TOGETHER = ["-O3", "-flto=auto", "-flto-partition=one"]
# Where the functions of old_glibc.h are before glibc 2.34; later ones have these files, too.
OLD_LIBRARIES = ["-Wl,--no-as-needed", "-l:libdl.so.2", "-l:libpthread.so.0"]
# Left out where the compiler has no C++; setuptools knows no flags for one file of an extension.
CPLUSPLUS: list[str] = []
CPLUSPLUS_FLAGS = ["-std=c++14", "-O2", "-g0", "-fvisibility=hidden", "-Wall", "-Wextra"]
RUNTIME_OF_CPLUSPLUS = "c++" if sys.platform == "darwin" else "stdc++"
LIMITED = "0x030B0000"
wanted = os.environ.get("PLUGRT_BUILD_CORE") != "no" and sys.platform == "linux"
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
            "plugrt_sdk.export._core",
            CORE,
            depends=HEADERS,
            define_macros=[("Py_LIMITED_API", LIMITED)],
            extra_compile_args=FLAGS,
            libraries=["dl", "pthread"],
            py_limited_api=True,
            optional=True,
        ),
        # No Python module: what `plugrt export` copies. It is here because setuptools builds it.
        Extension(
            "plugrt_sdk.export._library",
            ["core/library/library.c"],
            depends=HEADERS,
            extra_compile_args=FLAGS,
            libraries=["dl"],
            py_limited_api=True,
            optional=True,
        ),
        # Nor is this: what `plugrt trace` has loaded before a program. It knows no Python.
        Extension(
            "plugrt_sdk.tracing._tracer",
            TRACER,
            define_macros=[("DEFINES_DLSYM", "1")],
            depends=[
                "core/old_glibc.h",
                "core/pjrt.h",
                "core/trace/trace.h",
                "core/trace/descriptors.h",
            ],
            extra_compile_args=FLAGS,
            libraries=["dl", "pthread"],
            py_limited_api=True,
            optional=True,
        ),
    ]
    if built
    else [],
    options={"bdist_wheel": {"py_limited_api": "cp311"} if built else {}},
    cmdclass={"bdist_wheel": Wheel, "build_ext": Build},
)
