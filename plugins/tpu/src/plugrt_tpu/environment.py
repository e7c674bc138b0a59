"""The variables that libtpu reads when it starts, set so that it neither waits nor chatters.

libtpu takes the metadata server of Google's cloud for granted: on any other machine it asks it
for minutes, and it writes log files into the temporary folder. See README.md for each variable.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager

from plugrt.plugins.start_variables import variables_set
from plugrt.plugins.vendors import START_VARIABLES
from plugrt_tpu.hardware import Hardware

ON_TPU_MACHINES: Mapping[str, str] = {"GRPC_VERBOSITY": "ERROR"}
ELSEWHERE: Mapping[str, str] = START_VARIABLES["libtpu.so"].variables
"""The runtime holds them, for those who name the library in PJRT_NAMES_AND_LIBRARY_PATHS."""


def variables(seen: Hardware) -> dict[str, str]:
    """Returns the variables to set on this machine: none that the user has set."""
    wanted = ON_TPU_MACHINES if seen.is_tpu_machine else ELSEWHERE
    return {name: value for name, value in wanted.items() if name not in os.environ}


def prepared(seen: Hardware) -> AbstractContextManager[None]:
    """Sets `variables` while the library starts, and takes them away again."""
    return variables_set(variables(seen))
