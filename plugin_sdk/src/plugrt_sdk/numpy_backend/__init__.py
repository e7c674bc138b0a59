"""The former name of `plugrt_numpy`, for packages written before. Version 1.0 removes it.

The modules of `plugrt_numpy` have both names, so that a class is the same by either.
"""

from __future__ import annotations

import pkgutil
import sys
import warnings
from importlib import import_module

import plugrt_numpy

warnings.warn(
    "plugrt_sdk.numpy_backend is plugrt_numpy now: import that, and add plugrt-numpy to the "
    "dependencies of the package that imports it; plugrt-sdk 1.0 removes the former name",
    DeprecationWarning,
    stacklevel=2,
)
for _found in pkgutil.walk_packages(plugrt_numpy.__path__, "plugrt_numpy."):
    sys.modules[f"{__name__}.{_found.name.rpartition('.')[2]}"] = import_module(_found.name)
sys.modules[__name__] = plugrt_numpy
