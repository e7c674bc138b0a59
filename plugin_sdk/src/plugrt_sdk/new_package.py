"""`write_package`: a new plugin package, from the templates that come with plugrt-sdk.

The templates are working packages of a plugin called ``my-chip``; they are copied under the new
name. A kind's files are in the folders of `LAYERS`; a later folder's files replace an earlier
one's.
"""

from __future__ import annotations

import enum
import re
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from plugrt.capi.loading.load_errors import why_no_plugin
from plugrt.errors import FileRefused, InvalidArgument
from plugrt.plugins.packages import distributions
from plugrt_sdk.package_names import PackageName


class Kind(enum.StrEnum):
    """The implementation of a plugin: a backend in Python, a library, or C++."""

    PYTHON = "python"
    LIBRARY = "library"
    CPP = "cpp"
    CPP_STUBS = "cpp-stubs"


LAYERS: Mapping[Kind, tuple[str, ...]] = {
    Kind.PYTHON: ("common", "python"),
    Kind.LIBRARY: ("common", "library"),
    Kind.CPP: ("common", "python", "cpp"),
    Kind.CPP_STUBS: ("common", "library", "cpp_stubs"),
}
"""Kind to the folders of its templates."""

TORCH_LAYERS: Mapping[Kind, str] = {
    Kind.PYTHON: "torch_xla_python",
    Kind.LIBRARY: "torch_xla_library",
    Kind.CPP: "torch_xla_python",
    Kind.CPP_STUBS: "torch_xla_library",
}
"""Kind to the folder that offers it to PyTorch/XLA."""

_GENERATED = ("__pycache__", ".ruff_cache", ".mypy_cache")


@dataclass(frozen=True)
class NewPackage:
    """A package to be written. ``library`` is an existing PJRT library to include.

    Raises `InvalidArgument` for a kind without a library that gets one, and `PluginBroken` or
    `PluginIncompatible` for a file that is no PJRT library of this machine. Does not load it.
    """

    name: PackageName
    kind: Kind
    folder: Path
    library: Path | None = None
    torch_xla: bool = False

    def __post_init__(self) -> None:
        if self.library is not None and self.kind is not Kind.LIBRARY:
            raise InvalidArgument(
                f"a plugin of kind {self.kind} has no library of its own to take {self.library} "
                "for; the kind for an existing library is `--kind library`"
            )
        wrong = None if self.library is None else why_no_plugin(str(self.library))
        if wrong is not None:
            raise wrong

    def next_steps(self) -> str:
        """Returns what to do with the package, command by command."""
        where = self.folder if self.folder.is_absolute() else f"./{self.folder}"
        module = self.name.module
        first = {
            Kind.PYTHON: "",
            Kind.LIBRARY: ""
            if self.library
            else f"  cp /path/to/your/library.so {self.folder}/src/{module}/libpjrt_{module}.so\n",
            Kind.CPP: "",
            Kind.CPP_STUBS: "  export PJRT_HEADER=/path/to/pjrt_c_api.h  # README.md has one\n",
        }[self.kind]
        return f"""Next:
{first}  pip install {where}
  JAX_PLATFORMS={self.name.text} plugrt doctor
{self.folder / "README.md"} says what to replace, and in which order."""


def write_package(package: NewPackage) -> list[Path]:
    """Writes a package into its folder, which it makes; returns the files, relative to that.

    Raises `FileRefused` if the folder exists and is not empty: nothing is ever overwritten.
    """
    contents = dict(_contents(package))
    _require_new(package.folder)
    for name, content in contents.items():
        target = package.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return sorted(map(Path, contents))


def _require_new(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() or folder.is_symlink():
        what = "the folder is not empty" if folder.is_dir() else "it is there already"
        cure = "name another folder (--path), or remove it"
        raise FileRefused(17, f"{what}; {cure}", str(folder))


def _contents(package: NewPackage) -> Iterator[tuple[str, bytes]]:
    """Yields (path in the package, content) of each file; a later one replaces an earlier one."""
    layers = LAYERS[package.kind]
    if package.torch_xla:
        layers = (*layers, TORCH_LAYERS[package.kind])
    for layer in layers:
        for name, content in _template(files("plugrt_sdk") / "templates" / layer):
            yield package.name.rename(name), _adapt(content, package).encode()
    if package.library is not None:
        name = f"src/{package.name.module}/libpjrt_{package.name.module}.so"
        yield name, package.library.read_bytes()


def _template(folder: Traversable, inside: str = "") -> Iterator[tuple[str, str]]:
    for item in folder.iterdir():
        if item.name in _GENERATED:
            continue
        if item.is_dir():
            yield from _template(item, f"{inside}{item.name}/")
        else:
            yield f"{inside}{item.name}", item.read_text(encoding="utf-8")


def _adapt(text: str, package: NewPackage) -> str:
    """Returns a template's text with the package's name and version bounds on plugrt's packages."""
    if not package.torch_xla:
        text = re.sub(r"(?s)# with torch_xla:\n.*?# end\n\n?", "", text)
    text = re.sub(r"# with torch_xla:\n|# end\n\n?(?=\[)", "", text)
    text = text.replace("linux_x86_64", re.sub(r"[-.]", "_", sysconfig.get_platform()))
    return package.name.rename(re.sub(r'"(plugrt(?:-numpy|-sdk)?)(\[\w+\])?"', _add_range, text))


def _add_range(found: re.Match[str]) -> str:
    extra, version = found[2] or "", distributions.version(found[1]) or "0"
    return f'"{found[1]}{extra}{supported_range(version)}"'


def supported_range(version: str) -> str:
    """Returns which versions a plugin written for ``version`` works with, as pip states it.

    From that one to the next that may break: the next major version, while that is 0 the next minor
    one.
    """
    major, minor = (*(int(number) for number in re.findall(r"\d+", version)[:2]), 0)[:2]
    return f">={version},<{major + 1}" if major else f">={version},<0.{minor + 1}"
