"""`PackageName`: the name of a new plugin, checked, and how it is written in each place."""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from dataclasses import dataclass

from plugrt.errors import InvalidArgument
from plugrt.plugins.selection.backends import process_backends
from plugrt.plugins.selection.platform_names import known_platforms

_FORM = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")
_LONGEST = 30
_PLATFORMS = frozenset(
    ["cpu", "gpu", "cuda", "rocm", "oneapi", "tpu", "metal", "iree", "interpreter", "sycl", "xpu"]
)
"""Platforms that JAX or its vendors' plugins have, installed here or not."""


@dataclass(frozen=True)
class PackageName:
    """A valid name of a plugin: its distribution and platform; other names are derived from it."""

    text: str

    def __post_init__(self) -> None:
        _require_form(self.text)
        _require_free(self.text, self.module)

    @property
    def module(self) -> str:
        """The name of the module: ``my_chip``."""
        return self.text.replace("-", "_")

    @property
    def cls(self) -> str:
        """The beginning of the names of classes: ``MyChip``."""
        return "".join(part.capitalize() for part in self.module.split("_"))

    def rename(self, text: str) -> str:
        """Returns a template's text with ``my-chip`` replaced by this name."""
        ours = {
            "my-chip": self.text,
            "my_chip": self.module,
            "MyChip": self.cls,
            "MY_CHIP": self.module.upper(),
            "MY-CHIP": self.text.upper(),
        }
        return re.sub("|".join(ours), lambda found: ours[found[0]], text)


def _require_form(name: str) -> None:
    """Raises `InvalidArgument` unless it is a valid name of a distribution, module and platform."""
    if _FORM.fullmatch(name) and len(name) <= _LONGEST:
        return
    usable = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "chip"
    if usable[0].isdigit() or usable in _PLATFORMS:
        usable = f"my_{usable}"
    cure = f"try {usable[:_LONGEST].rstrip('_')}"
    raise InvalidArgument(
        f"a plugin cannot be called {name!r}: a name has at most {_LONGEST} characters, lower-case "
        "letters and digits, with single '-' or '_' between them and a letter first, as pip, "
        f"Python and JAX_PLATFORMS all take it; {cure}"
    )


def _require_free(name: str, module: str) -> None:
    """Raises `InvalidArgument` for a name that already means something else."""
    rows = [row for row in process_backends().table.rows if row.matches_name(name)]
    if rows and all(row.belongs_to(name) for row in rows):
        return  # the package itself, installed earlier
    if name in _PLATFORMS | known_platforms():
        owner = f" (of {rows[0].who})" if rows else ""
        raise InvalidArgument(
            f"{name!r} is already a platform{owner}: JAX_PLATFORMS={name} must mean one thing; "
            f"choose another name, such as my_{module}"
        )
    if keyword.iskeyword(module) or module in sys.stdlib_module_names:
        what = "a keyword of" if keyword.iskeyword(module) else "a module that comes with"
        raise InvalidArgument(f"{module!r} is {what} Python; choose another name: {module}_device")
    if importlib.util.find_spec(module) is not None:
        raise InvalidArgument(
            f"a module {module!r} is installed here already, which the new package would hide; "
            f"choose another name: {module}_device"
        )
