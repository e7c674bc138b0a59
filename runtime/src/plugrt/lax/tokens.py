"""`Token`, `create_token` and `after_all`: values without data that order effects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn

from plugrt.errors import ArgumentTypeError, NotAnArray
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors


class Sent(NamedTuple):
    """An array that a `psend` sent with a token: its axes, and its pairs of indices.

    ``places`` has the number of axes around each axis, which distinguishes axes of the same name.
    """

    axes: tuple[object, ...]
    places: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]


class Token:
    """A value without data that orders operations: its user runs after its producer.

    A pytree container whose children are the arrays that `psend` has sent and no `precv` has
    received. So tokens can be arguments and results of functions, of `jit`, `pmap`, loops and
    conditionals, without cost: no buffer is passed. JAX's tokens are leaves.
    """

    __slots__ = ("arrays", "sent")

    def __init__(self, sent: Iterable[Sent] = (), arrays: Iterable[Any] = ()) -> None:
        self.sent, self.arrays = tuple(sent), tuple(arrays)

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise NotAnArray(f"{self!r} has no data that an array could be made of")

    def __repr__(self) -> str:
        return "Token()" if not self.sent else f"Token(of {len(self.sent)} psend)"


pytrees.register_node(
    Token, lambda token: (token.arrays, token.sent), lambda sent, arrays: Token(sent, arrays)
)


@with_argument_errors
def create_token(_: object = None) -> Token:
    """Returns a token that comes after nothing.

    The argument is ignored. Raises `ArgumentTypeError` for more than one. As
    ``jax.lax.create_token``.

    >>> lax.create_token()
    Token()
    """
    return Token()


@with_argument_errors
def after_all(*operands: Token) -> Token:
    """Returns a token that comes after all of these.

    It carries the arrays that were sent with any of them. Raises `ArgumentTypeError` for an object
    that is no token. As ``jax.lax.after_all``.

    >>> lax.after_all(lax.create_token(), lax.create_token())
    Token()
    """
    sent: list[Sent] = []
    arrays: list[Any] = []
    for i, token in enumerate(operands):
        if not isinstance(token, Token):
            raise ArgumentTypeError(
                f"after_all takes tokens, of create_token, psend and after_all; argument {i} is "
                f"{token!r:.60} of type {type(token).__qualname__}"
            )
        # Several tokens may carry the array of one psend.
        for one, array in zip(token.sent, token.arrays, strict=True):
            if not any(array is seen for seen in arrays):
                sent.append(one)
                arrays.append(array)
    return Token(sent, arrays)
