"""`Installation`: a plugin's installed files, and Python processes that use it by its name."""

from __future__ import annotations

import os
import subprocess
import sys
from configparser import ConfigParser
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plugrt.plugins.packages import distributions
from plugrt.plugins.packages.distributions import Distribution
from plugrt_sdk.conformance.expect import Mismatch
from plugrt_sdk.conformance.verdict import NotTried, Verdict

if TYPE_CHECKING:
    from plugrt_sdk.conformance.subject import PluginSubject


@dataclass(frozen=True, slots=True)
class Installation:
    """An installed plugin: its name in JAX_PLATFORMS, its distribution, and its module."""

    name: str
    distribution: Distribution
    module: str

    def entry_points(self, *groups: str) -> list[tuple[str, str, str]]:
        """Returns group, name and value of the distribution's entry points in these groups."""
        parser = ConfigParser(delimiters=("=",), interpolation=None)
        parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
        parser.read_string(self.distribution.read("entry_points.txt").decode())
        present = [group for group in groups if parser.has_section(group)]
        return [(group, *item) for group in present for item in parser.items(group)]

    def run(self, code: str, **environ: str) -> str:
        """Runs a Python program with these variables, and returns its output.

        Raises `Mismatch` with the end of its error output if it fails.
        """
        child = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environ},
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if child.returncode:
            last = " ".join(child.stderr.split()[-40:])
            raise Mismatch("a program that ends with exit code 0", f"{child.returncode}: {last}")
        return child.stdout.strip()


def installation_of(subject: PluginSubject) -> Installation:
    """Returns the installation of a run's plugin.

    A plugin given as an object may have one as its attribute ``installation``; the kit's mutants
    do. Raises `NotTried` if nothing is installed.
    """
    if subject.target.kind != "plugin":
        made = getattr(subject.plugin, "installation", None)
        if isinstance(made, Installation):
            return made
        raise NotTried(Verdict.NOT_RUN, "no installed plugin is tested", applies=False)
    record = subject.target.record()
    found = distributions.find(record.distribution) if record.distribution else None
    if found is None:
        why = f"the plugin is of no distribution ({record.source})"
        raise NotTried(Verdict.NOT_RUN, why, applies=False)
    return Installation(record.name, found, record.value.partition(":")[0])
