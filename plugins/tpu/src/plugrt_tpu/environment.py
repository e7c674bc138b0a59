"""The environment variables that libtpu reads when it starts: short timeouts, quiet logging.

libtpu queries the metadata server of Google's cloud. On any other machine that query blocks for
minutes, and log files are written to the temporary folder. See README.md for each variable, and
https://github.com/jax-ml/jax/pull/29069 for JAX's remedy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager

from plugrt.plugins import start_variables
from plugrt.plugins.vendors import START_VARIABLES
from plugrt_tpu.hardware import Hardware

ON_TPU_MACHINES: Mapping[str, str] = {"GRPC_VERBOSITY": "ERROR"}
ELSEWHERE: Mapping[str, str] = START_VARIABLES["libtpu.so"].variables
"""Declared in the runtime, which needs them for libtpu named in PJRT_NAMES_AND_LIBRARY_PATHS."""


def variables_to_set(seen: Hardware) -> dict[str, str]:
    """Returns the variables to set on this machine: none that the user has set."""
    wanted = ON_TPU_MACHINES if seen.is_tpu_machine else ELSEWHERE
    return {name: value for name, value in wanted.items() if name not in os.environ}


def set_libtpu_variables(seen: Hardware) -> AbstractContextManager[None]:
    """Sets `variables_to_set` while the library starts, and removes them afterwards."""
    return start_variables.set_variables(variables_to_set(seen))
