"""`takes_one_tuple`: programs of many parameters take them as one tuple, where a backend asks."""

from __future__ import annotations

from plugrt.interface import Client
from plugrt.plugins.vendors import TUPLE_ARGUMENTS_ABOVE


def takes_one_tuple(client: Client, count: int) -> bool:
    """Whether a program of ``count`` parameters is compiled to take one tuple, as in JAX.

    A backend says so by the integer attribute ``tuple_arguments_above``; TPUs' libraries, which
    say nothing, want it above 2000. Calls pass their arguments one by one all the same.
    """
    stated = client.attributes.get("tuple_arguments_above")
    bound = stated if isinstance(stated, int) else TUPLE_ARGUMENTS_ABOVE.get(client.platform)
    return bound is not None and count > bound
