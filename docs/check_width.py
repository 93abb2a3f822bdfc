"""Measures every page of the built site in a headless Chromium, on a desktop and on a phone, light and dark.

    python docs/check_width.py docs/_build/html

fails where a page scrolls sideways, where something lies beyond the screen, where a code block is cut at 1280 pixels, where a
table, or code on a phone, can be scrolled but shows no hint of it, and where a page is too tall to be read.
"""

import contextlib
import http.server
import json
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path

WIDTHS = (1280, 390)
TALLEST = 10_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")

#: Loads each page into frames of the given widths, and sends what it finds there to the server below.
MEASURE = """<!doctype html><body><script>
const pages = PAGES, widths = WIDTHS, found = [];
const wait = (box, event) => new Promise(resolve => box.addEventListener(event, resolve, {once: true}));

async function measure(frame, page) {
  frame.width = widths[0];
  const loaded = wait(frame, "load");
  frame.src = page;
  await loaded;
  const inside = frame.contentWindow, root = frame.contentDocument.documentElement;
  await inside.MathJax?.startup?.promise;
  for (const image of root.querySelectorAll("img")) {
    image.loading = "eager";
    await image.decode().catch(() => {});
  }
  const frames = n => n ? new Promise(inside.requestAnimationFrame).then(() => frames(n - 1)) : null;
  const scrolls = box => ["auto", "scroll"].includes(inside.getComputedStyle(box).overflowX);
  const around = box => {
    do box = box.parentElement; while (box && !scrolls(box));
    return box;
  };
  // What sticks out farthest of a box, of what scrolls with it.
  const widest = box => [...box.querySelectorAll("*")].filter(inner => around(inner) == box).reduce(
    (a, b) => b.getBoundingClientRect().right > a.getBoundingClientRect().right ? b : a);
  for (const width of widths) for (const theme of ["light", "dark"]) {
    frame.width = width;
    root.dataset.theme = theme;
    await frames(2);
    const say = (what, box) => found.push([`${page} at ${width}, ${theme}: ${what}`, box ? box.outerHTML.slice(0, 200) : ""]);
    const screen = root.clientWidth, isDesktop = width == widths[0];
    if (root.scrollWidth > screen) say("the page scrolls sideways");
    if (isDesktop && root.scrollHeight > TALLEST) say(`the page is ${root.scrollHeight} pixels tall`);
    for (const box of root.querySelectorAll("main *")) {
      if (!box.checkVisibility({visibilityProperty: true})) continue;
      const style = inside.getComputedStyle(box);
      const isWide = box.scrollWidth > box.clientWidth + 1 && style.display != "inline";
      if (isWide && box.matches("pre") && isDesktop) say("a code block is cut", box);
      else if (isWide && scrolls(box) && style.maskImage == "none") {
        say(`${box.localName}.${box.className} scrolls sideways without a hint`, widest(box));
      };
      const {left, right} = box.getBoundingClientRect();
      const isMath = box.matches("div.math > mjx-container");
      if (isMath && left < box.parentElement.getBoundingClientRect().left - 1) say("begins too far left", box);
      if (!around(box) && right > screen + 1) say("lies beyond the screen", box);
    }
  }
}

async function work() {
  const frame = document.body.appendChild(document.createElement("iframe"));
  frame.height = 900;
  for (const page of pages) await measure(frame, page);
}
work()
  .catch(error => found.push([String(error), ""]))
  .then(() => fetch("/found", {method: "POST", body: JSON.stringify(found)}));
</script>"""


class Server(http.server.SimpleHTTPRequestHandler):
    """The site, the script above as /measure, and /found for what the script found."""

    def __init__(self, *args, found, script, **kwargs):
        self.found, self.script = found, script
        super().__init__(*args, **kwargs)

    def do_GET(self):
        if self.path != "/measure":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.script.encode())

    def do_POST(self):
        self.found.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def end_headers(self):
        self.send_header("Cache-Control", "max-age=3600")  # pages share styles and scripts
        super().end_headers()

    def log_message(self, *args):
        pass


def findings(browser: str, site: Path, pages: list[str]) -> list[list[str]] | None:
    """What is wrong on which page, each with the beginning of the element that is at fault; None if the browser does not work."""
    script = MEASURE.replace("PAGES", json.dumps(pages)).replace("WIDTHS", json.dumps(WIDTHS))
    found: queue.Queue = queue.Queue()
    handler = partial(Server, directory=site, found=found, script=script.replace("TALLEST", str(TALLEST)))
    new_profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # the browser still writes as it ends
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, new_profile as profile:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/measure"
        settings = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",  # in a container there is little shared memory
            "--window-size=1500,1000",
            f"--user-data-dir={profile}",
        ]
        process = subprocess.Popen([browser, *settings, address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(300):
                with contextlib.suppress(queue.Empty):
                    return found.get(timeout=2)
                if process.poll() is not None:
                    break
            return None
        finally:
            process.terminate()
            process.wait()
            server.shutdown()


def main() -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print("SKIPPED: the width of the pages was not checked, there is no Chromium (apt-get install chromium).")
        return
    site = Path(sys.argv[1]).resolve()
    names = [path.relative_to(site) for path in site.rglob("*.html")]
    pages = sorted(
        name.as_posix() for name in names if name.parts[0] not in ("_static", "_modules")
    )  # source code is wider
    found = findings(browser, site, sys.argv[2:] or pages)
    if found is None:
        print(f"SKIPPED: the width of the pages was not checked, {browser} ends or gives no answer within ten minutes.")
        return
    for where, what in found:
        print(f"{where}\n    {what}" if what else where)
    if found:
        sys.exit(f"{len(found)} faults of width in {len(pages)} pages")
    print(f"{len(pages)} pages fit at {' and '.join(map(str, WIDTHS))} pixels, light and dark.")


if __name__ == "__main__":
    main()
