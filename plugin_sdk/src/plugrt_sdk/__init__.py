"""An SDK for PJRT backends in Python: four methods make a complete client.

`Backend` is what an author writes, `BackendPlugin` is how plugrt finds and starts it; `read_module`
and `result_types` read the programs that it is to compile.
"""

from plugrt_sdk.backend import Backend, Handle
from plugrt_sdk.client import BackendClient
from plugrt_sdk.plugin import BackendPlugin
from plugrt_sdk.reading import read_module, result_types

__all__ = [
    "Backend",
    "BackendClient",
    "BackendPlugin",
    "Handle",
    "read_module",
    "result_types",
]
