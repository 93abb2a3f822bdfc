"""Records the figure and the output of gallery scripts whose data or library a reader has to download.

    SKFAIRRANK_DATA=FOLDER MPLBACKEND=Agg python docs/images/recorded.py [plot_figure3_german ...]

runs these scripts, or all that were recorded before, and puts NAME.png and NAME.txt into the folder `recorded`. Sphinx does not
run a script that has been recorded: its page shows the two.
"""

import contextlib
import io
import runpy
import sys
from pathlib import Path

import matplotlib.pyplot as plt
from PIL import Image

FOLDER = Path(__file__).resolve().with_suffix("")
EXAMPLES = FOLDER.parents[2] / "examples"


def record(name: str) -> None:
    """The figure in 256 colours, of a method that keeps rare ones, which makes the file small."""
    picture, printed = FOLDER / f"{name}.png", io.StringIO()
    sys.argv = [f"{name}.py"]
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    plt.savefig(picture, dpi=90)
    plt.close("all")
    Image.open(picture).convert("RGB").quantize(256, method=2).save(picture, optimize=True)
    picture.with_suffix(".txt").write_text(printed.getvalue(), encoding="utf-8")
    print(picture)


if __name__ == "__main__":
    sys.path.insert(0, str(EXAMPLES))
    for name in sys.argv[1:] or [picture.stem for picture in sorted(FOLDER.glob("*.png"))]:
        record(name)
