"""Sound devices that can do little are not accused of lacking the rest."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from support import kit, limited_devices
from support.apart import runs_apart

pytestmark = runs_apart("sdk")


@pytest.mark.parametrize(
    ("name", "argument", "verdicts"),
    [
        ("one_megabyte", (), {
            "buffers.put_get.dtypes.float32": ("PASS", ""),
            "buffers.put_get.large": ("NOT-RUN", "a device with 8427544 bytes or more runs it"),
            "buffers.put_get.lengths.float32": ("NOT-RUN", "524292 bytes, with as much for resu"),
            "buffers.put_get.huge": ("NOT-RUN", "do not fit into the 1048576 bytes that numpy:0"),
            "sizes.large.add.float32": ("NOT-RUN", "memory_stats: bytes_limit"),
            "recovery.put": ("PASS", ""),
        }),
        # The arrays fit, but the device refuses them, since it has lost memory.
        ("one_megabyte", (900_000,), {
            "buffers.put_get.lengths.float32": ("FAIL", "RESOURCE_EXHAUSTED"),
        }),
        ("float32_only", (), {
            "buffers.put_get.dtypes.float32": ("PASS", ""),
            "buffers.type": ("REFUSED", "arrays of int32"),
            "programs.constant": ("REFUSED", "the device has float32 alone"),
            "topologies.compile": ("REFUSED", "the device has float32 alone"),
        }),
        ("static_shapes", (), {
            "operations.set_dimension_size.float32": ("REFUSED", "dimensions that are not known"),
        }),
        ("compiles_only", (), {
            "topologies.compile": ("PASS", ""),
            "programs.add": ("FAIL", "it was refused: Unimplemented"),
            "programs.executable": ("PASS", ""),
            "programs.several_results": ("NOT-RUN", "programs.add: no program can be launched"),
            "ownership.deleted_argument": ("NOT-RUN", "programs.add: no program can be launched"),
        }),
        ("library_compiles_only", (), {
            "programs.several_results": ("NOT-RUN", "programs.add: no program can be launched"),
        }),
        ("library_compiles_only", (), {
            "table_buffers.device": ("PASS", ""),
            "table_buffers.results": ("NOT-RUN", "programs.add: no program can be launched"),
        }),
    ],
)  # fmt: skip
def test_verdicts_on_devices_that_lack_a_feature(
    name: str, argument: tuple[int, ...], verdicts: Mapping[str, tuple[str, str]]
) -> None:
    found = kit.judged(lambda: getattr(limited_devices, name)(*argument), *verdicts)
    for check, result, (verdict, words) in zip(verdicts, found, verdicts.values(), strict=True):
        assert result.verdict == verdict, (check, result)
        assert words in result.got, (check, result)
        fits = verdict != "NOT-RUN" or "launched" in words
        assert result.applies is fits, "what does not fit is part of no level"


def test_a_device_that_launches_nothing_is_one_finding() -> None:
    asked = ["client.platform", "programs.several_results"]
    found = kit.run("object", "support.limited_devices:compiles_only", asked)
    assert {key: str(result.verdict) for key, result in found.results.items()} == {
        "programs.add": "FAIL", "client.platform": "PASS", "programs.several_results": "NOT-RUN",
    }  # fmt: skip


def test_checks_of_many_launches_have_more_time_where_these_are_slow() -> None:
    name = "sizes.borders.add.float32"  # 42 launches, of 25 s
    found = kit.run("object", "support.limited_devices:slow", [name], 15.0, argument="0.6")
    assert found.verdicts == ["PASS"], found.results


def test_a_client_that_does_not_list_its_devices_is_one_finding() -> None:
    found = kit.run("object", "support.limited_devices:no_devices", ["programs.add"])
    assert {key: str(result.verdict) for key, result in found.results.items()} == {
        "client.create": "FAIL", "programs.add": "NOT-RUN",
    }  # fmt: skip
