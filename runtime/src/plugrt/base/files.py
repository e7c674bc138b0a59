"""Reads files at untrusted paths with a size bound, and keeps files in private folders.

A path from a setting, an installation or a cache may lead to a FIFO, a device or another user's
file. Every read here opens regular files only, never blocks, and stops at a bound. Files kept
between runs are in folders that belong to this user and that no other user can write.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from typing import TYPE_CHECKING, Any, BinaryIO

from plugrt.errors import FileRefused

if TYPE_CHECKING:
    from pathlib import Path

AnyPath = str | os.PathLike[str]

MAX_BYTES = 16 * 2**20
"""The default size limit of files that are read, in bytes; metadata files are far smaller."""

_CHUNK = 2**16
_URL = r"[A-Za-z][A-Za-z0-9+.-]+://"
_DESCRIPTOR = r"/dev/stdin|/(?:dev|proc/self)/fd/([0-9]{1,7})"
_FILE_TYPES = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFDIR: "a folder",
    stat.S_IFSOCK: "a socket",
}


def why_no_file(path: AnyPath) -> str:
    """Returns why a path is no regular file, to be put after its name; empty if it is one.

    For example "does not exist" or "is a FIFO, not a regular file". Nothing is opened.
    """
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return "does not exist"
    except (OSError, ValueError) as error:  # ValueError: the name contains a NUL
        return f"cannot be found: {getattr(error, 'strerror', None) or error}"
    return _describe_irregular(found)


def _describe_irregular(found: os.stat_result) -> str:
    if stat.S_ISREG(found.st_mode):
        return ""
    file_type = _FILE_TYPES.get(stat.S_IFMT(found.st_mode), "something else")
    return f"is {file_type}, not a regular file"


def real_path(library: str) -> str:
    """Returns the path of a library's file, without links; a name without a folder unchanged.

    The dynamic loader searches such a name.
    """
    try:
        return os.path.realpath(library) if os.sep in library else library
    except (OSError, ValueError):  # the working folder was removed, or the name contains a NUL
        return library


def names_of(library: str) -> set[str]:
    """Returns the file names of a library: of its path, and of the file behind symbolic links."""
    return {os.path.basename(path) for path in (library, real_path(library))}


def identify(path: AnyPath, *, listed: bool = False) -> list[int] | None:
    """Returns numbers that change when a file does; None if there is no file.

    A folder's numbers depend on its entries only if ``listed``; a device's never change.
    """
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    numbers = [found.st_mode, found.st_ino]
    if listed or stat.S_ISREG(found.st_mode):
        numbers += [found.st_size, found.st_mtime_ns, found.st_ctime_ns]
    return numbers


def is_url(path: AnyPath) -> bool:
    """Whether a path is a URL, such as ``gs://bucket/x``, which would create a folder ``gs:``."""
    return re.match(_URL, os.fsdecode(path)) is not None


def open_regular(path: AnyPath, *, own: bool = False) -> BinaryIO:
    """Opens a regular file for reading bytes; never waits for another process.

    With ``own`` the file must belong to this user and be writable by no other user; the file that
    is checked is the one that was opened. Raises `FileRefused` (an `OSError`) for anything else,
    and the `OSError` of opening.
    """
    return open(_open(path, own), "rb")


def _open(path: AnyPath, own: bool) -> int:
    # Also checked before opening: opening a device can have effects (a watchdog starts counting).
    _check_regular(os.stat(path), path)
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"):
        flags |= getattr(os, name, 0)
    number = os.open(path, flags)
    try:
        found = os.fstat(number)
        _check_regular(found, path)
        if own:
            _check_own(found, path)
    except BaseException:  # also after an interrupt: no other code closes it
        os.close(number)
        raise
    return number


def read_bytes(path: AnyPath, most: int = MAX_BYTES, *, own: bool = False) -> bytes:
    """Returns the contents of a regular file; raises `FileRefused` beyond ``most`` bytes.

    See `open_regular` for ``own`` and for other files that are refused.
    """
    number = _open(path, own)
    try:
        stated = os.fstat(number).st_size
        if stated > most:
            raise _too_large(path, most)
        # Files under /proc have size 0, and a file can grow: only the bytes read count.
        return _read(number, max(stated + 1, _CHUNK), most, path)
    finally:
        os.close(number)


def _read(number: int, chunk: int, most: int, path: AnyPath) -> bytes:
    parts, left = [], most + 1
    while part := os.read(number, min(chunk, left)):
        parts.append(part)
        left -= len(part)
    if left == 0:
        raise _too_large(path, most)
    return b"".join(parts)


def read_descriptor(number: int, most: int, name: AnyPath) -> bytes:
    """Returns the rest of an open file; raises `FileRefused` beyond ``most`` bytes.

    Waits for the writer of a pipe, since the user has opened it. ``name`` is for the message.
    """
    return _read(number, 2**20, most, name)


def descriptor_in(path: AnyPath) -> int | None:
    """Returns the file descriptor of a path such as ``/dev/stdin`` or ``/dev/fd/63``.

    None for any other path. Shells replace ``<(command)`` by the second form.
    """
    found = re.fullmatch(_DESCRIPTOR, os.fspath(path))
    return int(found[1] or 0) if found else None


def read_text(path: AnyPath, most: int = MAX_BYTES, *, errors: str = "strict") -> str:
    """Returns the text of a regular file in UTF-8; raises `UnicodeDecodeError` for other bytes."""
    return read_bytes(path, most).decode("utf-8", errors)


