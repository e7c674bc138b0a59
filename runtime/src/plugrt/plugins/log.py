"""`Log`: logs each step of finding, choosing and starting plugins.

Steps go to the standard logger ``plugrt.plugins`` at DEBUG, under PLUGRT_TRACE_PLUGINS=1
also to stderr. Log records have the candidate as their attribute ``row``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from plugrt.base.logger import get_logger
from plugrt.errors import escape_controls

if TYPE_CHECKING:
    from plugrt.plugins.record import Record
    from plugrt.settings.declarations import Config

logger = get_logger("plugrt.plugins")


class Log:
    """Logs steps and warnings; a warning with a key is given once."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._given: set[str] = set()

    def step(self, text: str, row: Record | None = None) -> None:
        """Logs one step, before it is done if it runs a plugin's code."""
        logger.debug("%s", text, extra={"row": row})
        if self._config.trace_plugins:
            print(f"plugrt: {escape_controls(text)}", file=sys.stderr, flush=True)

    def warn_once(self, key: str, text: str) -> None:
        """Warns in one line, once for each key."""
        if key not in self._given:
            self._given.add(key)
            logger.warning("%s", " ".join(text.split()))
