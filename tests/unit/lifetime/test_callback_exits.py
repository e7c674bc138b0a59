"""Finding the exception of a program's Python function to which an error refers."""

from __future__ import annotations

import pytest

from plugrt.errors import Internal
from plugrt.lifetime.callback_exits import keep_exit, raise_exit


def test_the_exit_of_the_launch_itself_is_raised() -> None:
    """jaxlib's errors also contain earlier errors of other threads' launches."""
    mine, other = SystemExit("mine"), KeyboardInterrupt("other")
    keep_exit("'f' raised KeyboardInterrupt: other", other)
    keep_exit("'f' raised SystemExit: mine", mine)
    keep_exit("'f' raised ValueError: no exit", ValueError("no exit"))
    error = Internal("'f' raised KeyboardInterrupt: otherINTERNAL: 'f' raised SystemExit: mine")
    with pytest.raises(SystemExit) as caught:
        raise_exit(error)
    assert caught.value is mine
    assert caught.value.__cause__ is error
    raise_exit(Internal("'f' raised ValueError: no exit"))
