"""The transfer guard: which transfers are logged or refused (``plugrt.transfer_guard``)."""

from __future__ import annotations

from typing import Literal

from plugrt.base.logger import get_logger
from plugrt.errors import InvalidArgument
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.frames.traceback_filter import describe_call_site
from plugrt.settings.declarations import config

logger = get_logger("plugrt.transfer_guard")
Direction = Literal["host_to_device", "device_to_device", "device_to_host"]
_CURES = {
    "host_to_device": "put it there before, with plugrt.device_put",
    "device_to_device": "move it before, with plugrt.device_put",
    "device_to_host": "read it with plugrt.device_get",
}


def guard_level(direction: Direction) -> str:
    """Returns the level of a direction in this thread, such as ``allow``."""
    of_direction: str | None = getattr(config, f"transfer_guard_{direction}")
    return of_direction or config.transfer_guard or "allow"


def is_transfer(here: Sharding, there: Sharding) -> bool:
    """Whether moving an array to another sharding changes its devices or memory kind.

    As in JAX, an exchange of parts among the same devices is no transfer.
    """
    return here.device_set != there.device_set or here.memory_kind != there.memory_kind


def check_transfer(direction: Direction, what: str, *, explicit: bool) -> None:
    """Logs a transfer, or refuses it with `InvalidArgument`, according to the settings.

    ``what`` describes the data and the destination. Transfers by `device_put` and `device_get` are
    ``explicit``, and so are transfers of numbers: a user who writes ``x + 1`` or ``x[3]`` wants
    them.
    """
    level = guard_level(direction)
    if level == "allow" or (explicit and not level.endswith("_explicit")):
        return
    words = direction.replace("_", "-")
    if level.startswith("log"):
        logger.warning("%s transfer: %s%s", words, what, describe_call_site())
        return
    name = f"transfer_guard_{direction}"
    if getattr(config, name) is None:
        name = "transfer_guard"
    cure = f"allow it (plugrt.{name}('allow'))" if explicit else f"{_CURES[direction]}, or allow it"
    raise InvalidArgument(
        f"Disallowed {words} transfer: {what}{describe_call_site()}; {name} is {level!r}: {cure}"
    )
