"""The site as a visitor meets it: built, served, and every page opened in Chromium, wide and narrow, light and dark.

Needs Chromium and its driver; what needs no browser is tested without one.
"""

import functools
import http.server
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import reader

pytest.importorskip("sphinx", reason="the site is built by Sphinx")

from website import layout

MEGABYTES = 30
WIDE, NARROW = 1280, 390
# Text whose contrast with its ground is below 4.5 (3 for large letters), WCAG 2.2, 1.4.3. Drawings have colours of
# their own, which are tested where they are made.
CONTRAST = """
const parse = colour => (colour.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
const over = (top, below) => {
  const a = top.length > 3 ? top[3] : 1;
  return [0, 1, 2].map(k => top[k] * a + below[k] * (1 - a));
};
const grounds = new Map();
const ground = element => {
  if (!element) return document.documentElement.dataset.theme === "dark" ? [0, 0, 0] : [255, 255, 255];
  if (!grounds.has(element)) {
    const own = parse(getComputedStyle(element).backgroundColor);
    grounds.set(element, own.length > 3 && own[3] === 0 ? ground(element.parentElement)
                                                        : over(own, ground(element.parentElement)));
  }
  return grounds.get(element);
};
const light = rgb => rgb.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
                        .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
const seen = new Set(), faint = [];
const walker = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  const words = walker.currentNode.data.trim().slice(0, 40);
  if (!words || element.closest("svg, script, style, .headerlink") || seen.has(element)) continue;
  seen.add(element);
  if (!element.checkVisibility()) continue;
  const style = getComputedStyle(element), below = ground(element);
  const [a, b] = [light(over(parse(style.color), below)), light(below)];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
  if (ratio < (large ? 3 : 4.5) - 0.01) faint.push(`"${words}": ${ratio.toFixed(2)}`);
}
return faint;
"""
# What is wider than the page without a bar to scroll it, and words outside their drawing.
OVERFLOW = """
const page = document.documentElement, wide = [];
const scrolls = element => element && (["auto", "scroll"].includes(getComputedStyle(element).overflowX)
                                       || scrolls(element.parentElement));
if (page.scrollWidth > page.clientWidth + 1) {
  const outside = [...document.querySelectorAll("article *")].filter(element =>
    element.getBoundingClientRect().right > page.clientWidth + 1 && !scrolls(element.parentElement));
  wide.push(`the page is ${page.scrollWidth} px wide: `
            + outside.slice(-3).map(element => `${element.tagName} "${element.textContent.trim().slice(0, 40)}"`));
}
for (const drawing of document.querySelectorAll("article .drawing svg")) {
  const edge = drawing.getBoundingClientRect();
  for (const text of drawing.querySelectorAll("text")) {
    const box = text.getBoundingClientRect();
    if (box.width && (box.left < edge.left - 2 || box.right > edge.right + 2))
      wide.push(`"${text.textContent}" leaves its drawing`);
  }
}
return wide;
"""
FIRST_FOUND = "return document.querySelector('#search-results li a')?.href"
REQUESTS = "return performance.getEntriesByType('resource').map(entry => entry.name)"
THEME = "document.documentElement.dataset.theme = document.documentElement.dataset.mode = arguments[0]"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    out = tmp_path_factory.mktemp("site") / "html"
    built = subprocess.run([sys.executable, "-m", "website.build", "--still", "--out", str(out)], cwd=layout.ROOT)
    assert built.returncode == 0  # a link or an anchor that leads nowhere is an error of the build
    return out


@pytest.fixture(scope="module")
def address(site):
    """The site, served as `python -m http.server` does."""
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Not a line for each of thousands of requests."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    session = reader.start_browser(tmp_path_factory.mktemp("browser"))
    yield session
    session.quit()


def pages(site: Path) -> list[str]:
    """Every page; the theme keeps templates of its own in _static."""
    found = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    return [page for page in found if not page.startswith("_static/")]


def resize(browser, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def test_the_site_is_small_and_complete(site):
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < MEGABYTES * 1e6
    shown = set(pages(site))
    assert {path.replace(".ipynb", ".html") for path in layout.notebooks()} <= shown
    assert len([page for page in shown if page.startswith("failures/")]) > 150


def test_every_page_in_both_themes_and_widths(site, address, browser):
    faults = []
    for page in pages(site):
        resize(browser, WIDE)
        browser.get(f"{address}/{page}")
        if browser.execute_script("return document.querySelector('article') === null"):
            continue  # the page of the search, whose text is made as one types
        found = [f"asks {name}" for name in browser.execute_script(REQUESTS) if not name.startswith((address, "data:"))]
        for theme in ("light", "dark"):
            browser.execute_script(THEME, theme)
            found += [f"{theme}: {said}" for said in browser.execute_script(CONTRAST)]
        found += [f"{WIDE} px: {said}" for said in browser.execute_script(OVERFLOW)]
        resize(browser, NARROW)
        found += [f"{NARROW} px: {said}" for said in browser.execute_script(OVERFLOW)]
        found += [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
        faults += [f"{page}: {said}" for said in dict.fromkeys(found)]
    assert faults == []


def test_the_search_finds_an_error_text_without_a_server(site, browser):
    resize(browser, WIDE)
    browser.get((site / "search.html").as_uri() + "?q=found+at+least+two+devices")
    first = reader.wait_for("result of the search", lambda: browser.execute_script(FIRST_FOUND))
    assert first.partition("#")[0].partition("?")[0].endswith("failures/two-devices.html")


def test_outcomes_and_solutions_are_folded(address, browser):
    resize(browser, WIDE)
    browser.get(f"{address}/notebooks/01_scatter_rows_that_vanished.html")
    seen = browser.execute_script("return document.querySelector('article').innerText")
    assert "Predict." in seen and "Solution of 01.rows_lost" in seen
    assert "def rows_lost(sizes: Sequence" not in seen and "Outcome:" not in seen
    assert "learn.predict" not in seen


def test_the_index_of_words_holds_every_kind_of_page(site):
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    names = json.loads(text[text.index("{") : text.rindex("}") + 1])["docnames"]
    for page in ("notebooks/07_ddp_by_hand", "failures/two-devices", "docs/verdicts", "api/frcnn_lite.ops", "api/vgpu"):
        assert page in names
