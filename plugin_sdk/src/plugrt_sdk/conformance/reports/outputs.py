"""`Outputs`: the files of a run's report."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from plugrt.base.files import write
from plugrt.errors import InvalidArgument
from plugrt_sdk.conformance.reports.badge import badge
from plugrt_sdk.conformance.reports.junit import junit
from plugrt_sdk.conformance.reports.markdown import markdown
from plugrt_sdk.conformance.reports.readme import Slot
from plugrt_sdk.conformance.reports.scorecard import scorecard
from plugrt_sdk.conformance.verdict import Verdict
from plugrt_sdk.conformance.worker import START

_FORMS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "json": lambda report: _to_json(report),
    "report": lambda report: _to_json(report),
    "junit": junit,
    "markdown": markdown,
    "html": scorecard,
    "badge": badge,
}
_STDOUT = Path("-")


@dataclass(frozen=True)
class Outputs:
    """The form of a report, which is the name of its option, to the file; ``-`` is stdout.

    ``readme`` is a file; the run replaces a part of it.
    """

    files: Mapping[str, Path]
    readme: Path | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Outputs:
        """Returns the files that a command's options name, such as ``report_file``."""
        named = {form: given.get(f"{form}_file") for form in _FORMS}
        named["json"] = _STDOUT if given["as_json"] else None
        return cls(
            {form: path for form, path in named.items() if path is not None}, given["readme_file"]
        )

    def __bool__(self) -> bool:
        """Whether a report is stored at all."""
        return bool(self.files or self.readme)

    @property
    def fill_stdout(self) -> bool:
        """Whether a report is written to stdout, and nothing else may be."""
        return _STDOUT in self.files.values()

    def file(self, form: str) -> Path | None:
        """Returns the file of a form; None if it is not requested, or is stdout."""
        path = self.files.get(form)
        return None if path == _STDOUT else path

    def require(self) -> None:
        """Raises an error for files that cannot be written, before a run of minutes."""
        at_stdout = [f"--{form}" for form, path in self.files.items() if path == _STDOUT]
        if len(at_stdout) > 1:
            raise click.BadParameter("one report can go to stdout", param_hint=at_stdout)
        for form in self.files:
            path = self.file(form)
            if path and not all(os.access(place, os.W_OK) for place in _places(path)):
                raise click.BadParameter(f"{path} cannot be written", param_hint=f"--{form}")
        if self.readme is not None:
            try:
                Slot(self.readme).require()
            except InvalidArgument as error:
                raise click.BadParameter(error.message, param_hint="--readme") from error

    def write(self, report: Mapping[str, Any]) -> Iterator[str]:
        """Writes the files; yields a line for each that failed, whose contents stay."""
        texts = {form: (path, _FORMS[form](report)) for form, path in self.files.items()}
        if self.readme is not None:
            filled = Slot(self.readme).fill(report, self.file("badge"), self.file("html"))
            texts["readme"] = self.readme, filled
        for form, (path, text) in texts.items():
            try:
                _write(path, text)
            except OSError as error:
                yield f"--{form}: {path} cannot be written: {error.strerror}"


_OF_THE_CHECK = ("title", "needs", "capability", "rests_on", "why", "reproduce", "demanded_by")
_ABSENT = Verdict.NO_HARDWARE
_KEPT = ("id", "level", "verdict", "got", "seconds")


def _to_json(report: Mapping[str, Any]) -> str:
    """Formats a report as JSON, one line for each check."""
    rest = {key: value for key, value in report.items() if key != "checks"}
    head = json.dumps(_standard(rest), indent=2, default=str, allow_nan=False)
    rows = (
        json.dumps(_standard(_shorten(row)), default=str, allow_nan=False, separators=(",", ":"))
        for row in _fold_reasons(report["checks"])
    )
    lines = ",\n    ".join(rows)
    return f'{head[:-2]},\n  "checks": [\n    {lines}\n  ]\n}}\n'


def _fold_reasons(rows: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yields rows. If checks lack a device for one reason, only the client's row states it."""
    absent = [row["got"] for row in rows if row["id"] == START and row["verdict"] == _ABSENT]
    for row in rows:
        same = row["id"] != START and row["verdict"] == _ABSENT and row["got"] in absent
        yield {**row, "got": f"as {START}"} if same else row


def _shorten(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a row; for a check that passed or was not tried, without the check's own texts."""
    if Verdict(row["verdict"]).is_bad or row.get("waiver"):
        return row
    return {
        key: value for key, value in row.items()
        if key in _KEPT or (value not in ("", None, True) and key not in _OF_THE_CHECK)
    }  # fmt: skip


def _standard(value: Any) -> Any:
    """Replaces numbers that JSON lacks, in a library's attributes, by texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _standard(item) for key, item in value.items()}
    return [_standard(item) for item in value] if isinstance(value, list | tuple) else value


def _places(path: Path) -> list[Path]:
    """Returns the path that must be writable for `_write`."""
    if path.exists():
        return [path, path.parent] if path.is_file() else [path]
    return [path.parent]


def _write(path: Path, text: str) -> None:
    if path == _STDOUT:
        click.echo(text, nl=False)
    elif path.exists() and not path.is_file():  # a pipe or a device
        path.write_text(text, "utf-8")
    else:
        write(path.resolve(), text.encode(), _mode(path))


def _mode(path: Path) -> int:
    """Returns the permissions of a file, or of a new file if it does not exist."""
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
