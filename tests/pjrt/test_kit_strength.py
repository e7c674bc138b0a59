"""`tools/kit_strength`: a seed gives one defect, which a C program without plugrt shows."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tools.kit_strength.grammar import compose, library_source
from tools.kit_strength.library import Bench, find_library

from support.clib import needs_cc
from support.xla_cpu import header_path, needs_library

SEED = 900_046  # in no measured set
DIGEST = "8b98235c9985fdbd"


def test_a_seed_gives_the_same_library_for_good() -> None:
    defect = compose(SEED)
    text = "\n".join([defect.kind, defect.sentence, defect.source, *defect.script])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == DIGEST
    assert compose(SEED) == defect
    assert len({compose(SEED + i).source for i in range(30)}) > 25


@needs_cc
@needs_library
def test_its_witness_shows_the_defect_and_none_without_it(tmp_path: Path) -> None:
    library, header = find_library(), header_path()
    if library is None or header is None or not (library.parent / "include").exists():
        pytest.skip("the library has no header beside it")
    bench = Bench(library, tmp_path)
    defect = compose(SEED)
    right = bench.witness(bench.without(), defect.script)
    assert right[-1] == "end"
    assert bench.shown(defect)
    assert bench.witness(bench.shim(library_source(""), "again"), defect.script) == right
