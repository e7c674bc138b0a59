"""`Waivers`: known failures that a run accepts, each with a reason, an address and a last day."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from plugrt.errors import ConfigError, InvalidArgument
from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.verdict import Result, Verdict

FILE = "conformance-waivers.toml"
"""The default file, in the current folder."""
KINDS = ("plugin-bug", "vendor-bug", "kit-bug", "planned")
TOLERANCE_CAPS: Mapping[str, int] = {
    "bfloat16": 4, "float16": 8, "float32": 64, "float64": 64, "complex64": 64,
}  # fmt: skip
"""The units in the last place that a plugin may allow, by dtype."""
_FIELDS = ("id", "kind", "reason", "url", "until")


@dataclass(frozen=True, slots=True)
class Waiver:
    """An accepted failure of one check. ``until`` is its last valid day."""

    id: str
    kind: str
    reason: str
    url: str
    until: datetime.date

    def as_dict(self) -> dict[str, str]:
        """Returns it as a JSON object."""
        return {name: str(value) for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Waivers:
    """The waivers of a file. ``tolerances`` are in units in the last place, by dtype."""

    path: str = ""
    waivers: Mapping[str, Waiver] = field(default_factory=dict)
    tolerances: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, today: datetime.date) -> Waivers:
        """Reads a file. Raises `ConfigError` for invalid contents, including expired waivers."""
        try:
            content = tomllib.loads(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"{path} cannot be read as a file of waivers: {error}") from error
        if unknown := set(content) - {"waiver", "tolerances"}:
            raise ConfigError(f"{path}: there is no table {sorted(unknown)[0]!r}")
        waivers: dict[str, Waiver] = {}
        rows, tolerances = content.get("waiver", []), content.get("tolerances", {})
        if not isinstance(rows, list):
            raise ConfigError(f"{path}: waivers are tables [[waiver]]; found {rows!r}")
        for row in rows:
            waiver = _read_waiver(row, path, today)
            if waiver.id in waivers:
                raise ConfigError(f"{path}: {waiver.id} is waived twice")
            waivers[waiver.id] = waiver
        return cls(str(path), waivers, _read_tolerances(tolerances, path))

    def apply(self, name: str, result: Result) -> Result:
        """Returns the result with the verdict WAIVED if it is bad and the check is waived."""
        waiver = self.waivers.get(name)
        if waiver is None or not result.verdict.is_bad:
            return result
        changed = {"verdict": Verdict.WAIVED, "was": str(result.verdict)}
        return Result(**{**result.as_dict(), **changed})

    def stale(self, results: Mapping[str, Result]) -> list[Waiver]:
        """Returns the waivers of checks that now pass."""
        return [
            waiver
            for waiver in self.waivers.values()
            if waiver.id in results and results[waiver.id].verdict.is_good
        ]


def _read_waiver(row: Any, path: Path, today: datetime.date) -> Waiver:
    if not isinstance(row, dict) or set(row) != set(_FIELDS):
        given = sorted(row) if isinstance(row, dict) else row
        raise ConfigError(f"{path}: a waiver has the fields {', '.join(_FIELDS)}; found {given}")
    name, until = row["id"], row["until"]
    if not isinstance(until, datetime.date) or isinstance(until, datetime.datetime):
        raise ConfigError(f"{path}: {name}: until is a date, as 2027-01-31; found {until!r}")
    for key in ("id", "kind", "reason", "url"):
        if not isinstance(row[key], str) or not row[key].strip():
            raise ConfigError(f"{path}: {name}: {key} is a text that is not empty")
    try:
        registry.find(name)
    except InvalidArgument as error:
        raise ConfigError(f"{path}: {error.message}") from error
    if row["kind"] not in KINDS:
        raise ConfigError(f"{path}: {name}: kind is one of {', '.join(KINDS)}")
    if not row["url"].startswith(("https://", "http://")):
        raise ConfigError(
            f"{path}: {name}: url is where the fault is tracked; found {row['url']!r}"
        )
    if until < today:
        raise ConfigError(f"{path}: the waiver of {name} ended on {until}; mend it or renew it")
    return Waiver(**row)


def _read_tolerances(found: Any, path: Path) -> dict[str, int]:
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: tolerances are a table [tolerances]; found {found!r}")
    for dtype, ulps in found.items():
        cap = TOLERANCE_CAPS.get(dtype)
        if cap is None:
            raise ConfigError(f"{path}: {dtype!r} is none of {', '.join(TOLERANCE_CAPS)}")
        if not isinstance(ulps, int) or isinstance(ulps, bool) or not 0 <= ulps <= cap:
            raise ConfigError(f"{path}: the tolerance of {dtype} is 0 to {cap} ulp; found {ulps!r}")
    return dict(found)
