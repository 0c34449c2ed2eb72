"""One thread per worker, the same few hypothesis examples every time, and a real browser for the pages."""

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from polyrelu.threads import prepare

sys.path.insert(0, str(Path(__file__).parent))  # for waiting.py

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what it puts in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

# xdist's workers share the cores, and for small tensors more threads are slower anyway; so for what tests start, too.
os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
prepare()

# No deadline, and no complaint about slowness: shared machines stall. Derandomised: a red run stays red.
slow = [HealthCheck.too_slow]
settings.register_profile("polyrelu", deadline=None, max_examples=25, derandomize=True, suppress_health_check=slow)
settings.load_profile("polyrelu")

# Ratio of luminances (WCAG 2.1) of the text of every element against the first opaque background under it.
CONTRASTS = """(selector) => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => parts(colour).slice(0, 3).map((part) => part / 255)
    .map((part) => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4)
    .reduce((sum, part, i) => sum + part * [.2126, .7152, .0722][i], 0);
  const under = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    return parts(colour)[3] === 0 && element.parentElement ? under(element.parentElement) : colour;
  };
  return [...document.querySelectorAll(selector)].map((element) => {
    const [a, b] = [getComputedStyle(element).color, under(element)].map(light);
    return [element.outerHTML.slice(0, 80), (Math.max(a, b) + .05) / (Math.min(a, b) + .05)];
  });
}"""


@pytest.fixture(autouse=True)
def ctrl_c_is_as_it_was():
    """A test that leaves a handler behind would end the process in another test."""
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) == before


@pytest.fixture(scope="module")
def browser():
    """The system's own Chromium, with time for everything; its driver's event loop ends with each module."""
    from waiting import LIMIT

    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium")
    with playwright.sync_playwright() as driver:
        words, limit = ["--no-sandbox", "--disable-quic"], 1000 * LIMIT
        started = driver.chromium.launch(executable_path=program, args=words, timeout=limit)
        made = started.new_context

        def patient(**options):
            context = made(**options)
            context.set_default_timeout(limit)
            return context

        started.new_context = patient
        yield started
        started.close()


@pytest.fixture(scope="session")
def contrasts():
    """A script that tells the contrast of every element that a selector finds; 4.5 is enough for text."""
    return CONTRASTS
