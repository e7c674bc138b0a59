"""`begin_profiles` and `collect_profile`: what the backends' own profilers record in a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plugrt.errors import FailedPrecondition, PjrtError, PlugrtError, Unimplemented
from plugrt.interface import Client
from plugrt.plugins.log import logger
from plugrt.plugins.selection.backends import backends
from plugrt.profiler.options import ProfileOptions

Collect = Callable[[], bytes]
"""Ends the recording of one backend and returns its ``XSpace``."""


def _clients() -> list[Client]:
    return list({id(client): client for client in backends().values()}.values())


def begin_profiles(options: ProfileOptions | None) -> list[Collect]:
    """Begins the recordings of all backends; where one may not begin, those before it are ended."""
    begun: list[Collect] = []
    try:
        for client in _clients():
            if collect := _begin_profile(client, options):
                begun.append(collect)
    except BaseException:
        for collect in begun:
            collect_profile(collect)
        raise
    return begun


def _begin_profile(client: Client, options: ProfileOptions | None) -> Collect | None:
    """Begins the recording of a backend that has a profiler.

    One that another recording holds is an error; one that fails a warning, unless the options say
    that it is an error.
    """
    begin: Callable[[dict[str, Any]], Collect] | None = getattr(client, "begin_profile", None)
    if begin is None:
        return None
    try:
        return begin(options.of_backends() if options else {})
    except Unimplemented:  # most libraries have none
        return None
    except FailedPrecondition as error:
        raise FailedPrecondition(
            f"no trace of {client.backend_name} can begin: {error.args[0]}"
        ) from error
    except PjrtError as error:
        if options and options.raise_error_on_start_failure:
            raise
        logger.warning("the profiler of %s does not start: %s", client.backend_name, error)
        return None


def collect_profile(collect: Collect) -> bytes:
    """Ends one recording and returns its ``XSpace``; empty, with a warning, where it fails."""
    try:
        return collect()
    except PlugrtError as error:
        logger.warning("a backend's part of the trace is lost: %s", error)
        return b""
