"""Checks the subjects of commits: ``python tools/commit_subjects.py origin/main..HEAD``.

A subject has at most 72 characters and two words or more, begins with a capital letter and a verb
in the imperative ("Add", not "Added" or "Adds"), and ends without a full stop. Merges do not count.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable

LONGEST = 72
_NO_IMPERATIVE = re.compile(r"\w+(?:ed|ing|[^su]s)")
_EXCEPTIONS = {"Bring", "Embed", "Exceed", "Feed", "Need", "Seed", "Speed"}


def find_mistakes(subjects: Iterable[str]) -> list[str]:
    """Returns a line for each subject that breaks a rule."""
    found = []
    for subject in subjects:
        if len(subject) > LONGEST:
            found.append(f"{len(subject)} characters, {LONGEST} are allowed: {subject}")
        first, _, rest = subject.partition(" ")
        is_verb = first in _EXCEPTIONS or not _NO_IMPERATIVE.fullmatch(first)
        if not rest or not first[:1].isupper() or not is_verb or rest.endswith("."):
            found.append(f"not an imperative sentence without a full stop: {subject}")
    return found


def main() -> None:
    """Prints the mistakes in the named range, and exits with 1 if there are any."""
    command = ["git", "log", "--no-merges", "--format=%s", sys.argv[1]]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    if mistakes := find_mistakes(done.stdout.splitlines()):
        sys.exit("\n".join(mistakes))


if __name__ == "__main__":
    main()
