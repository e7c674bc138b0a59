"""`log_step`: logs backend starts and program launches, for runs of several processes.

Enabled by ``config.distributed_debug``, as in JAX. If a run hangs or fails, the logs of its
processes show which process did something else, or in another order.
"""

from __future__ import annotations

from collections.abc import Mapping

from plugrt.base.logger import get_logger

logger = get_logger("plugrt.distributed_debug")


def log_step(heading: str, facts: Mapping[str, object]) -> None:
    """Logs a warning: a heading, and a line for each fact. Callers check that it is enabled."""
    logger.warning(
        "%s", "\n  ".join([heading, *(f"{what}: {fact}" for what, fact in facts.items())])
    )
