"""The environment variables that libtpu reads when it starts: short timeouts, quiet logging.

libtpu queries the metadata server of Google's cloud. On any other machine that query blocks for
minutes, and log files are written to the temporary folder. See README.md for each variable, and
https://github.com/jax-ml/jax/pull/29069 for JAX's remedy.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from plugrt.base import xla_environment
from plugrt.plugins.vendors import START_VARIABLES
from plugrt_tpu.hardware import Hardware

ON_TPU_MACHINES: Mapping[str, str] = {"GRPC_VERBOSITY": "ERROR"}
ELSEWHERE: Mapping[str, str] = START_VARIABLES["libtpu.so"].variables
"""Declared in the runtime, which needs them for libtpu in PJRT_NAMES_AND_LIBRARY_PATHS."""


def variables_for(seen: Hardware) -> Mapping[str, str]:
    """Returns the variables that libtpu needs on this machine."""
    return ON_TPU_MACHINES if seen.is_tpu_machine else ELSEWHERE


def set_libtpu_variables(seen: Hardware) -> AbstractContextManager[None]:
    """Sets `variables_for` while the library starts, except variables that the user has set."""
    return xla_environment.set_variables(variables_for(seen))
