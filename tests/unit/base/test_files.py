"""Reads that are bounded and never wait, and folders that only this user can change."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from plugrt.base import files
from plugrt.errors import FileRefused, PlugrtError


@pytest.fixture(params=["fifo", "folder", "socket", "zero", "link to zero"])
def no_file(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """An object that is no regular file; opening or reading it may never end."""
    path = tmp_path / "it"
    match request.param:
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "socket":
            with socket.socket(socket.AF_UNIX) as server:
                before = os.getcwd()
                os.chdir(tmp_path)  # paths of sockets have a low limit
                server.bind("it")
                os.chdir(before)
                yield path
                return
        case "zero":
            path = Path("/dev/zero")
        case "link to zero":
            path.symlink_to("/dev/zero")
    yield path


def test_only_regular_files_are_read(no_file: Path) -> None:
    for read in (files.read_bytes, files.read_text, files.read_json, files.open_regular):
        with pytest.raises(FileRefused, match="not a regular file") as caught:
            read(no_file)
        assert isinstance(caught.value, OSError)
        assert isinstance(caught.value, PlugrtError)
        assert str(no_file) in str(caught.value)


def test_a_path_that_is_no_regular_file_has_a_reason(no_file: Path, tmp_path: Path) -> None:
    said = files.why_no_file(no_file)
    assert re.fullmatch("is a (FIFO|folder|socket|character device), not a regular file", said)
    file = tmp_path / "file"
    assert files.why_no_file(file) == files.why_no_file(file / "below") == "does not exist"
    file.touch()
    assert files.why_no_file(file) == ""
    assert files.why_no_file(file / "below") == "does not exist"
    for unusable in ("a\0b", "x" * 5000):
        assert files.why_no_file(unusable).startswith("cannot be found: ")


@pytest.mark.parametrize(
    ("path", "number"),
    [("/dev/stdin", 0), ("/dev/fd/63", 63), ("/proc/self/fd/0", 0), ("/dev/fd/", None),
     ("/dev/fd/x", None), ("/dev/zero", None), ("x/dev/stdin", None), ("/dev/stdin/1", None)],
)  # fmt: skip
def test_paths_that_mean_an_open_file(path: str, number: int | None) -> None:
    assert files.descriptor_in(path) == files.descriptor_in(Path(path)) == number


def test_an_open_pipe_is_read_to_its_end_or_the_bound() -> None:
    for most, taken in ((100, True), (99, False)):
        end, start = os.pipe()
        os.write(start, bytes(100))
        os.close(start)
        with contextlib.closing(open(end, "rb")) as pipe:
            if taken:
                assert files.read_descriptor(pipe.fileno(), most, "pipe") == bytes(100)
            else:
                with pytest.raises(FileRefused, match="pipe: it holds more than 99 bytes"):
                    files.read_descriptor(pipe.fileno(), most, "pipe")


def test_regular_files_are_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for content in (b"", b"abc", os.urandom(3 * 2**16 + 5)):
        file.write_bytes(content)
        assert files.read_bytes(file) == content
        with files.open_regular(file) as stream:
            assert stream.read(10**6) == content
    file.write_text("[1, {}]")
    assert files.read_json(file) == [1, {}]
    assert files.read_text(file) == "[1, {}]"
    file.write_bytes(b"\xff")
    with pytest.raises(UnicodeDecodeError):
        files.read_text(file)
    assert files.read_text(file, errors="replace") == "\ufffd"
    with pytest.raises(FileNotFoundError):
        files.read_bytes(tmp_path / "absent")


def test_files_that_state_no_size_are_read_whole() -> None:
    found = files.read_bytes("/proc/self/maps")
    assert os.stat("/proc/self/maps").st_size == 0
    assert len(found) > 1000
    with pytest.raises(FileRefused, match="more than 100 bytes"):
        files.read_bytes("/proc/self/maps", 100)


def test_the_bound(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(100))
    assert len(files.read_bytes(file, 100)) == 100
    with pytest.raises(FileRefused, match="more than 99 bytes") as caught:
        files.read_bytes(file, 99)
    assert caught.value.errno == errno.EFBIG
    os.truncate(file, 2**42)  # a sparse file: nothing of it is read
    with pytest.raises(FileRefused, match=f"more than {files.MAX_BYTES} bytes"):
        files.read_bytes(file)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "{", "", b"\xff", b"\0" * 99])
def test_damaged_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        files.parse_json(text)


@pytest.fixture
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0, 0o002, 0o022, 0o077, 0o277], indirect=True)
@pytest.mark.usefixtures("umask")
def test_made_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    folder = Path(files.private_folder(tmp_path / "a/b/c"))
    assert folder == tmp_path / "a/b/c"
    for made in (folder, folder.parent, folder.parent.parent):
        assert mode(made) == 0o700
    file = folder / "file"
    files.write(file, b"one")
    files.write(file, b"two")
    assert (file.read_bytes(), mode(file)) == (b"two", 0o600)
    assert os.listdir(folder) == ["file"]
    assert files.read_bytes(file, own=True) == b"two"


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert files.private_folder(tmp_path) == str(tmp_path)
    assert mode(tmp_path) == 0o755


def test_the_home_folder_expands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.private_folder("~/x") == str(tmp_path / "x")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileRefused, match="no such user"):
        files.private_folder("~nobody-of-this-name/x")
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("bits", [0o770, 0o720, 0o702, 0o777, 0o1777])
def test_a_folder_that_others_can_write_is_refused(tmp_path: Path, bits: int) -> None:
    tmp_path.chmod(bits)
    with pytest.raises(FileRefused, match=rf"others can write it \(mode {bits:04o}\)") as caught:
        files.private_folder(tmp_path)
    assert f"chmod go-w {tmp_path}" in str(caught.value)
    tmp_path.chmod(0o700)


def test_a_file_that_others_can_write_is_not_trusted(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("[]")
    file.chmod(0o644)
    assert files.read_json(file, own=True) == []
    file.chmod(0o646)
    with pytest.raises(FileRefused, match="others can write it"):
        files.read_json(file, own=True)
    assert files.read_json(file) == []


def test_files_of_another_user_are_not_trusted(tmp_path: Path) -> None:
    folder, file = Path("/"), Path("/etc/passwd")
    if os.geteuid() == 0:
        folder, file = tmp_path / "folder", tmp_path / "file"
        folder.mkdir()
        file.write_text("[]")
        for path in (folder, file):
            os.chown(path, 54321, 54321)
    with pytest.raises(FileRefused, match=r"it belongs to the user .* and not to the user"):
        files.private_folder(folder)
    with pytest.raises(FileRefused, match=r"it belongs to the user .* and not to the user"):
        files.read_bytes(file, own=True)
    assert files.read_bytes(file)


def test_a_link_of_another_user_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, link, second = tmp_path / "folder", tmp_path / "link", tmp_path / "second"
    folder.mkdir(0o700)
    (folder / "file").write_text("[]")
    link.symlink_to("folder")
    second.symlink_to(link)
    for path in (link, second):
        assert files.private_folder(path) == str(path)
        assert files.read_json(path / "file", own=True) == []
    if os.geteuid() == 0:
        os.chown(link, 54321, 54321, follow_symlinks=False)
    else:
        lstat = os.lstat
        another = SimpleNamespace(st_uid=54321, st_mode=lstat(link).st_mode)
        monkeypatch.setattr(os, "lstat", lambda p: another if str(p) == str(link) else lstat(p))
    for path in (link, second):
        for use in (files.private_folder, lambda p: files.read_json(p / "file", own=True)):
            with pytest.raises(FileRefused, match=f"{link} is a symbolic link of the user 54321"):
                use(path)
    assert files.read_json(second / "file") == []
    assert files.private_folder(folder) == str(folder)


def test_a_path_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for path in (file, file / "below", Path("/dev/null")):
        with pytest.raises(OSError, match=r"."):
            files.private_folder(path)


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        files.write(tmp_path / "folder", b"x")
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.parametrize("name", ["", "folder", "nosuch/file", "a" * 300])
def test_a_write_that_fails_names_the_file_that_was_asked_for(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names not the temporary file beside it; "" is the current folder."""
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match=r".") as caught:
        files.write(Path(name), b"x")
    assert caught.value.filename == str(Path(name))
    assert os.listdir(tmp_path) == ["folder"]
