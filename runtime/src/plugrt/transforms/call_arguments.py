"""`ArgumentRules`: static and donated arguments of a function, by number and name."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from plugrt.errors import ArgumentError, ArgumentTypeError, UnhashableStaticArgument
from plugrt.execution.launches.flat_calls import FlatCall
from plugrt.execution.trees import pytrees


def check_function(title: str, fun: object) -> None:
    """Raises `ArgumentTypeError` for an object that cannot be traced, as JAX does."""
    if isinstance(fun, staticmethod):
        raise ArgumentTypeError(
            f"{title} got {fun!r}; a staticmethod cannot be traced: decorate with {title} first, "
            "staticmethod outside"
        )
    if not callable(fun):
        raise ArgumentTypeError(f"{title} takes a function; got {fun!r}")
    for is_one, what in (
        (inspect.isgeneratorfunction, "generator"),
        (inspect.iscoroutinefunction, "coroutine"),
        (inspect.isasyncgenfunction, "asynchronous generator"),
    ):
        if is_one(fun):
            raise ArgumentTypeError(
                f"{title} takes a function that returns arrays; got the {what} function {fun!r}"
            )


def function_name(function: object) -> str:
    """Returns the name of a function, also inside `functools.partial`; else its type's."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _numbers(what: str, nums: Any) -> list[int]:
    """Returns argument numbers, given as one integer (also NumPy's) or as several."""
    try:
        return [operator.index(nums)]
    except TypeError:
        pass
    try:
        return [operator.index(n) for n in nums]
    except TypeError as error:
        raise ArgumentTypeError(f"{what}_argnums takes integers; got {nums!r}") from error


def _names(what: str, names: object) -> set[str]:
    # Exactly `str`: calls look keywords up, and would run a subclass's methods.
    if isinstance(names, str):
        return {str.__str__(names)}
    if not isinstance(names, Iterable):
        raise ArgumentTypeError(f"{what}_argnames takes names; got {names!r}")
    found = set(names)
    if not all(isinstance(name, str) for name in found):
        raise ArgumentTypeError(f"{what}_argnames takes names; got {names!r}")
    return {str.__str__(name) for name in found}


class ArgumentRules:
    """Which arguments of a function are static or donated, by number and by name.

    Numbers and names complete each other through the function's signature, as in JAX: naming an
    argument in one form makes it static (or donated) in both, unless both forms are given.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnums: int | Sequence[int] | None,
        static_argnames: str | Iterable[str] | None,
        donate_argnums: int | Sequence[int] | None = None,
        donate_argnames: str | Iterable[str] | None = None,
        *,
        static: str = "static",
    ) -> None:
        """``static`` begins the names of the options for static arguments, for messages."""
        self.title = function_name(function)
        try:
            signature: inspect.Signature | None = inspect.signature(function)
        except (ValueError, TypeError):
            signature = None  # builtins and C functions have none
        self.signature = signature
        self.positional = (
            [
                p.name
                for p in signature.parameters.values()
                if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            ]
            if signature
            else []
        )
        self.static_nums, self.static_names = self._complete(
            static, static_argnums, static_argnames
        )
        self.donate_nums, self.donate_names = self._complete(
            "donate", donate_argnums, donate_argnames
        )
        both = self.static_nums & self.donate_nums or self.static_names & self.donate_names
        if both:
            raise ArgumentError(f"{sorted(both)} of {self.title!r} cannot be static and donated")

    def _complete(
        self,
        what: str,
        nums: int | Sequence[int] | None,
        names: str | Iterable[str] | None,
    ) -> tuple[frozenset[int], frozenset[str]]:
        numbers = [] if nums is None else _numbers(what, nums)
        named = set() if names is None else _names(what, names)
        count, signature = len(self.positional), self.signature
        variadic = signature is None or any(
            p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()
        )
        result = set()
        for n in numbers:
            if variadic and n < 0:
                raise ArgumentError(
                    f"{what}_argnums={n} counts from the end, and {self.title!r} takes any number "
                    "of arguments; count from the start"
                )
            if not variadic and not -count <= n < count:
                raise ArgumentError(
                    f"{what}_argnums names argument {n} of {self.title!r}, which has {count} "
                    f"positional arguments: {self.positional}"
                )
            result.add(n + count if n < 0 else n)
        if signature is None and what == "donate" and named:
            raise ArgumentError(
                f"{what}_argnames names {sorted(named)} of {self.title!r}, which has no signature: "
                f"give the numbers, as {what}_argnums"
            )
        if signature is not None:
            self._check_names(what, named, signature)
            if names is None:
                named |= {self.positional[i] for i in result if i < count}
            elif nums is None:
                result |= {self.positional.index(n) for n in named if n in self.positional}
        return frozenset(result), frozenset(named)

    def _check_names(self, what: str, named: set[str], signature: inspect.Signature) -> None:
        parameters = signature.parameters.values()
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        by_name = [p.name for p in parameters if p.kind in kinds]
        unknown = sorted(named - set(by_name))
        if any(p.kind is p.VAR_KEYWORD for p in parameters):  # it accepts any other name
            unknown = [name for name in unknown if name in signature.parameters]
        if unknown:
            raise ArgumentError(
                f"{what}_argnames names {unknown}, which {self.title!r} does not take by name; "
                f"its parameters that can be passed so are {by_name}"
            )

    def bind(
        self, args: tuple[object, ...], kwargs: dict[str, Any], read: Sequence[Any] = ()
    ) -> FlatCall:
        """Returns the flat arguments of a call; ``read`` are these if the core has read it.

        Raises `UnhashableStaticArgument` with the name of the argument.
        """
        static = self.static_nums, self.static_names
        bound = FlatCall.read(args, kwargs, *static, read)
        for where, value in bound.statics:
            self._must_hash(where, value)
        return bound

    def _must_hash(self, where: int | str, value: object) -> None:
        try:
            hash(value)
        except TypeError as error:
            raise UnhashableStaticArgument(
                f"static argument {self._argument(where)} of {self.title!r} is of type "
                f"{type(value).__qualname__}, which cannot be hashed; static arguments are part "
                "of a cache key: pass a tuple instead of a list, or make it an ordinary argument"
            ) from error

    def _argument(self, where: int | str) -> str:
        if isinstance(where, str):
            return repr(where)
        return repr(self.positional[where]) if where < len(self.positional) else str(where)

    def names(self, bound: FlatCall) -> list[str]:
        """Returns a name for each leaf, such as ``x`` or ``params['w'][0]``."""
        args, kwargs = bound.parts
        result: list[str] = []
        for number, part in args:
            base = self._argument(number).strip("'")
            base = f"args[{base}]" if base.isdigit() else base
            if part.is_leaf():
                result.append(base)
            else:
                result += [f"{base}{path}" for path in pytrees.paths(part)]
        for key, part in kwargs:
            result += [f"{key}{path}" for path in pytrees.paths(part)]
        return result

    def donated(self, bound: FlatCall) -> frozenset[int]:
        """Returns the numbers of the leaves that are donated."""
        args, kwargs = bound.parts
        flags: list[bool] = []
        for number, part in args:
            flags += [number in self.donate_nums] * part.num_leaves
        for key, part in kwargs:
            flags += [key in self.donate_names] * part.num_leaves
        return frozenset(i for i, flag in enumerate(flags) if flag)
