"""Writes ``docs/backend.md``: the contract of `plugrt_sdk.Backend`, method by method."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plugrt_sdk import Backend
from plugrt_sdk.array_methods import ArrayMethods
from plugrt_sdk.declaration import FIELDS
from plugrt_sdk.program_methods import ProgramMethods

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/backend.md"

INTRODUCTION = """\
<!-- Written by docs/generate/backend.py from the docstrings: change them. -->
# The methods of a backend

A backend in Python is a subclass of `plugrt_sdk.Backend`. Four methods make a complete client,
under plugrt and, [exported](export.md), under every other host of the PJRT C API:

```python
import numpy as np
import plugrt
from plugrt_sdk import Backend, BackendClient, BackendPlugin


class Twice(Backend):
    platform, version = "twice", "1.0"

    def devices(self):
        return ["toy chip"]

    def put(self, array, device):
        return array.copy()

    def get(self, handle):
        return handle

    def compile(self, program, options):
        return lambda arguments: [[2 * handle for handle in arguments[0]]]


plugrt.plugins.register(BackendPlugin("twice", Twice, priority=1000))
print(plugrt.jit(lambda x: x + x)(np.float32([1, 2, 3])))  # [2. 4. 6.]
```

Every other method is optional, and overriding it is the declaration: the client's `capabilities`
have it, hosts use it, and the conformance kit tests it. What is left out is refused as
`Unimplemented`, with the backend's name.

```python
class Counted(Twice):
    def memory_stats(self, device):
        return {"bytes_in_use": 4096}


client = BackendClient(Counted())
print([client.capabilities.memory_stats, client.capabilities.donation])  # [True, False]
print([client.devices()[0].memory_stats()])  # [{'bytes_in_use': 4096}]
```

What a method returns is checked. The error of a wrong return names the method, the distribution of
the backend with its version, what was found and what was expected:

```text
INTERNAL: Twice.put (of mychip 1.0.3) returned None; a handle was expected
```

[A backend with a thread for each device](../examples/README.md#an-asynchronous-backend) is an
example of events, donation and memories; [the NumPy backend](../plugins/numpy/README.md) is one of
replicas, partitions, serialisation and the host's memory. There are no methods for the layout of
arrays on the device: hosts see a row-major one, and other layouts are refused.
"""


def page() -> str:
    """Returns the whole page."""
    sections = [
        ("The four methods", [getattr(Backend, n) for n in ("devices", "put", "get", "compile")]),
        ("Arrays and devices", _own(ArrayMethods)),
        ("Programs and launches", _own(ProgramMethods)),
    ]
    out = INTRODUCTION
    for title, methods in sections:
        out += f"\n## {title}\n" + "".join(map(_describe, methods))
    return out


def _own(cls: type) -> list[Callable[..., Any]]:
    return [member for name, member in vars(cls).items() if inspect.isfunction(member)]


_LITERAL = re.compile(r"``([^`]+)``")


def _describe(method: Callable[..., Any]) -> str:
    name, field = method.__name__, FIELDS.get(method.__name__)
    signature = str(inspect.signature(method)).replace("'", "")
    text = _LITERAL.sub(r"`\1`", inspect.getdoc(method) or "")
    declares = f"Declares `{field}`.\n\n" if field else ""
    return f"\n### `{name}`\n\n```text\n{name}{signature}\n```\n\n{declares}{text}\n"


def main() -> None:
    """Writes the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
