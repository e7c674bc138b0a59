"""Builds the core in C: CPython's limited API, so that one build serves Python 3.11 and later.

Where it cannot be built (no compiler, a Python without the GIL, whose C API is another) plugrt is
installed without it, and Python does the same. The SDK's ``setup.py`` builds its own in this way.
``PLUGRT_BUILD_CORE=no`` leaves both out: so the pure wheels are made.
"""

import os
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel

CORE = sorted(map(str, Path("core").glob("*.c")))
HEADERS = sorted(map(str, Path("core").glob("*.h")))
FLAGS = ["-std=c11", "-O2", "-g0", "-fvisibility=hidden", "-Wall", "-Wextra"]
LIMITED = "0x030B0000"
wanted = os.environ.get("PLUGRT_BUILD_CORE") != "no"
built = wanted and not sysconfig.get_config_var("Py_GIL_DISABLED")


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
            depends=HEADERS,
            define_macros=[("Py_LIMITED_API", LIMITED)],
            extra_compile_args=FLAGS,
            py_limited_api=True,
            optional=True,
        )
    ]
    if built
    else [],
    options={"bdist_wheel": {"py_limited_api": "cp311"} if built else {}},
    cmdclass={"bdist_wheel": Wheel},
)
