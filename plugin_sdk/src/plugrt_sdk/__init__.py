"""An SDK for PJRT backends in Python: four methods make a complete client.

`Backend` is what an author writes, `BackendPlugin` is how plugrt finds and starts it.
"""

from plugrt_sdk.backend import Backend, Handle
from plugrt_sdk.client import BackendClient
from plugrt_sdk.plugin import BackendPlugin

__all__ = ["Backend", "BackendClient", "BackendPlugin", "Handle"]
