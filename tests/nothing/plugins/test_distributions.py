"""`plugrt.plugins.packages.distributions`: the same answers as importlib_metadata, without
importing it."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import importlib_metadata
import pytest

from plugrt.plugins.packages import distributions
from support.distributions import install, run_python

WHEEL = "Metadata-Version: 2.1\nName: chip\nVersion: {}\n"


def test_installed_distributions_as_importlib_metadata_has_them() -> None:
    for found in distributions.installed():
        theirs = importlib_metadata.distribution(found.name)
        assert found.version == theirs.version, found
        for file in found.files()[:50]:
            assert file.is_absolute()


def test_files_are_those_of_importlib_metadata() -> None:
    found = distributions.find("pytest")
    assert found is not None
    theirs = importlib_metadata.distribution("pytest").files
    assert theirs
    assert found.files() == sorted(Path(str(file.locate())) for file in theirs)


def test_files_of_some_endings_are_those_of_all_that_have_one() -> None:
    endings = (".so", ".dylib", ".dll")
    some = [
        (found.files(endings), [file for file in found.files() if str(file).endswith(endings)])
        for found in distributions.installed()
    ]
    assert all(chosen == wanted for chosen, wanted in some)
    assert any(wanted for _, wanted in some)


@pytest.mark.parametrize("asked", ["my-chip", "my_chip", "My.Chip", "MY--chip"])
def test_names_compare_as_installers_compare_them(tmp_path: Path, asked: str) -> None:
    install(tmp_path, "my-chip", {}, version="1.2.3+local.4")
    found = distributions.find(asked, [str(tmp_path)])
    assert found is not None
    assert (found.name, found.version) == ("my-chip", "1.2.3+local.4")


@pytest.mark.parametrize(
    ("folder", "file"),
    [("chip.dist-info", "METADATA"), ("chip.egg-info", "PKG-INFO"),
     ("chip-7.0-py3.11.egg-info", "PKG-INFO")],
)  # fmt: skip
def test_the_version_is_in_the_metadata_where_the_name_lacks_it(
    tmp_path: Path, folder: str, file: str
) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / folder / file).write_text(WHEEL.format("7.0"))
    found = distributions.find("chip", [str(tmp_path)])
    assert found is not None
    assert found.version == "7.0"


def test_quoted_names_and_hashes_in_the_list_of_files(tmp_path: Path) -> None:
    info = install(tmp_path, "chip", {})
    (info / "RECORD").write_text('"a, b.so",sha256=x,3\nc.so,,\n\n../../bin/chip,,\n')
    found = distributions.at(str(info))
    assert found is not None
    assert set(found.files()) == {
        tmp_path / "a, b.so", tmp_path / "c.so", tmp_path / "../../bin/chip"
    }  # fmt: skip


def archive(file: Path, prefix: str = "") -> Path:
    with zipfile.ZipFile(file, "w") as zipped:
        folder = "EGG-INFO" if file.suffix == ".egg" else "chip-3.0.dist-info"
        zipped.writestr(f"{folder}/METADATA", WHEEL.format("3.0"))
        zipped.writestr(f"{folder}/PKG-INFO", WHEEL.format("3.0"))
        zipped.writestr(f"{folder}/entry_points.txt", "[plugrt.plugins]\nchip = m:p\n")
    return file


@pytest.mark.parametrize("name", ["all.zip", "chip-3.0-py3.11.egg"])
def test_archives(tmp_path: Path, name: str) -> None:
    found = distributions.find("chip", [str(archive(tmp_path / name))])
    assert found is not None
    assert found.version == "3.0"
    assert found.read("entry_points.txt") == b"[plugrt.plugins]\nchip = m:p\n"


def test_an_unpacked_egg(tmp_path: Path) -> None:
    egg = tmp_path / "chip-3.0-py3.11.egg"
    (egg / "EGG-INFO").mkdir(parents=True)
    (egg / "EGG-INFO" / "PKG-INFO").write_text(WHEEL.format("3.0"))
    found = distributions.find("chip", [str(egg)])
    assert found is not None
    assert found.version == "3.0"


class Frozen:
    """An importer with distributions outside of folders, like that of frozen programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(self, *_: object) -> None:
        return None

    def find_distributions(self, *_: object) -> Iterator[importlib_metadata.Distribution]:
        yield importlib_metadata.Distribution.at(self.folder)


def test_an_importer_with_distributions_of_its_own(tmp_path: Path) -> None:
    info = install(tmp_path, "frozen-chip", {}, version="9")
    assert distributions.version("frozen-chip") is None
    sys.meta_path.append(importer := Frozen(info))
    try:
        assert distributions.version("frozen-chip") == "9"
    finally:
        sys.meta_path.remove(importer)


def test_the_standard_case_imports_nothing_more() -> None:
    done = run_python(
        """
        import sys
        from plugrt.plugins.packages import distributions
        before = set(sys.modules)
        assert distributions.version("numpy")
        print(sorted(set(sys.modules) - before))
        """
    )
    assert done.stdout.strip() == "[]", done.stderr
