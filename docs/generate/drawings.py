"""Draws the pictures in ``docs/assets``: layers, stages of a call, a mesh, levels of the kit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "docs/assets"
WIDTH, GAP = 800, 20
STYLE = """
    text { font: 14px sans-serif; fill: #1c2430; text-anchor: middle }
    .soft { fill: #5b6675; font-size: 12px } rect { fill: #ffffff; stroke: #8593a6 }
    .own { fill: #dfe5ff; stroke: #3f51b5 } line { stroke: #5b6675; stroke-width: 1.5 }
    .back { fill: #f5f7fa; stroke: none } .head { fill: #5b6675 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e4e8ee } .soft { fill: #9aa6b5 } rect { fill: #222831; stroke: #6b7787 }
      .own { fill: #2b3566; stroke: #8c9eff } line { stroke: #9aa6b5 }
      .back { fill: #14181f; stroke: none } .head { fill: #9aa6b5 }
    }"""
Box = tuple[str, str]
"""A name, and a few words on it."""
PROGRAMS: list[Box] = [
    ("Python", "arrays, jit, pmap, meshes"),
    ("StableHLO, exports of JAX", "plugrt.compile, plugrt run"),
    ("Plugin authors", "plugrt conform, trace, doctor"),
]
HOST: Box = ("plugrt", "finds plugins, selects by JAX_PLATFORMS, traces, compiles, launches")
INTERFACE: Box = ("plugrt.interface", "one client interface for all plugins")
PLUGINS: list[Box] = [
    ("cpu", "jaxlib's CPU client"),
    ("cuda, tpu, any PJRT library", "the PJRT C API"),
    ("your backend in Python", "plugrt-sdk; also for JAX"),
]
DEVICES: list[Box] = [("CPU", ""), ("GPU, TPU, your chip", ""), ("your device", "")]


def row(boxes: list[Box], top: int, height: int, kind: str = "") -> list[str]:
    """Returns the elements of boxes side by side over the whole width."""
    width = (WIDTH - GAP * (len(boxes) + 1)) // len(boxes)
    made = []
    for place, (name, words) in enumerate(boxes):
        left = GAP + place * (width + GAP)
        middle, line = left + width // 2, top + (22 if words else 25)
        made.append(
            f'<rect class="{kind}" x="{left}" y="{top}" width="{width}" height="{height}" rx="6"/>'
        )
        made.append(f'<text x="{middle}" y="{line}">{name}</text>')
        if words:
            made.append(f'<text class="soft" x="{middle}" y="{line + 20}">{words}</text>')
    return made


def arrows(count: int, top: int, bottom: int) -> list[str]:
    """Returns an arrow below each of so many boxes."""
    width = (WIDTH - GAP * (count + 1)) // count
    made = []
    for place in range(count):
        x = GAP + place * (width + GAP) + width // 2
        made.append(f'<line x1="{x}" y1="{top}" x2="{x}" y2="{bottom - 6}"/>')
        made.append(
            f'<path class="head" d="M{x - 5},{bottom - 8} L{x + 5},{bottom - 8} L{x},{bottom} Z"/>'
        )
    return made


def svg(title: str, height: int, parts: Sequence[str]) -> str:
    """Returns a drawing as SVG."""
    inside = "\n  ".join(parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">
  <title>{title}</title>
  <style>{STYLE}
  </style>
  <rect class="back" width="{WIDTH}" height="{height}"/>
  {inside}
</svg>
"""


def layers() -> str:
    """Returns the drawing of the layers: who calls whom, from a program to its device."""
    parts = [
        *row(PROGRAMS, 20, 56), *arrows(3, 76, 104),
        *row([HOST], 104, 56, "own"), *row([INTERFACE], 160, 56, "own"), *arrows(3, 216, 244),
        *row(PLUGINS, 244, 56), *arrows(3, 300, 328),
        *row(DEVICES, 328, 40),
    ]  # fmt: skip
    return svg("Programs call plugrt, plugrt calls plugins, plugins call devices", 388, parts)


STAGES: list[Box] = [
    ("read", "flatten the arguments once: leaves and structure"),
    ("trace", "the function emits a StableHLO module, without devices"),
    ("place", "arguments, shardings and meshes determine the devices"),
    ("compile", "the backend makes an executable; cached in memory and on disk"),
    ("launch", "put or move arguments, execute, wrap the results as arrays"),
]


def stages() -> str:
    """Returns the drawing of the stages of a call; a call seen before leaves three out."""
    parts, top = [], 20
    for name, words in STAGES:
        kind = "" if name in ("trace", "place", "compile") else "own"
        parts.append(f'<rect class="{kind}" x="60" y="{top}" width="560" height="56" rx="6"/>')
        parts.append(f'<text x="340" y="{top + 22}">{name}</text>')
        parts.append(f'<text class="soft" x="340" y="{top + 42}">{words}</text>')
        if name != "launch":
            parts.append(f'<line x1="340" y1="{top + 56}" x2="340" y2="{top + 76}"/>')
            parts.append(f'<path class="head" d="M335,{top + 74} l10,0 l-5,8 Z"/>')
        top += 82
    middle = (48, top - 54)  # of the first box and of the last
    parts += [
        f'<line x1="620" y1="{middle[0]}" x2="700" y2="{middle[0]}"/>',
        f'<line x1="700" y1="{middle[0]}" x2="700" y2="{middle[1]}"/>',
        f'<line x1="700" y1="{middle[1]}" x2="628" y2="{middle[1]}"/>',
        f'<path class="head" d="M630,{middle[1] - 5} l0,10 l-8,-5 Z"/>',
        '<text class="soft" x="740" y="200">seen before:</text>',
        '<text class="soft" x="740" y="218">in the C core</text>',
    ]
    return svg("Read, trace, place, compile, launch; a call seen before is launched", top, parts)


def mesh() -> str:
    """Returns the drawing of a 2 by 2 mesh and of an 8 by 8 array that it divides."""
    parts = [
        '<text x="190" y="30">make_mesh((2, 2), ("x", "y"))</text>',
        '<text x="580" y="30">PartitionSpec("x", "y")</text>',
        '<text class="soft" x="40" y="180">x</text>',
        '<text class="soft" x="190" y="318">y</text>',
        '<text class="soft" x="580" y="330">shape (8, 8): a part of (4, 4) per device</text>',
    ]
    for device in range(4):
        line, column = divmod(device, 2)
        left, top = 60 + column * 130, 50 + line * 130
        parts += [
            f'<rect class="own" x="{left + 5}" y="{top + 5}" width="120" height="110" rx="6"/>',
            f'<text x="{left + 65}" y="{top + 65}">device {device}</text>',
        ]
        left = 450 + column * 130
        parts.append(f'<rect class="own" x="{left}" y="{top - 5}" width="130" height="130"/>')
        words = f"[{4 * line}:{4 * line + 4}, {4 * column}:{4 * column + 4}]"
        parts.append(f'<text x="{left + 65}" y="{top + 55}">{words}</text>')
        parts.append(f'<text class="soft" x="{left + 65}" y="{top + 76}">device {device}</text>')
    return svg(
        "A mesh of two by two devices, and an array that is divided over both axes", 340, parts
    )


LEVELS: list[Box] = [
    ("4 Scales", "launches over several devices, collectives, copies"),
    ("3 Behaves", "ownership, donation, threads, events, declared capabilities"),
    ("2 Computes", "programs compile, run and give NumPy's numbers"),
    ("1 Buffers", "arrays of every dtype and shape reach the device and come back"),
    ("0 Installs", "the plugin is found and imported without touching a device"),
]


def levels() -> str:
    """Returns the drawing of the levels of the conformance kit: each needs all lower ones."""
    parts = []
    for place, (name, words) in enumerate(LEVELS):
        top, half = 20 + place * 66, 230 + place * 38
        parts.append(f'<rect class="own" x="{400 - half}" y="{top}" width="{2 * half}" '
                     'height="56" rx="6"/>')  # fmt: skip
        parts.append(f'<text x="400" y="{top + 22}">{name}</text>')
        parts.append(f'<text class="soft" x="400" y="{top + 42}">{words}</text>')
    return svg(
        "The levels of the conformance kit, from 0 to 4; each needs all lower ones", 360, parts
    )


DRAWINGS = {"layers": layers, "stages": stages, "mesh": mesh, "levels": levels}


def main() -> None:
    """Writes the drawings."""
    for name, draw in DRAWINGS.items():
        (ASSETS / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
