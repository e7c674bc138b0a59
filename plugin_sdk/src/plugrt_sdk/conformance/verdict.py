"""`Verdict` and `Result`: the outcome of a check in a run."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass, fields
from typing import Any

WARNED = "warning"
"""The begin of a result's words on a check that holds, with a remark that is no fault."""


class Verdict(enum.StrEnum):
    """The verdicts; there are no others."""

    PASS = "PASS"
    """The statement held."""
    REFUSED = "REFUSED"
    """A feature that is not declared was refused cleanly, and the client works on."""
    FAIL = "FAIL"
    """The statement did not hold."""
    CRASH = "CRASH"
    """The process ended while the check was open, however it ended."""
    TIMEOUT = "TIMEOUT"
    """The check had not ended within its time, and its process was ended."""
    WAIVED = "WAIVED"
    """One of the three above, and a valid waiver names the check."""
    NO_HARDWARE = "NO-HARDWARE"
    """There is no device on this machine."""
    NOT_RUN = "NOT-RUN"
    """It was not selected, or there was nothing to run it on. It counts as nothing."""

    @property
    def is_bad(self) -> bool:
        """Whether it is the plugin's fault."""
        return self in (Verdict.FAIL, Verdict.CRASH, Verdict.TIMEOUT)

    @property
    def is_good(self) -> bool:
        """Whether a level may be granted over it."""
        return self in (Verdict.PASS, Verdict.REFUSED)


class NotTried(Exception):
    """A check cannot be tried here, which is neither good nor bad: see `Result.applies`."""

    def __init__(self, verdict: Verdict, why: str, *, applies: bool = True) -> None:
        super().__init__(why)
        self.verdict, self.why, self.applies = verdict, why, applies


@dataclass(frozen=True, slots=True)
class Result:
    """A run's verdict on one check. ``expected`` and ``got`` are empty for a good verdict, but for
    the reason of a refusal, and `WARNED`.

    ``where`` is the source line that found it, ``was`` the verdict beneath a waiver. ``applies`` is
    false of a check without an object to try, such as one of PJRT libraries where the plugin is
    none: then it counts in no level.
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
        """Returns what `as_dict` gave; other keys are ignored."""
        known = {f.name: found[f.name] for f in fields(cls) if f.name in found}
        return cls(**{**known, "verdict": Verdict(found["verdict"])})
