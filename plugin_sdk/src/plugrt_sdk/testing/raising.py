"""`raises`: `pytest.raises` for checks, which also run in processes without pytest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def raises(kind: type[BaseException]) -> Iterator[None]:
    """Passes where the block raises such an error; raises `AssertionError` where it raises none."""
    try:
        yield
    except kind:
        return
    raise AssertionError(f"no error, where {kind.__name__} was expected")
