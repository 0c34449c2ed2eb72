"""The explorer as a person meets it: `python benchmarks/explorer.py [--seconds 4]`, with the system's own Chromium.

The server is started as `polyrelu explore` does. Printed: first picture after the page is opened; after a move of the
slider for p, the first new frame and the finished flow (its radii bracketed too); frames a second while playing, and
the time of the page's own scripts in each; bytes of page and scripts. There is no peer: the goals stand beside.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

import polyrelu

MOVES = (3.0, 1.0, 2.5, 1.5, 4.0, 1.0, 3.0)
MOVED = """(p) => new Promise((done) => {
  const began = performance.now(), seen = {}, slider = document.querySelector("#p"), data = document.body.dataset;
  slider.value = p; slider.dispatchEvent(new Event("input"));
  const look = () => {
    const now = performance.now() - began;
    if (Number(data.frames) > 0) seen.first ??= now;
    if (seen.first && data.ended === "true") seen.flow ??= now;
    if (data.state === "done") { seen.done = now; done(seen); } else setTimeout(look, 2);
  };
  look();
})"""
WATCH = """window.spent = []; const ask = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (f) => ask((now) => {
  const began = performance.now(); f(now); window.spent.push(performance.now() - began); });"""


def wait(page, expression):
    while not page.evaluate(expression):
        page.wait_for_timeout(5)


def visit(browser, address, seconds):
    page = browser.new_context(viewport={"width": 1400, "height": 860}).new_page()
    page.add_init_script(WATCH)
    began = time.perf_counter()
    page.goto(address)
    wait(page, "Number(document.body.dataset.drawn ?? 0) > 0")
    print(f"first picture      {time.perf_counter() - began:6.2f} s    (goal 1.5)", flush=True)
    wait(page, "document.body.dataset.state === 'done'")
    moves = [page.evaluate(MOVED, p) for p in MOVES]
    for name, key, goal in (
        ("first new frame", "first", 0.3),
        ("finished flow", "flow", 2),
        ("radii too", "done", None),
    ):
        times = sorted(move[key] / 1000 for move in moves)
        end = "" if goal is None else f"    (goal {goal:g})"
        print(f"{name:18s} {statistics.median(times):6.2f} s, at most {times[-1]:.2f}{end}", flush=True)
    page.evaluate(
        "document.querySelector('#time').value = 0; document.querySelector('#time').dispatchEvent(new Event('input'))"
    )
    page.click("#play")
    page.evaluate("window.spent = []")
    page.wait_for_timeout(1000 * seconds)
    spent = sorted(page.evaluate("window.spent"))
    rate, slow = len(spent) / seconds, spent[int(0.95 * len(spent))]
    print(
        f"play               {rate:.0f} frames/s (goal 60), scripts {statistics.median(spent):.1f} ms, 95 % {slow:.1f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=4, help="of play that are counted")
    options = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        sys.exit("there is no Chromium to measure with")
    command = [sys.executable, "-m", "polyrelu", "explore", "--no-browser", "--port", "0"]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as driver:
        try:
            address = re.search(r"http://\S+", server.stdout.readline()).group()
            print(f"server ready       {time.perf_counter() - began:6.2f} s", flush=True)
            browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
            visit(browser, address, options.seconds)
            browser.close()
        finally:
            server.terminate()
    size = sum(path.stat().st_size for path in Path(polyrelu.__file__).parent.joinpath("explorer", "static").iterdir())
    print(f"page and scripts   {size / 1e6:.3f} MB    (goal 1.5)")


if __name__ == "__main__":
    main()
