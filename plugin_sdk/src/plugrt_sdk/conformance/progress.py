"""`Progress`: shows the number of finished checks in one line on stderr."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field

import click

from plugrt_sdk.conformance.check import Check
from plugrt_sdk.conformance.verdict import Result

_INTERVAL = 0.1


@dataclass
class Progress:
    """Counts results. Rewrites its line on a terminal; writes nothing elsewhere."""

    total: int
    width: int
    done: int = 0
    bad: int = 0
    _last: float = field(default=0.0, repr=False)

    def __call__(self, check: Check, result: Result) -> None:
        """Counts one result and shows the line."""
        self.done += 1
        self.bad += result.verdict.is_bad
        now = time.monotonic()
        if now - self._last >= _INTERVAL or self.done == self.total:
            self._last = now
            self._show(check.id)

    def _show(self, name: str) -> None:
        if not sys.stderr.isatty():
            return
        text = f"{self.done}/{self.total}, {self.bad} bad: {name}"[: self.width - 1]
        click.echo(f"\r\x1b[K{'' if self.done == self.total else text}", nl=False, err=True)
