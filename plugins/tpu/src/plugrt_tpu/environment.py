"""The variables that libtpu reads when it starts, set so that it neither waits nor chatters.

libtpu takes the metadata server of Google's cloud for granted: on any other machine it asks it
for minutes, and it writes log files into the temporary folder. See README.md for each variable.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from plugrt_tpu.hardware import Hardware

ON_TPU_MACHINES: Mapping[str, str] = {"GRPC_VERBOSITY": "ERROR"}
ELSEWHERE: Mapping[str, str] = {
    **ON_TPU_MACHINES,
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_LOG_DIR": "disabled",
    "TPU_MIN_LOG_LEVEL": "3",
    "TPU_STDERR_LOG_LEVEL": "3",
}


def variables(seen: Hardware) -> dict[str, str]:
    """Returns the variables to set on this machine: none that the user has set."""
    wanted = ON_TPU_MACHINES if seen.is_tpu_machine else ELSEWHERE
    return {name: value for name, value in wanted.items() if name not in os.environ}


@contextmanager
def prepared(seen: Hardware) -> Iterator[None]:
    """Sets `variables` while the library starts, and takes them away again.

    The library reads them in its initialisation; processes that the user starts later are not
    to inherit them.
    """
    ours = variables(seen)
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in ours.items():
            if os.environ.get(name) == value:
                del os.environ[name]
