"""The keys of entries in the compilation cache."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from plugrt.execution.compilation import cache_key
from plugrt.execution.compilation.cache_key import collect_facts
from plugrt.interface import CompileOptions, DeviceAssignment, Program
from support.fake_client import FakeClient


def test_two_programs_or_options_never_share_a_name() -> None:
    chance = random.Random(5)
    overrides = [("a", True), ("a", 1), ("b", "1"), ("b", 1.0)]

    def some_options() -> CompileOptions:
        replicas = chance.choice([1, 2])
        ids = tuple((i,) for i in chance.sample(range(4), replicas))
        return CompileOptions(
            num_replicas=replicas,
            device_assignment=chance.choice([None, DeviceAssignment(ids)]),
            use_spmd_partitioning=chance.random() < 0.5,
            use_shardy_partitioner=chance.random() < 0.5,
            parameter_is_tupled=chance.random() < 0.5,
            env_overrides=dict(sorted(chance.sample(overrides, chance.randrange(3)), key=repr)),
            encoded=chance.choice([None, b"", b"x"]),
        )

    seen: dict[str, str] = {}
    for _ in range(600):
        program = Program(chance.choice([b"a", b"b", b"ab"]), chance.choice(["hlo", "hlo_x"]), "m")
        options = some_options()
        made = collect_facts(FakeClient(), program, options)
        assert made is not None
        what = f"{program} {options}"
        assert seen.setdefault(made.digest(), what) == what
    assert len(seen) > 300


@pytest.mark.parametrize("name", ["platform", "platform_version", "compiler_identity"])
def test_another_backend_or_build_has_other_entries(name: str) -> None:
    class Other(FakeClient):
        pass

    setattr(Other, name, property(lambda self: "other"))
    options, program = CompileOptions(), Program(b"x", "hlo")
    made = collect_facts(Other(), program, options)
    assert made is not None
    assert made != collect_facts(FakeClient(), program, options)


def test_a_backend_that_cannot_be_told_apart_keeps_nothing() -> None:
    class Nameless(FakeClient):
        compiler_identity = None

    assert collect_facts(Nameless(), Program(b"x", "hlo"), CompileOptions()) is None


def test_another_processor_has_other_entries(tmp_path: Path) -> None:
    words = set()
    for i, text in enumerate(["flags: sse avx", "flags: sse avx avx512f", "Features : neon sve"]):
        (tmp_path / f"{i}").write_text(f"processor: 0\n{text}\n")
        words.add(cache_key.cpu_features(tmp_path / f"{i}"))
    (tmp_path / "again").write_text("model name: another\nflags: avx sse\n")
    assert cache_key.cpu_features(tmp_path / "again") in words
    assert len(words) == 3
    assert cache_key.cpu_features(tmp_path / "absent") not in words
