"""Draws the pictures that pages of the guide save themselves, by running these pages: a reader who runs them gets the same.

    MPLBACKEND=Agg python docs/images/pages.py

runs each page in a folder with nothing but the table that it asks for, and puts what it saved beside this script.
"""

import doctest
import os
import shutil
import sys
import tempfile
from pathlib import Path

IMAGES = Path(__file__).resolve().parent
DOCS = IMAGES.parent
#: Pages, and the picture that each one saves.
PICTURES = {"start_here.md": "start_here.png", "which_rho.md": "which_rho.png"}


def main() -> None:
    for page, picture in PICTURES.items():
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(DOCS / "data" / "applicants.csv", folder)
            os.chdir(folder)
            flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
            if doctest.testfile(str(DOCS / page), module_relative=False, optionflags=flags, encoding="utf-8").failed:
                sys.exit(f"{page} does not print what it says: its picture stays as it was.")
            shutil.move(picture, IMAGES / picture)
            os.chdir(IMAGES)
        print(IMAGES / picture)


if __name__ == "__main__":
    main()
