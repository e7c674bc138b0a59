"""Draws ``docs/assets/layers.svg``: what calls what, from a program to its device."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs/assets/layers.svg"
WIDTH, HEIGHT, GAP = 800, 388, 20
STYLE = """
    text { font: 14px sans-serif; fill: #1c2430; text-anchor: middle }
    .soft { fill: #5b6675; font-size: 12px } rect { fill: #ffffff; stroke: #8593a6 }
    .own { fill: #dfe5ff; stroke: #3f51b5 } line { stroke: #5b6675; stroke-width: 1.5 }
    .back { fill: #f5f7fa; stroke: none } .head { fill: #5b6675 }
    @media (prefers-color-scheme: dark) {
      .back { fill: #e9edf3 }
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


def picture() -> str:
    """Returns the drawing as SVG."""
    parts = [
        *row(PROGRAMS, 20, 56), *arrows(3, 76, 104),
        *row([HOST], 104, 56, "own"), *row([INTERFACE], 160, 56, "own"), *arrows(3, 216, 244),
        *row(PLUGINS, 244, 56), *arrows(3, 300, 328),
        *row(DEVICES, 328, 40),
    ]  # fmt: skip
    inside = "\n  ".join(parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">
  <title>Programs call plugrt, plugrt calls plugins, plugins call devices</title>
  <style>{STYLE}
  </style>
  <rect class="back" width="{WIDTH}" height="{HEIGHT}"/>
  {inside}
</svg>
"""


def main() -> None:
    """Writes the drawing."""
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
