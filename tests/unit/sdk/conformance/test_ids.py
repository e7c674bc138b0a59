"""The ids of checks are permanent: `docs/data/check_ids.txt` has all ids ever used."""

from __future__ import annotations

import re

import pytest

from plugrt.errors import InvalidArgument
from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.check import Demand
from plugrt_sdk.conformance.checks import CHAPTERS
from support.markdown import load_script

generate = load_script("docs/generate/checks.py")
EVER = generate.IDS.read_text(encoding="utf-8").split()
NOW = [check.id for chapter in CHAPTERS for check in chapter]
USED = "buffers.put_get.one"


def test_no_id_goes_without_a_word() -> None:
    gone = set(EVER) - set(NOW) - set(registry.RETIRED)
    assert not gone, "a check that is gone needs an entry in registry.RETIRED, which says why"
    assert set(registry.RETIRED) <= set(EVER)


def test_each_id_is_on_the_list_once() -> None:
    assert not set(NOW) - set(EVER), "make docs"
    assert sorted(set(EVER)) == EVER


def test_making_the_list_anew_keeps_what_is_gone() -> None:
    assert generate.ids(CHAPTERS[1:]).split() == EVER


def test_a_retired_id_says_what_became_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.RETIRED, "old.check", "since 0.2.0: new.check says as much")
    with pytest.raises(InvalidArgument, match=r"no check old\.check any more, since 0\.2\.0: new"):
        registry.select(["old.check"])


def test_a_retired_id_is_no_other_check_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.RETIRED, USED, "since 0.2.0: it was wrong")
    registry.checks.cache_clear()
    try:
        with pytest.raises(ValueError, match="which was another's"):
            registry.checks()
    finally:
        registry.checks.cache_clear()


def test_each_check_states_the_text_that_demands_it() -> None:
    of_spec = re.compile(r"PJRT_|pjrt_c_api\.h|StableHLO")
    for check in (check for chapter in CHAPTERS for check in chapter):
        assert check.demand is not Demand.SPEC or of_spec.search(check.rests_on), check.id
        advice = re.match(r"plugrt\.(interface|plugins)\.\w+\.", check.rests_on)
        assert not advice or check.demand is not Demand.SPEC, check.id
