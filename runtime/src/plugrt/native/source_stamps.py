"""Records the C sources that a compiled module was built from, so that an outdated one is refused.

After ``git pull`` an editable installation has a module of older sources: its functions may be
missing or differ. So the ``generate.py`` beside the sources lists them with a hash of the contents
in two files: ``sources.h``, which the module exports as ``SOURCES``, and a ``core_sources.py`` in
the package. `explain_other_sources` compares the two. plugrt's core and plugrt-sdk's have these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "sources.h"
"""The header in the folder of the sources; it is not listed as a source."""


def source_lines(folder: Path) -> list[str]:
    """Returns the names and hashes of the sources in ``folder``, one a line for git's merges."""
    import hashlib  # only needed when the core is built

    paths = sorted(path for end in ("[ch]", "cc") for path in folder.rglob(f"*.{end}"))
    found = [path for path in paths if path.name != HEADER]
    return [
        f"{p.relative_to(folder)} {hashlib.sha256(p.read_bytes()).hexdigest()[:12]}" for p in found
    ]


def sources_h(folder: Path) -> str:
    """Returns the text of the header: the compiled module's record of its sources."""
    lines = "".join(f'    "{line}\\n"\n' for line in source_lines(folder))
    made = "/* Made by generate.py from the other files here; do not edit. */\n"
    return f"{made}static const char core_sources[] =\n{lines}    ;\n"


def core_sources_py(folder: Path, generator: str, user: str) -> str:
    """Returns the text of the Python module with the same record, which ``user`` compares.

    ``generator`` is the path of the generating program, from the root of the repository.
    """
    lines = "".join(f"{line}\n" for line in source_lines(folder))
    return f'''"""Which sources the compiled core is built from, for `{user}`.

Made by ``{generator}`` from the files there; do not edit.
"""

SOURCES = """\\
{lines}"""
'''


def explain_other_sources(found: Any, sources: str, distribution: str, folder: str) -> str:
    """Returns an error message if the module ``found`` was built from other sources, else "".

    ``folder`` is the distribution's folder in a clone, for the cure.
    """
    if getattr(found, "SOURCES", None) == sources:
        return ""
    return (
        f"{found.__file__} was built from other sources than {distribution}'s Python files belong "
        f'to. Install {distribution} again, which builds it (in a clone "pip install -e {folder}" '
        'or "make demo")'
    )
