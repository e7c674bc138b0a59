"""`Verdict` and `Result`: the outcome of a check in a run."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass, fields
from typing import Any

WARNED = "warning"
"""The start of the text of a passed check with a warning."""


class Verdict(enum.StrEnum):
    """All verdicts."""

    PASS = "PASS"
    """The statement is true."""
    REFUSED = "REFUSED"
    """An undeclared feature was refused properly, and the client still works."""
    FAIL = "FAIL"
    """The statement is false."""
    CRASH = "CRASH"
    """The process ended while the check was open, in any way."""
    TIMEOUT = "TIMEOUT"
    """The check exceeded its limit, and its process was ended."""
    WAIVED = "WAIVED"
    """FAIL, CRASH or TIMEOUT, with a valid waiver for the check."""
    NO_HARDWARE = "NO-HARDWARE"
    """This machine has no such device."""
    NOT_RUN = "NOT-RUN"
    """It was not selected, or there was nothing to run it on. It does not count."""

    @property
    def is_bad(self) -> bool:
        """Whether it is the plugin's fault."""
        return self in (Verdict.FAIL, Verdict.CRASH, Verdict.TIMEOUT)

    @property
    def is_good(self) -> bool:
        """Whether a level may be granted despite it."""
        return self in (Verdict.PASS, Verdict.REFUSED)


class NotTried(Exception):
    """A check cannot be tried here, which is neither good nor bad: see `Result.applies`."""

    def __init__(self, verdict: Verdict, why: str, *, applies: bool = True) -> None:
        super().__init__(why)
        self.verdict, self.why, self.applies = verdict, why, applies


@dataclass(frozen=True, slots=True)
class Result:
    """A run's verdict on one check.

    ``expected`` and ``got`` are empty for a good verdict, except for the reason of a refusal, and
    `WARNED`. ``where`` is the source line of the finding, ``was`` the verdict under a waiver.
    ``applies`` is False if the check has no object to test, such as a check of PJRT libraries for
    another plugin: then it counts for no level.
    """

    verdict: Verdict
    expected: str = ""
    got: str = ""
    where: str = ""
    seconds: float = 0.0
    was: str = ""
    applies: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Returns it as a JSON object."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Result:
        """Parses the result of `as_dict`; ignores other keys."""
        known = {f.name: found[f.name] for f in fields(cls) if f.name in found}
        return cls(**{**known, "verdict": Verdict(found["verdict"])})
