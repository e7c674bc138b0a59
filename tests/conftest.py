"""What all tests share: the path of the helpers, quiet libraries, and fresh settings."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# Before any library is loaded. Several devices, so that placement is tested everywhere.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
for name, value in {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_LOG_DIR": "disabled",
    "TPU_MIN_LOG_LEVEL": "3",  # else there are log files all the same
    "TPU_STDERR_LOG_LEVEL": "3",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}.items():
    os.environ.setdefault(name, value)

# What plugrt remembers between runs is not the user's in tests, and goes with them.
if "PLUGRT_CACHE_DIR" not in os.environ:
    os.environ["PLUGRT_CACHE_DIR"] = tempfile.mkdtemp(prefix="plugrt-tests-")
    atexit.register(shutil.rmtree, os.environ["PLUGRT_CACHE_DIR"], ignore_errors=True)

# The same examples in each run, and no folder of examples left behind.
settings.register_profile("plugrt", database=None, deadline=None, derandomize=True)
settings.load_profile("plugrt")
