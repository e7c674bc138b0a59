"""`manifest_hash`: a hash of everything that the kit's verdicts depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache, partial
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, resolve_name
from pathlib import Path

from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.check import Check
from plugrt_sdk.conformance.module_code import describe
from plugrt_sdk.conformance.random_bits import FILE as STORED_BITS

_JUDGES = (
    "plugrt_sdk.conformance.worker", "plugrt_sdk.conformance.runner",
    "plugrt_sdk.conformance.reports.report",
)  # fmt: skip
"""The modules that run checks, give verdicts and grant levels."""
WRITTEN = Path(__file__).with_name("module_code.json")
"""Written into wheels by ``setup.py``; an editable installation parses each source."""


@cache
def manifest_hash() -> str:
    """Returns a SHA-256; runs with the same hash use the same checks and rules.

    It covers the declarations of each check (id, title, level, ``rests_on``, capability, needs);
    the code of the checks, of the runner and of the module that grants levels, with the modules of
    their packages that they import, which include limits and tolerances; and the stored numbers. It
    does not depend on comments, documentation and layout, on the kit's folder, or on the version of
    Python.
    """
    return hash_of(registry.checks().values(), STORED_BITS, kit_digests())


def hash_of(checks: Iterable[Check], stored: Path, digests: Mapping[str, str]) -> str:
    """Returns the hash of checks, of the file of stored numbers, and of digests of code."""
    stated = [_statement(check) for check in checks]
    return _sha256(json.dumps([stated, _sha256(stored.read_bytes()), digests]).encode())


def kit_digests() -> Mapping[str, str]:
    """Returns `code_digests` of the checks, and of the modules that run and judge them."""
    homes = {_module_of(check) for check in registry.checks().values()}
    return code_digests([*homes, *_JUDGES])


def code_digests(modules: Iterable[str], written: Path = WRITTEN) -> Mapping[str, str]:
    """Returns the SHA-256 of these modules' code and of all that they import, by name.

    Skips other top-level packages, which have their own versions; reports state these. ``written``
    is the wheel's file of digests.
    """
    waiting = list(modules)
    packages = {name.partition(".")[0] for name in waiting}
    found: dict[str, str] = {}
    known: set[str] = set()
    while waiting:
        if (name := waiting.pop()) in known or name.partition(".")[0] not in packages:
            continue
        known.add(name)
        waiting.append(name.rpartition(".")[0])  # the package is imported first
        spec = _find(name)
        if spec is None or not (spec.origin and Path(spec.origin).is_file()):
            continue  # an attribute of a module, or a folder
        # Not from the loader: pytest's loader, which rewrites assertions, has no source.
        content = Path(spec.origin).read_bytes()
        found[name] = _sha256(content)
        if spec.origin.endswith(".py"):
            found[name], imports = read_written(written).get(found[name]) or describe(content)
            waiting += (resolve_name(other, spec.parent or "") for other in imports)
    return dict(sorted(found.items()))


@cache
def read_written(file: Path) -> Mapping[str, tuple[str, Sequence[str]]]:
    """Returns the result of `describe` by the SHA-256 of the source, as written in the wheel."""
    table: Mapping[str, tuple[str, Sequence[str]]] = (
        json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    )
    return table


def _statement(check: Check) -> Mapping[str, object]:
    return {f.name: getattr(check, f.name) for f in fields(check) if f.name != "run"}


def _module_of(check: Check) -> str:
    body = check.run.func if isinstance(check.run, partial) else check.run
    return body.__module__


def _find(name: str) -> ModuleSpec | None:
    try:
        return find_spec(name)
    except ModuleNotFoundError:  # not a package
        return None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
