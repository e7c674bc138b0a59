"""The marked tests behave on each platform as ``docs/behaviour.md`` states.

``nox -s long`` runs all of them on all platforms. `nox -s xla_cpu` omits those that run elsewhere
in CI: on cpu they are tests of `make test`, and on xla_cpu those of an area are compared with the
record in `test_suite_on_xla_cpu.py`. On numpy it runs some of the files.
"""

from __future__ import annotations

import pytest

from support.apart import runs_apart
from support.areas import runs_in_an_area
from support.effort import WHOLE, some_of
from support.markdown import load_script
from support.xla_cpu import needs_library

generate = load_script("docs/generate/behaviour.py")
PLATFORMS = [name for name in generate.PLATFORMS if WHOLE or name != "cpu"]
SAMPLE = 12
"""The number of files that run on numpy."""


@needs_library
@runs_apart("xla_cpu")
@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_results_are_the_recorded_ones(platform: str) -> None:
    """Without those that have a session of their own, which CI runs as well."""
    results = generate.read_results()
    files = sorted({file for test in results if not generate.target_of(file := file_of(test))})
    if not WHOLE and platform == "xla_cpu":
        files = [file for file in files if not runs_in_an_area(file)]
    elif platform == "numpy":
        files = some_of(files, SAMPLE)
    recorded = {test: of[platform] for test, of in results.items() if file_of(test) in files}
    assert generate.run(platform, files) == recorded


def file_of(test: str) -> str:
    return test.split("::")[0]
