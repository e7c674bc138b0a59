"""How libtpu is found and started: environment, path, and explanations of its refusals."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import plugrt
from nothing.plugins_tpu.test_hardware import tree
from plugrt.errors import Aborted, Internal, NotFound, PluginBroken
from plugrt_tpu import environment, hardware, library
from plugrt_tpu.plugin import TpuPlugin
from support.distributions import run_python
from support.vendor_plugins import choose_beside_fake

TPU = hardware.Hardware(chips=("v5e",))
NOTHING = hardware.Hardware()
LOCK = Aborted('Internal error when accessing libtpu multi-process lockfile. Run "$ sudo rm it"')


def test_no_metadata_query_and_no_log_files_without_a_tpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in environment.ELSEWHERE:
        monkeypatch.delenv(name, raising=False)
    with environment.set_libtpu_variables(NOTHING):
        assert os.environ["TPU_SKIP_MDS_QUERY"] == "1"
        assert os.environ["TPU_MIN_LOG_LEVEL"] == "3"
    assert not set(environment.ELSEWHERE) & set(os.environ)


def test_values_of_the_users_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_SKIP_MDS_QUERY", "0")
    monkeypatch.setenv("TPU_LOG_DIR", "")
    with environment.set_libtpu_variables(NOTHING):
        assert os.environ["TPU_SKIP_MDS_QUERY"] == "0"
        assert os.environ["TPU_LOG_DIR"] == ""
    assert os.environ["TPU_SKIP_MDS_QUERY"] == "0"


def test_a_tpu_machine_may_ask_its_metadata_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in environment.ELSEWHERE:
        monkeypatch.delenv(name, raising=False)
    assert set(environment.variables_for(TPU)) == {"GRPC_VERBOSITY"}


def test_variables_that_the_library_sets_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TPU_LOG_DIR", raising=False)
    with environment.set_libtpu_variables(NOTHING):
        os.environ["TPU_LOG_DIR"] = "/elsewhere"
    assert os.environ["TPU_LOG_DIR"] == "/elsewhere"
    monkeypatch.delenv("TPU_LOG_DIR")


def test_a_named_library_must_exist(tmp_path: Path) -> None:
    file = tmp_path / "libtpu.so"
    with plugrt.config.override(tpu_library_path=str(file)):
        with pytest.raises(PluginBroken, match=r"TPU_LIBRARY_PATH names .*libtpu\.so"):
            library.find_library()
        file.touch()
        assert library.find_library() == str(file)


def test_the_package_is_found_and_not_imported(tmp_path: Path) -> None:
    package = tmp_path / "libtpu"
    package.mkdir()
    (package / "__init__.py").write_text("import os; os.abort()")
    (package / "libtpu.so").touch()
    done = run_python(
        "from plugrt_tpu import library; print(library.find_library())",
        tmp_path,
        TPU_LIBRARY_PATH="",
    )
    assert done.stdout.strip() == str(package / "libtpu.so")


def test_without_the_package_the_cure_is_named(tmp_path: Path) -> None:
    package = tmp_path / "libtpu"
    package.mkdir()
    (package / "__init__.py").touch()
    done = run_python(
        """
        from plugrt.errors import PluginBroken
        from plugrt_tpu import library
        try:
            library.find_library()
        except PluginBroken as error:
            print(error)
        """,
        tmp_path,
        TPU_LIBRARY_PATH="",
    )
    assert 'pip install "plugrt[tpu]"' in done.stdout
    assert "has no libtpu.so" in done.stdout


def test_the_lock_is_explained_with_who_holds_it(tmp_path: Path) -> None:
    for pid, maps, command in [
        ("12", "7f /x/libtpu/libtpu.so", b"python\0train.py\0"),
        ("13", "7f /usr/lib/libc.so", b"bash\0"),
        (str(os.getpid()), "7f /x/libtpu/libtpu.so", b"this one\0"),
    ]:
        folder = tmp_path / "proc" / pid
        folder.mkdir(parents=True)
        (folder / "maps").write_text(maps)
        (folder / "cmdline").write_bytes(command)
    (tmp_path / "proc/14").mkdir()  # another user's: its files cannot be read
    explained = library.explain(LOCK, tmp_path)
    assert isinstance(explained, PluginBroken)
    assert "process 12 (python train.py)" in str(explained)
    assert "bash" not in str(explained)
    assert "this one" not in str(explained)
    assert "ALLOW_MULTIPLE_LIBTPU_LOAD=1" in str(explained)
    assert LOCK.message in str(explained)


def test_other_errors_are_left_as_they_are() -> None:
    for error in (Internal("lockfile"), Aborted("something else"), NotFound("no TPU")):
        assert library.explain(error) is error


@pytest.fixture
def of_tpu(tmp_path: Path) -> Path:
    """The files of a machine with a chip."""
    return tree(tmp_path / "of_tpu", ("0x1ae0", "0x0063"))


def test_chips_that_libtpu_does_not_find_are_news(of_tpu: Path) -> None:
    explained = library.explain(NotFound("No jellyfish device found."), of_tpu)
    assert isinstance(explained, PluginBroken)
    assert "No jellyfish" in str(explained)


def test_the_probe_goes_by_the_hardware(tmp_path: Path, of_tpu: Path) -> None:
    plugin = TpuPlugin(tmp_path)
    answer = plugin.probe()
    assert not answer.available
    assert "plugrt.topology" in answer.cure
    with plugrt.config.override(force_tpu_init=True):
        assert plugin.probe().available
    assert TpuPlugin(of_tpu).probe().available


def test_a_machine_with_a_tpu_but_no_libtpu_is_told_once(tmp_path: Path, of_tpu: Path) -> None:
    absent = str(tmp_path / "libtpu.so")
    done = choose_beside_fake(tmp_path, "tpu", of_tpu, TPU_LIBRARY_PATH=absent)
    assert done.stdout.splitlines()[0] == "fake fake"
    assert done.stderr.count("left out: 'tpu'") == 1
    assert "TPU_LIBRARY_PATH names" in done.stderr


def test_without_hardware_the_automatic_choice_is_silent(tmp_path: Path) -> None:
    done = choose_beside_fake(tmp_path, "tpu", tmp_path)
    assert done.stdout.splitlines() == ["fake fake", "unavailable 300 False"]
    assert done.stderr == ""
