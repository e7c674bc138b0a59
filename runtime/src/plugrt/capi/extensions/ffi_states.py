"""The states that the stages of a handler make and find, for a backend in Python."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from plugrt.capi.abi._abi import ffi
from plugrt.capi.extensions.ffi_types import find_type, type_name
from plugrt.errors import FailedPrecondition, InvalidArgument, NotFound

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

INSTANTIATE, PREPARE, INITIALIZE, EXECUTE = range(4)
STAGES = ("instantiate", "prepare", "initialize", "execute")
"""The names of ``XLA_FFI_ExecutionStage``, by number."""


class States:
    """States by the stage that made them, for an instance or for one launch."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[int, object]] = {}
        self._lock = threading.Lock()

    def add(self, stage: int, type_id: int, state: object) -> bool:
        """Keeps the state of a stage; False where there is one."""
        with self._lock:
            return self._made.setdefault(stage, (type_id, state))[1] is state

    def find(self, stage: int) -> tuple[int, object] | None:
        """Returns the type and the state of a stage, or None."""
        return self._made.get(stage)

    def delete(self) -> None:
        """Deletes the states, by the functions of their types."""
        while self._made:
            type_id, state = self._made.popitem()[1]
            found = find_type(type_id)
            if found is not None:
                found.delete(state)


class Context:
    """The data of one stage's call behind ``XLA_FFI_ExecutionContext``."""

    def __init__(self, target: str, stage: int, instance: States, launch: States) -> None:
        self.target = target
        self.stage = stage
        self._instance = instance
        self._launch = launch

    def set_state(self, stage: int, type_id: int, state: object) -> None:
        """Keeps a state until the executable is deleted, or until the launch is over.

        Raises `InvalidArgument` for another stage than the running one and for a type that is not
        registered with a deleter, and `FailedPrecondition` for a second state.
        """
        if stage != self.stage or stage == EXECUTE:
            raise InvalidArgument(
                f"the handler of {self.target!r} sets the state of the stage {_name(stage)} in its "
                f"stage {_name(self.stage)}; a stage before 'execute' sets its own"
            )
        found = find_type(type_id)
        if found is None or not found.deleter:
            raise InvalidArgument(
                f"the state of {self.target!r} has the type {type_name(type_id)}, for which no "
                "function is registered that deletes a state. Fix: plugrt.ffi.register_type with "
                "'type_info', before the program is compiled"
            )
        if not self._of(stage).add(stage, type_id, state):
            raise FailedPrecondition(
                f"the stage {_name(stage)} of {self.target!r} has set a state already"
            )

    def get_state(self, stage: int, type_id: int) -> Any:
        """Returns the state that a stage made; `NotFound` where it made none.

        Raises `InvalidArgument` where it is of another type.
        """
        found = self._of(stage).find(stage)
        if found is None:
            raise NotFound(f"the stage {_name(stage)} of {self.target!r} has set no state")
        if found[0] != type_id:
            raise InvalidArgument(
                f"the state of the stage {_name(stage)} of {self.target!r} has the type "
                f"{type_name(found[0])}; the stage {_name(self.stage)} requests "
                f"{type_name(type_id)}"
            )
        return found[1]

    def _of(self, stage: int) -> States:
        return self._instance if stage == INSTANTIATE else self._launch


def context_at(pointer: CData) -> Context:
    """Returns the context that a handler hands back."""
    if pointer == ffi.NULL:
        raise InvalidArgument("a handler requests its state without the context of its call (ctx)")
    found: Context = ffi.from_handle(pointer)
    return found


def _name(stage: int) -> str:
    return repr(STAGES[stage]) if 0 <= stage < len(STAGES) else str(stage)
