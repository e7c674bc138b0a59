"""``plugrt demo``: lists plugins, and trains a network on handwritten digits."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from plugrt.cli.output import json_option, print_json, print_line, print_table

if TYPE_CHECKING:
    from plugrt.demo.training import Progress, Result

WANTED = 0.95
"""The held-out accuracy below which the demo fails."""
_DEVICES = 4


@click.command("demo", short_help="Train a small network on handwritten digits.")
@json_option
def command(as_json: bool) -> int:
    """Train a two-layer network on handwritten digits: on one device, then on several.

    It uses jit; pmap, with a part of each batch on each device; and jit over a mesh, which also
    divides the hidden layer. The last two use four devices; the cpu backend has four virtual ones
    unless JAX_NUM_CPU_DEVICES is set. Exit code 1 if an accuracy is below 0.95.
    """
    from plugrt.demo.digits import load_digits
    from plugrt.settings.declarations import config

    digits = load_digits()
    if config.num_cpu_devices is None:
        config.update("num_cpu_devices", _DEVICES)
    import plugrt
    from plugrt.demo.training import step_count, train_jitted, train_parallel, train_sharded

    devices = plugrt.devices()[:_DEVICES]
    devices = devices[: 1 << len(devices).bit_length() - 1]  # a number that divides the batches
    if not as_json:
        _show_plugins()
    steps = step_count(digits)
    results = [
        _show_bar("jit", steps, as_json, lambda tick: train_jitted(digits, tick)),
        _show_bar(
            f"pmap x{len(devices)}",
            steps,
            as_json,
            lambda tick: train_parallel(digits, devices, tick),
        ),
        _show_bar(
            f"mesh x{len(devices)}",
            steps,
            as_json,
            lambda tick: train_sharded(digits, devices, tick),
        ),
    ]
    if as_json:
        print_json({"platform": plugrt.default_backend(), "runs": [asdict(r) for r in results]})
    else:
        _show_results(results)
    return 0 if all(r.accuracy >= WANTED for r in results) else 1


def _show_plugins() -> None:
    import plugrt
    from plugrt.plugins.selection.backends import process_backends

    choice = process_backends().initialise()
    rows = [
        (
            r.name,
            r.state,
            "" if r.priority is None else r.priority,
            f"{r.distribution} {r.version}".strip(),
            r.reason,
        )
        for r in plugrt.plugins.table()
    ]
    print_table(("plugin", "state", "priority", "distribution", "why"), rows, "Plugins found")
    client = plugrt.get_backend()
    count = len(client.devices())
    print_line(
        f"chosen: {choice.names[0]!r}, because {choice.why}; {client.platform_version}, "
        f"{count} device{'s' if count != 1 else ''}"
    )
    click.echo()


def _show_bar(title: str, steps: int, quiet: bool, train: Callable[[Progress], Result]) -> Result:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns: list[Any] = [
        TextColumn("{task.description:9}"), BarColumn(), MofNCompleteColumn(),
        TimeElapsedColumn(), TextColumn("loss {task.fields[loss]:.4f}"),
    ]  # fmt: skip
    with Progress(*columns, console=Console(stderr=quiet), disable=quiet) as bar:
        task = bar.add_task(title, total=steps, loss=math.nan)

        def tick(loss: float) -> None:
            bar.advance(task)
            if not math.isnan(loss):
                bar.update(task, loss=loss)

        return train(tick)


def _show_results(results: list[Result]) -> None:
    import plugrt

    rows = [
        (
            r.title,
            f"{r.accuracy:.3f}",
            f"{r.final_loss:.4f}",
            f"{r.compile_seconds:.2f} s",
            f"{r.steps_per_second:,.0f}",
        )
        for r in results
    ]
    print_table(
        ("run", "held-out accuracy", "loss", "compile", "steps per second"), rows, "Results"
    )
    parallel = results[-1].devices
    if parallel > 1 and plugrt.default_backend() == "cpu":
        print_line(
            f"The {parallel} devices are virtual and share this machine's {os.cpu_count()} cores: "
            "the runs on them show that the result is the same, not that it is computed faster. "
            "pmap launches once for each device, and reduces the gradients between the devices; "
            "the mesh is one program in which XLA divides the hidden layer."
        )
    low = [r.title for r in results if r.accuracy < WANTED]
    print_line(
        f"accuracy below {WANTED}: {', '.join(low)}" if low else f"all accuracies reach {WANTED}"
    )
