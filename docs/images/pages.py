"""Draws the pictures of pages that save them, by running these pages: a reader who runs the blocks gets the same pictures.

    MPLBACKEND=Agg python docs/images/pages.py

runs each page in a folder with nothing but the table that it asks for, and puts what it saved beside this script. Where there is
a headless Chromium (Debian's package chromium), it photographs the first screen of the report that *Start here* writes.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import sklearn
from PIL import Image

IMAGES = Path(__file__).resolve().parent
DOCS = IMAGES.parent
sys.path.insert(0, str(DOCS))
from notebook import cells  # noqa: E402

#: Pages, and the picture that each one saves.
PICTURES = {"start_here.md": "start_here.png", "which_rho.md": "which_rho.png"}
#: What a page writes to be read in a browser, and the picture of its first screen.
SCREENS = {"start_here.md": ("report.html", "start_here_report.png")}


def run(page: str) -> None:
    """All code of a page, in the current folder. What it prints is compared by the tests, not here."""
    names = {"__name__": "__main__"}
    for kind, code, _ in cells((DOCS / page).read_text(encoding="utf-8")):
        if kind == "code":
            exec(compile(code, page, "exec"), names)
    sklearn.set_config(enable_metadata_routing=False)


def photograph(report: Path, picture: Path) -> None:
    """The first screen of a report in light colours; 256 of them, of a method that keeps rare ones, make the file small."""
    settings = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1120,985"]
    own = [f"--user-data-dir={report.parent / 'profile'}", "--blink-settings=preferredColorScheme=1"]
    subprocess.run(
        ["chromium", *settings, *own, f"--screenshot={picture}", report.as_uri()], check=True, capture_output=True
    )
    Image.open(picture).convert("RGB").quantize(256, method=2).save(picture, optimize=True)


def main() -> None:
    for page, picture in PICTURES.items():
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(DOCS / "data" / "applicants.csv", folder)
            os.chdir(folder)
            run(page)
            shutil.move(picture, IMAGES / picture)
            print(IMAGES / picture)
            if page in SCREENS and shutil.which("chromium"):
                report, screen = SCREENS[page]
                photograph(Path(report).resolve(), IMAGES / screen)
                print(IMAGES / screen)
            os.chdir(IMAGES)


if __name__ == "__main__":
    main()
