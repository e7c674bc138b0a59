"""Takes the pictures of pages in ``docs/assets`` with Chromium: doctor's page and a scorecard.

    python tools/screenshots.py

The scorecard is of the numpy plugin up to level 1 and needs a minute. Nothing checks that the
pictures are current, since they show versions and times.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ASSETS = Path(__file__).parents[1] / "docs/assets"
SIZE = "1100,620"
PAGES = {
    "doctor": ("doctor", "--html"),
    "scorecard": ("conform", "numpy", "--level", "1", "--html"),
}


def main() -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("there is no chromium and no google-chrome")
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    with tempfile.TemporaryDirectory() as folder:
        for name, words in PAGES.items():
            page = Path(folder, f"{name}.html")
            subprocess.run([sys.executable, "-m", "plugrt", *words, page], env=env, check=False)
            command = [
                browser, "--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={SIZE}",
                "--blink-settings=preferredColorScheme=1",
                f"--screenshot={ASSETS / name}.png", page.as_uri(),
            ]  # fmt: skip
            subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    main()
