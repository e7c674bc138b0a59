"""jaxlib's exceptions as plugrt's: XLA prints a status as ``CODE_NAME: text``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from plugrt.errors import PJRT_ERRORS, DeletedBuffer, Internal, PjrtError, PlugrtError, Unknown

_BY_NAME = {cls.code_name: cls for cls in PJRT_ERRORS.values()}
_STATUS = re.compile(r"\s*([A-Z_]{2,})\s*: ?", re.ASCII)
_DELETED = re.compile(r"(array|buffer) has been deleted|deleted or donated|[Dd]onated buffer", re.I)


def translate(error: BaseException, default: type[PjrtError] = Unknown) -> PlugrtError:
    """Returns plugrt's exception for one of jaxlib's; text without a status gets ``default``."""
    text = str(error)
    if _DELETED.search(text):
        return DeletedBuffer(text)
    found = _STATUS.match(text)
    cls = _BY_NAME.get(found.group(1)) if found else None
    if cls is None or found is None:
        return default(text)
    return cls(text[found.end() :])


@contextmanager
def translated(default: type[PjrtError] = Internal) -> Iterator[None]:
    """Raises plugrt's exceptions in the place of jaxlib's RuntimeError and ValueError."""
    try:
        yield
    except PlugrtError:
        raise
    except (RuntimeError, ValueError, TypeError) as error:
        raise translate(error, default) from error
