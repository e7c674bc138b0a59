"""What `nox -s jax` reads and compares."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.jax_outcomes import (
    compare,
    find_absences,
    read_messages,
    read_reasons,
    read_report,
)

REPORT = """<testsuites><testsuite>
<testcase classname="tests.pmap_test.PmapTest" name="testA" />
<testcase classname="tests.pmap_test.PmapTest" name="testB"><failure message="no" /></testcase>
<testcase classname="tests.pmap_test.PmapTest" name="testC"><skipped message="gpu" /></testcase>
<testcase classname="tests.pmap_test.PmapTest" name="testD" />
<testcase classname="tests.pmap_test.PmapTest" name="testD"><error message="late" /></testcase>
</testsuite></testsuites>"""
FAILURES = Path(__file__).parents[3] / "tools/jax_failures.toml"


def test_a_report_says_how_tests_ended(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    assert read_report(tmp_path / "report.xml") == {
        "pmap_test.PmapTest.testA": "passed",
        "pmap_test.PmapTest.testB": "failed",
        "pmap_test.PmapTest.testC": "skipped",
        "pmap_test.PmapTest.testD": "failed",
    }


def test_failures_are_known_new_or_stale() -> None:
    cpu = {"f.a": "passed", "f.b": "passed", "f.c": "passed", "f.d": "failed", "f.e": "passed"}
    other = {"f.a": "passed", "f.b": "failed", "f.c": "skipped", "f.d": "failed"}
    reasons = dict.fromkeys(("f.a", "f.b", "f.d", "g.a"), "it is so")
    found = compare(cpu, other, reasons)
    assert found.passed == ("f.a",)
    assert found.failed == ("f.b", "f.c", "f.e")
    assert found.new == ("f.c", "f.e")
    assert found.stale == ("f.a", "f.d")
    assert found.share == 0.25
    assert not found.is_as_known
    assert compare(cpu, other, dict.fromkeys(("f.b", "f.c", "f.e"), "it is so")).is_as_known


def test_each_failure_has_one_reason(tmp_path: Path) -> None:
    assert all(len(reason) > 20 for reason in read_reasons(FAILURES).values())
    twice = tmp_path / "twice.toml"
    twice.write_text('[[failures]]\nreason = "it is so"\ntests = ["f.a", "f.a"]')
    with pytest.raises(ValueError, match=r"f\.a is listed twice"):
        read_reasons(twice)


RULES = """
[[absences]]
reason = "no derivatives"
names = ['jax\\.(grad|jvp)\\b.*']
[[absences]]
reason = "private"
names = ['_\\w+']
"""
MESSAGES = {
    "f.a": "E   support.in_jax_place.NotInPlugrt: jax.grad",
    "f.b": "E   support.in_jax_place.NotInPlugrt: jax.reshard",
    "f.c": "E   AttributeError: 'Array' object has no attribute '_npy_value'",
    "f.d": "E   AttributeError: 'Array' object has no attribute 'value'",
    "f.e": "E   AssertionError: NotInPlugrt is not jax.grad",
}


def test_what_plugrt_does_not_aim_to_have_does_not_apply(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(RULES)
    found = find_absences(MESSAGES, tmp_path / "rules.toml")
    assert found == {"f.a": "no derivatives", "f.c": "private"}
    (tmp_path / "rules.toml").write_text('[[absences]]\nreason = ""\nnames = ["a"]')
    with pytest.raises(ValueError, match="have no reason"):
        find_absences(MESSAGES, tmp_path / "rules.toml")


def test_the_rules_are_read_and_leave_what_plugrt_should_have() -> None:
    names = {
        "jax.grad": True, "jax._src.api.grad": True, "jax.vmap": True, "jax.make_jaxpr": True,
        "jax.numpy.percentile": True, "jax._src.test_util.count_pjit_cpp_cache_miss": True,
        "jax.reshard": False, "jax.typeof": False, "jax.sharding.auto_axes": False,
        "jax.lax.all_gather": False, "jax.make_mesh": False,
    }  # fmt: skip
    messages = {name: f"E   support.in_jax_place.NotInPlugrt: {name}" for name in names}
    found = find_absences(messages, FAILURES.with_name("jax_absences.toml"))
    assert {name: name in found for name in names} == names


def test_messages_are_read_from_a_report(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    found = read_messages(tmp_path / "report.xml")
    assert found == {"pmap_test.PmapTest.testB": "no\n", "pmap_test.PmapTest.testD": "late\n"}
