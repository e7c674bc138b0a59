"""`export`: writes the checks that are data, and the C runner that runs them, into a folder.

``docs/conformance.md`` describes the files.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from plugrt.capi.abi.declarations import API_MINOR, OLDEST_MINOR
from plugrt.capi.abi.element_types import ELEMENT_TYPES, supported_dtypes
from plugrt.capi.abi.proto_wire import compile_options
from plugrt.capi.programs.compile_defaults import CompileDefaults
from plugrt.interface import CompileOptions, Program
from plugrt_sdk.conformance import provenance, recording
from plugrt_sdk.conformance.check import Check, Needs
from plugrt_sdk.testing.programs import ADD

FORMAT = 1
CHECKS, DATA = "checks.txt", "data.bin"
_INSTALLED = Path(__file__).with_name("c_runner")
_SOURCES = Path(__file__).parents[3] / "runner"
TABLE_CHECKS = frozenset(
    f"abi.{name}"
    for name in (
        "version", "size", "slots", "slots.code", "extensions", "extensions.types", "initialize",
        "attributes", "attributes.stable", "args.larger", "destroy_null", "errors",
        "errors.several", "errors.message", "errors.payloads",
    )
)  # fmt: skip
"""The ids of function-table checks that the runner implements in C."""


@dataclass
class _Data:
    """The data file, which stores equal contents once."""

    content: bytearray = field(default_factory=bytearray)
    _places: dict[bytes, int] = field(default_factory=dict)

    def place(self, blob: bytes) -> str:
        """Adds bytes to the file, and returns their place as ``@offset+length``."""
        key = hashlib.sha256(blob).digest()
        if key not in self._places:
            self.content += bytes(-len(self.content) % 16)
            self._places[key] = len(self.content)
            self.content += blob
        return f"@{self._places[key]}+{len(blob)}"

    def line(self, step: recording.Step) -> str:
        """Formats a step as a line."""
        return " ".join(
            self.place(token.content) if isinstance(token, recording.Blob) else str(token)
            for token in step
        )


@dataclass(frozen=True)
class Exported:
    """The number of exported checks, and the reason why each other check is not exported."""

    data: int
    table: int
    code: dict[str, str]


def export(
    folder: Path, checks: Sequence[Check], seed: int, tell: Callable[[Check], None] = lambda _: None
) -> Exported:
    """Writes the files; calls ``tell`` with each check before it is recorded."""
    data, lines, code, count, table = _Data(), [], {}, 0, 0
    lines += _head(data, seed)
    for check in checks:
        tell(check)
        if check.id in TABLE_CHECKS:
            table += 1
            lines += [*_state(check, "table"), "end"]
            continue
        try:
            variants = recording.record(check, seed)
            if _size(variants[0]) > recording.MOST_BYTES:
                raise recording.NotDataError(
                    f"it has more than {recording.MOST_BYTES >> 20} MiB of data"
                )
        except recording.NotDataError as error:
            code[check.id] = str(error)
            lines += [*_state(check, f"code {error}"), "end"]
            continue
        count += 1
        kind = "pair" if check.needs is Needs.TWO_DEVICES else "data"
        lines += _state(check, kind)
        for variant in variants:
            verdicts = f"{variant.unimplemented} {variant.other}"
            lines.append(f"on {variant.devices} {verdicts}{' exactly' * variant.exact}")
            lines += [data.line(step) for step in variant.steps]
        lines.append("end")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CHECKS).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / DATA).write_bytes(data.content)
    for source in sorted((_INSTALLED if _INSTALLED.is_dir() else _SOURCES).glob("*.[ch]")):
        shutil.copy(source, folder)
    return Exported(count, table, code)


def _head(data: _Data, seed: int) -> list[str]:
    kit = provenance.describe_kit_for_storage()
    lines = [
        f"plugrt-checks {FORMAT}",
        f"kit {kit['distribution']} {kit['version']} {kit['checks']} {kit['manifest_sha256']}",
        f"seed {seed}",
    ]
    for minor in range(OLDEST_MINOR + 1, API_MINOR + 1):
        added = supported_dtypes(minor) - supported_dtypes(minor - 1)
        lines += [f"since {ELEMENT_TYPES[np.dtype(name)]} {minor}" for name in sorted(added)]
    # plugrt passes compiler options to clients of this platform only.
    options = CompileDefaults("cpu").compile(CompileOptions(), lambda found: found)
    more = compile_options(options).removeprefix(compile_options(CompileOptions()))
    lines.append(f"option cpu {data.place(more)} {','.join(options.env_overrides)}")
    program = recording.portable(Program(ADD.encode())).code
    replicas = compile_options(CompileOptions(num_replicas=2))
    lines.append(f"twin {data.place(program)} {data.place(replicas)}")
    return lines


def _state(check: Check, kind: str) -> list[str]:
    """Formats the attributes of a check as lines."""
    return [
        f"check {check.id}", f"kind {kind}", f"level {int(check.level)}", f"needs {check.needs}",
        f"title {check.title}", f"rests_on {check.rests_on}", f"why {check.why}",
        f"capability {check.capability}", f"by {check.demand}",
    ]  # fmt: skip


def _size(variant: recording.Recording) -> int:
    blobs = {t.content for step in variant.steps for t in step if isinstance(t, recording.Blob)}
    return sum(map(len, blobs))
