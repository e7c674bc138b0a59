"""Builds the core of exports, the library of exports and the tracer, all in C (`core_build`).

For Linux; elsewhere the SDK is installed without them (docs/export.md says what keeps them there).
What needs them says so then. A wheel has the digests of its modules, for the conformance kit, and
the sources of the runner in C that plays the kit's data.
"""

import json
import runpy
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent))  # which build backends do not have there

from core_build import FLAGS, LIMITED, Build, extension, find, is_built, options

PACKAGE = Path(__file__).parent / "src/plugrt_sdk"
HEADERS = find("core", "*.h")
ALL_FLAGS = [*FLAGS, "-D_GNU_SOURCE", "-include", "core/old_glibc.h"]


class BuildCore(Build):
    # In one part: the versions that old_glibc.h names are known in a single part only.
    together = (*Build.together, "-flto-partition=one")
    # Where the functions of old_glibc.h are before glibc 2.34; later ones have these files, too.
    old_libraries = ("-Wl,--no-as-needed", "-l:libdl.so.2", "-l:libpthread.so.0")


class WithDigests(build_py):
    """Writes ``conformance/module_code.json`` into the build, unless that links to the sources."""

    def run(self):
        super().run()
        if not self.editable_mode:
            describe_all = runpy.run_path(str(PACKAGE / "conformance/module_code.py"))[
                "describe_all"
            ]
            Path(self._digests()).write_text(json.dumps(describe_all(PACKAGE)), encoding="utf-8")
            for source, target in self._runner().items():
                self.mkpath(str(Path(target).parent))
                self.copy_file(source, target)

    def get_outputs(self, include_bytecode=True):
        written = [] if self.editable_mode else [self._digests(), *self._runner().values()]
        return [*super().get_outputs(include_bytecode), *written]

    def _runner(self):
        """Returns each source of the runner, and its place in the wheel."""
        folder = f"{self.build_lib}/plugrt_sdk/conformance/c_runner"
        return {path: f"{folder}/{Path(path).name}" for path in find("runner", "*.[ch]")}

    def _digests(self):
        return f"{self.build_lib}/plugrt_sdk/conformance/module_code.json"


EXTENSIONS = [
    extension(
        "plugrt_sdk.export._core",
        find("core", "*.c"),
        HEADERS,
        flags=ALL_FLAGS,
        define_macros=LIMITED,
        libraries=["dl", "pthread"],
    ),
    # No Python module: what `plugrt export` copies. It is here because setuptools builds it.
    extension(
        "plugrt_sdk.export._library",
        ["core/library/library.c"],
        HEADERS,
        flags=ALL_FLAGS,
        libraries=["dl"],
    ),
    # Nor is this: what `plugrt trace` has loaded before a program. It knows no Python.
    extension(
        "plugrt_sdk.tracing._tracer",
        find("core/trace", "*.c"),
        ["core/old_glibc.h", "core/pjrt.h", *find("core/trace", "*.h")],
        flags=ALL_FLAGS,
        define_macros=[("DEFINES_DLSYM", "1")],
        libraries=["dl", "pthread"],
    ),
]
OPTIONS = options(EXTENSIONS if is_built() and sys.platform == "linux" else [], BuildCore)
OPTIONS["cmdclass"]["build_py"] = WithDigests
setup(**OPTIONS)
