"""Mutants of the effects of launches on their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mutants.changes import OK, Sound, before, delete_buffer, every, refusal, then
from mutants.tables import TableFaults, keep, replace_function, sound_table
from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance.function_table import new_args


def _ignore_donation(args: Any) -> None:
    """Passes all arguments as not donatable, so that none is donated."""
    count = int(args.num_args)
    args.options.non_donatable_input_indices = keep(ffi.new("int64_t[]", list(range(count))))
    args.options.num_non_donatable_input_indices = count


def _ignore_kept(args: Any) -> None:
    args.options.num_non_donatable_input_indices = 0


def _read_zeros(sound: Sound) -> Sound:
    """Returns the contents of the host's memory for a deleted array."""

    def read(args: Any) -> Any:
        if is_deleted(args.src):
            args.event = ffi.NULL
            return OK
        return sound(args)

    return read


def _launch_with_another(sound: Sound) -> Sound:
    """Uses the first argument in place of a deleted one."""

    def launch(args: Any) -> Any:
        given = args.argument_lists[0]
        for i in range(args.num_args):
            if is_deleted(given[i]):
                given[i] = given[0]
        return sound(args)

    return launch


def is_deleted(buffer: Any) -> bool:
    """Whether the correct library states that a buffer is deleted."""
    args, _kept = new_args("Buffer_IsDeleted")
    args.buffer = buffer
    sound_table().Buffer_IsDeleted(args)
    return bool(args.is_deleted)


def _refuse_device(sound: Sound) -> Sound:
    """Refuses launches that name a device."""
    return lambda args: refusal() if args.execute_device != ffi.NULL else sound(args)


def _delete_first(args: Any) -> None:
    delete_buffer(args.argument_lists[0][0])


def _give_again(sound: Sound) -> Sound:
    """Returns the first launch's result in each launch of a program without arguments."""
    first: dict[Any, Any] = {}

    def launch(args: Any) -> Any:
        if args.num_args == 0 and args.executable in first:
            args.output_lists[0][0] = first[args.executable]
            return OK
        error = sound(args)
        first[args.executable] = args.output_lists[0][0]
        return error

    return launch


def _swap_results(args: Any) -> None:
    """Exchanges two results of the first device."""
    results = args.output_lists[0]
    results[0], results[1] = results[1], results[0]


def _swap_often() -> TableFaults:
    """Returns a mutant that exchanges the results of each 97th launch on two devices."""
    swap = every(97, _swap_results)
    return replace_function(
        "LoadedExecutable_Execute",
        then(lambda args: swap(args) if args.num_devices == 2 else None),
        devices=2,
    )


MUTANTS: Mapping[str, TableFaults] = {
    "table_launches.execute_device": replace_function("LoadedExecutable_Execute", _refuse_device),
    "table_launches.donated": replace_function(
        "LoadedExecutable_Execute", before(_ignore_donation)
    ),
    "table_launches.donated.read": replace_function("Buffer_ToHostBuffer", _read_zeros),
    "table_launches.donated.launched": replace_function(
        "LoadedExecutable_Execute", _launch_with_another
    ),
    "table_launches.often": _swap_often(),
    "table_launches.kept": replace_function("LoadedExecutable_Execute", before(_ignore_kept)),
    "table_launches.again": replace_function("LoadedExecutable_Execute", _give_again),
    "table_launches.arguments": replace_function("LoadedExecutable_Execute", then(_delete_first)),
}
