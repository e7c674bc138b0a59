"""`create_client` and `create_topology`: the way in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from plugrt.capi import values
from plugrt.capi.client import Client
from plugrt.capi.library import Library, load_library


def create_client(
    path_or_library: str | os.PathLike[str] | Library,
    options: Mapping[str, Any],
    *,
    name: str,
    kv_store: Any = None,
) -> Client:
    """Starts a library and returns its client."""
    library = (
        path_or_library
        if isinstance(path_or_library, Library)
        else load_library(path_or_library)
    )
    library.initialize()
    array, count, _keep = values.named_values(options)
    args = library.call("Client_Create", create_options=array, num_options=count)
    return Client(library, args.client, name)
