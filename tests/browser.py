"""A headless Chromium, where the machine has one: what a page says of itself after it was laid out."""

import json
import re
import shutil
import subprocess
from html import escape, unescape

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# Each page is laid out in a frame of its own width; what is asked is answered in an element that --dump-dom prints.
_OUTSIDE = """<!DOCTYPE html><meta charset="utf-8"><body>{frames}<pre id="answer"></pre><script>
onload = () => {{
  const ask = {ask};
  const answers = [...document.querySelectorAll("iframe")].map(frame => ask(frame.contentDocument));
  document.getElementById("answer").textContent = "ANSWER" + JSON.stringify(answers) + "END";
}};
</script></body>"""


def ask_browser(page, ask, *, widths, folder):
    """What the JavaScript function `ask(document)` returns of a page at each width; skips where there is no Chromium."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"there is no headless browser: none of {', '.join(NAMES)} is installed")
    frames = "".join(
        f'<iframe srcdoc="{escape(page)}" style="width:{width}px;height:900px;border:0"></iframe>' for width in widths
    )
    outside = folder / "outside.html"
    outside.write_text(_OUTSIDE.format(frames=frames, ask=ask), encoding="utf-8")
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command += ["--disable-background-networking", "--no-first-run", "--dump-dom", outside.as_uri()]
    done = subprocess.run(command, capture_output=True, timeout=300)
    found = re.search(r"ANSWER(\[.*\])END", done.stdout.decode("utf-8"), re.DOTALL)
    if found is None:
        pytest.skip(f"{program} does not run here: {done.stderr.decode('utf-8', 'replace')[-300:]}")
    return json.loads(unescape(found[1]))