def read_json(path: AnyPath, most: int = MAX_BYTES, *, own: bool = False) -> Any:
    """Returns the JSON value in a regular file; `ValueError` for other contents."""
    return parse_json(read_bytes(path, most, own=own))


def parse_json(text: str | bytes) -> object:
    """Returns a JSON value; `ValueError` for anything else, however deep it is nested."""
    import json  # not needed by every start

    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _check_regular(found: os.stat_result, path: AnyPath) -> None:
    if fault := _describe_irregular(found):
        raise FileRefused(errno.EINVAL, f"it {fault}", os.fspath(path))


def _too_large(path: AnyPath, most: int) -> FileRefused:
    return FileRefused(errno.EFBIG, f"it holds more than {most} bytes", os.fspath(path))


def private_folder(path: AnyPath, *, make: bool = True) -> str:
    """Returns the folder, created if ``make``: it is this user's and writable by no other user.

    ``~`` expands. Created folders (also parents) have mode 0700 whatever the umask is; the mode of
    an existing folder stays. Raises `FileRefused`, with the cure, for a folder of another user or
    one that others can write, and the `OSError` of creating or finding it.
    """
    folder = os.path.expanduser(path)
    if not os.path.isabs(folder) and str(path).startswith("~"):
        raise FileRefused(errno.ENOENT, "there is no such user", os.fspath(path))
    if make:
        from pathlib import Path

        _make(Path(folder))
    found = os.stat(folder)
    if not stat.S_ISDIR(found.st_mode):
        raise FileRefused(errno.ENOTDIR, "it is not a folder", folder)
    _check_own(found, folder)
    return folder


def _make(folder: Path) -> None:
    """Makes a folder and its missing parents, each with mode 0700."""
    missing = []
    for place in (folder, *folder.parents):
        if place.exists():
            break
        missing.append(place)
    for place in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process was first; it is checked
            place.mkdir(mode=0o700)
            place.chmod(0o700)  # a umask can also remove bits of the owner


def _check_own(found: os.stat_result, path: AnyPath) -> None:
    """Raises `FileRefused` if another user owns it or a link in its path, or can write it."""
    if not hasattr(os, "geteuid"):
        return  # on Windows the mode does not cover other users
    _check_links(os.path.join(os.getcwd(), path), path)
    mode = f"mode {stat.S_IMODE(found.st_mode):04o}"
    if found.st_uid != os.geteuid():
        raise FileRefused(
            errno.EPERM,
            f"it belongs to {_user(found.st_uid)} ({mode}) and not to {_user(os.geteuid())}, so "
            "that what it holds cannot be trusted; name another folder, or remove it",
            os.fspath(path),
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise FileRefused(
            errno.EPERM,
            f"it belongs to {_user(found.st_uid)}, but others can write it ({mode}), so that what "
            f"it holds cannot be trusted; empty it, and chmod go-w {os.fspath(path)}",
            os.fspath(path),
        )


def _check_links(place: str, path: AnyPath) -> None:
    """Raises `FileRefused` if a path has a symbolic link of another user than root.

    The owner of a link can change its target to another folder of this user.
    """
    parts = [place]
    while (parent := os.path.dirname(parts[-1])) != parts[-1]:
        parts.append(parent)
    for part in parts:
        if not os.path.islink(part):
            continue
        owner = os.lstat(part).st_uid
        if owner not in (0, os.geteuid()):
            raise FileRefused(
                errno.EPERM,
                f"{part} is a symbolic link of {_user(owner)}, who can point it elsewhere; name "
                "the folder that it leads to",
                os.fspath(path),
            )
        _check_links(os.path.join(os.path.dirname(part), os.readlink(part)), path)


def _user(number: int) -> str:
    import pwd  # not on Windows, which does not get here

    try:
        return f"the user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"the user {number}"


def claim(path: AnyPath) -> Path:
    """Returns the absolute path of a file that can be written; raises `FileRefused` for any other.

    Creates a missing file, empty; keeps the contents of an existing one. Never waits for another
    process.
    """
    from pathlib import Path  # not needed by every start

    whole = Path(os.fsdecode(path)).absolute()
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
    try:
        os.close(os.open(whole, flags, 0o666))
    except OSError as error:
        reason = f"it cannot be written: {error.strerror}"
        raise FileRefused(error.errno, reason, os.fspath(path)) from error
    return whole


def write(path: AnyPath, content: bytes, mode: int = 0o600) -> None:
    """Writes a file atomically: other processes read the old content or the whole new one.

    Raises the `OSError` of writing, which names ``path``, and then leaves no file behind.
    """
    try:
        _write(path, content, mode)
    except OSError as error:  # the error names the temporary file, which the caller does not know
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _write(path: AnyPath, content: bytes, mode: int) -> None:
    if os.path.isdir(path):  # `os.replace` raises other errors: "." is busy
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    aside = f"{os.fspath(path)}.{os.urandom(8).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    number = os.open(aside, flags, mode)
    try:
        with open(number, "wb") as stream:
            os.chmod(aside, mode)  # a umask can also remove bits of the owner
            stream.write(content)
        os.replace(aside, path)
    except BaseException:  # an interrupt leaves no file either
        with contextlib.suppress(OSError):
            os.unlink(aside)
        raise
