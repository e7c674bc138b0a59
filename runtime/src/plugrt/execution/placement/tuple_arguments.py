"""`takes_one_tuple`: programs of many parameters take them as one tuple, where a backend asks."""

from __future__ import annotations

from plugrt.interface import Client


def takes_one_tuple(client: Client, count: int) -> bool:
    """Whether a program of ``count`` parameters is compiled to take one tuple, as in JAX.

    A backend says so by the capability ``tuple_arguments_above``, or by an attribute of that name,
    an integer from 0 on. Calls pass their arguments one by one all the same.
    """
    bound = client.capabilities.tuple_arguments_above
    if bound is None:
        stated = client.attributes.get("tuple_arguments_above")
        bound = stated if type(stated) is int and stated >= 0 else None
    return bound is not None and count > bound
