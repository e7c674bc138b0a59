"""Which C sources a compiled module was built from, so that one of other sources is not used.

An editable installation has such a module after ``git pull``, which builds nothing again: what
Python asks of it may not be in it, or be another. So the sources are named twice, each with a hash
of its contents, by the ``generate.py`` beside them: in ``sources.h``, which the module shows as
``SOURCES``, and in a ``core_sources.py`` of the package. `explain_other_sources` compares the two.
plugrt's core and plugrt-sdk's have these files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "sources.h"
"""The header in the folder of the sources; it does not count as a source."""


def source_lines(folder: Path) -> list[str]:
    """Returns a line for each source in ``folder``; a line each, that git may merge them."""
    import hashlib  # for those who develop the core: a program needs only the comparison

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
    """Returns the text of the module in Python that ``user`` compares with that.

    ``generator`` is the path of the program that makes it, from the root of the repository.
    """
    lines = "".join(f"{line}\n" for line in source_lines(folder))
    return f'''"""Which sources the compiled core is built from, for `{user}`.

Made by ``{generator}`` from the files there; do not edit.
"""

SOURCES = """\\
{lines}"""
'''


def explain_other_sources(found: Any, sources: str, distribution: str, folder: str) -> str:
    """Returns an error if the module ``found`` was built from other sources; "" otherwise.

    ``folder`` is the distribution's folder in a clone, for the cure.
    """
    if getattr(found, "SOURCES", None) == sources:
        return ""
    return (
        f"{found.__file__} was built from other sources than {distribution}'s Python files belong "
        f'to. Install {distribution} again, which builds it (in a clone "pip install -e {folder}" '
        'or "make demo")'
    )
