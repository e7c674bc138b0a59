"""Builds the core in C. Where it is left out Python does the same (`core_build`)."""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).parent))  # which build backends do not have there

from core_build import LIMITED, Build, extension, find, is_built, options


class BuildCore(Build):
    cplusplus = ("core/library/trampolines.cc",)


EXTENSIONS = [
    extension(
        "plugrt._core",
        find("core", "**/*.c"),
        [*find("core", "**/*.h"), *BuildCore.cplusplus],
        include_dirs=["core"],
        define_macros=LIMITED,
    )
]
setup(**options(EXTENSIONS if is_built() else [], BuildCore))
