"""The site as a visitor meets it: built, served, and every page opened in Chromium, wide and narrow, light and dark.

Needs Chromium and its driver; what needs no browser is tested without one. The pages are built for a project that has
an address, because those have more links.
"""

import functools
import http.server
import importlib
import json
import re
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import nbformat
import pytest
import reader

pytest.importorskip("sphinx", reason="the site is built by Sphinx")

from multigpu.failures import catalogue
from multigpu.failures.match import answer
from website import api, build, layout, lighter

# Each of these tests needs the whole site, which takes a minute to build, and most of them open it in a browser.
pytestmark = [pytest.mark.starts_early, pytest.mark.exhaustive]
TEXTS = layout.ROOT / "packages" / "multigpu" / "tests" / "texts"  # situations, tracebacks and logs, by chapter
MEGABYTES = 30
VISIT = 350_000  # bytes that a browser gets, packed, before it shows a page
WIDE, NARROW = 1280, 390
REPO = "me/it"
# Pages unlike all others, which most readers see first.
FACES = ("index.html", "search.html", "failures/index.html", "docs/verdicts.html", "docs/glossary.html")
# The height of the smallest letters of each drawing that is shown, in pixels of the screen.
LETTERS = """
return [...document.querySelectorAll('.drawing svg')].filter(svg => svg.clientWidth).map(svg => {
  const scale = svg.clientWidth / svg.viewBox.baseVal.width;
  return scale * Math.min(...[...svg.querySelectorAll('text')].map(text => text.getBBox().height));
});
"""
# Text whose contrast with its ground is below 4.5, menus and buttons included; WCAG 2.2, 1.4.3 asks it of all but large
# letters. Drawings have colours of their own, which are tested where they are made.
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
const still = document.head.appendChild(document.createElement("style"));
still.textContent = "* { transition: none !important }"; // else a button has a colour between those of the themes
const faint = [];
for (const theme of ["light", "dark"]) {
  document.documentElement.dataset.theme = document.documentElement.dataset.mode = theme;
  grounds.clear();
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const words = walker.currentNode.data.trim().slice(0, 40);
    if (!words || element.closest("svg, script, style, .headerlink") || seen.has(element)) continue;
    seen.add(element);
    if (!element.checkVisibility()) continue;
    const style = getComputedStyle(element), below = ground(element);
    const [a, b] = [light(over(parse(style.color), below)), light(below)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.49) faint.push(`${theme}: "${words}": ${ratio.toFixed(2)}`);
  }
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
ANSWERS = """
return arguments[0].map((text) => {
  const { entries: [first], sure } = window.explain(text);
  return [first?.id ?? "", sure];
});
"""
TRACEBACK = """\
Traceback (most recent call last):
  File "train.py", line 12, in <module>
    loss = model(images, query)
           ^^^^^^^^^^^^^^^^^^^^
  File "site-packages/torch/nn/modules/linear.py", line 125, in forward
    return F.linear(input, self.weight, self.bias)
RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cuda:1!
"""
# Sentences in a column that is about one word wide.
SQUEEZED = """
return [...document.querySelectorAll("article td")].map(cell => [cell.textContent.trim(), cell.clientWidth])
                                                   .filter(([text, width]) => text.length > 60 && width < 115);
"""
CUT_OFF = """
return [...document.querySelectorAll("article pre")].filter(code => code.scrollWidth > code.clientWidth)
                                                    .map(code => code.textContent.trim().slice(0, 40));
"""
SCROLLED = "return document.readyState === 'complete' && scrollY > 0"
HIDDEN_BY_HEADER = """
const shown = document.querySelector(":target");
const heading = shown.querySelector("h1, h2, h3") ?? shown;
const header = document.querySelector(".bd-header-article").getBoundingClientRect();
return [Math.round(header.bottom), Math.round(heading.getBoundingClientRect().top)];
"""
# The words that can be read between the outcomes of a page and the next cells of code, and how many blocks are hidden.
BELOW_OUTCOMES = """
const read = [];
let outcome = false, hidden = 0;
for (const block of document.querySelectorAll("article section > :not(section)")) {
  if (block.matches("div.cell")) outcome = block.querySelector(".outcome") !== null;
  else if (!block.matches("p.below")) {
    if (outcome && block.offsetHeight && block.textContent.trim()) read.push(block.textContent.trim());
    if (block.hidden) hidden += 1;
  }
}
return [read, hidden];
"""
QUOTED = "return [...document.querySelectorAll('#search-results .context')].map(quote => quote.textContent)"
FIRST_FOUND = "return document.querySelector('#search-results li a')?.href"
REQUESTS = "return performance.getEntriesByType('resource').map(entry => entry.name)"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    out = tmp_path_factory.mktemp("site") / "html"
    command = [sys.executable, "-m", "website.build", "--still", "--repo", REPO, "--out", str(out)]
    built = subprocess.run(command, cwd=layout.ROOT)
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
    """Keeps a connection open, and lets the browser keep the scripts and styles that every page has."""

    protocol_version = "HTTP/1.1"

    def end_headers(self):
        self.send_header("Cache-Control", "max-age=3600")
        super().end_headers()

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


def test_a_first_visit_is_small(site):
    assert max(lighter.first_visit(site, page) for page in ("index.html", "failures/two-devices.html")) < VISIT


def test_every_page_but_the_lists_has_a_twin_for_programs(site):
    linked = (site / "llms.txt").read_text(encoding="utf-8")
    targets = re.findall(r"\]\((\S+\.md)\)", linked)
    assert len(targets) > 480 and [target for target in targets if not (site / target).exists()] == []


def test_commands_are_shown_as_they_must_be_typed(site):
    """No option has a typographic dash, and no `__init__` has lost its underscores to bold letters.

    The name of an argument is bold, too, and a dash or a type comes after it.
    """
    changed = re.compile(
        r"(?<=\s)[–—]+[a-z]\w*|<strong>(?:init|new|len|getattr|dict|file|version|name|main)</strong>(?! [(–])"
    )
    for page in pages(site):
        text = (site / page).read_text(encoding="utf-8")
        assert changed.findall(text[text.find("<article") : text.rfind("</article")]) == [], page


@pytest.mark.parametrize("module", [name for name in api.pages() if hasattr(importlib.import_module(name), "__all__")])
def test_the_page_of_a_module_documents_its_public_names(site, module):
    page = (site / layout.API / f"{module}.html").read_text(encoding="utf-8")
    found = importlib.import_module(module)
    names = [name for name in found.__all__ if callable(getattr(found, name))]
    assert names and [name for name in names if f'.{name}"' not in page] == []
    assert api.ORDER not in page


def faults_at(browser, width: int) -> list[str]:
    """What cannot be read at this width, in either theme."""
    resize(browser, width)
    return [f"{width} px: {said}" for script in (CONTRAST, OVERFLOW) for said in browser.execute_script(script)]


def faults_on(names: list[str], address: str, browser) -> list[str]:
    """What is wrong with these pages in either theme and width, what they report and whom they ask included."""
    faults = []
    widths = [WIDE, NARROW]
    for page in names:
        browser.get(f"{address}/{page}")
        found = [f"asks {name}" for name in browser.execute_script(REQUESTS) if not name.startswith((address, "data:"))]
        for width in widths:
            found += faults_at(browser, width)
        widths.reverse()  # the next page begins with the width that the window has now
        found += [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
        faults += [f"{page}: {said}" for said in dict.fromkeys(found)]
    return faults


def test_a_page_of_every_kind_in_both_themes_and_widths(site, address, browser):
    of_each_folder = {page.rpartition("/")[0]: page for page in pages(site)}
    names = sorted({*FACES, *of_each_folder.values(), *pages(site)[::25]})
    assert len(names) > 20 and faults_on(names, address, browser) == []


def test_every_page_in_both_themes_and_widths(site, address, browser):
    assert faults_on(pages(site), address, browser) == []


def test_the_search_finds_an_error_text_without_a_server(site, browser):
    resize(browser, WIDE)
    browser.get((site / "search.html").as_uri() + "?q=found+at+least+two+devices")
    first = reader.wait_for("result of the search", lambda: browser.execute_script(FIRST_FOUND))
    assert "/failures/" in first  # by Sphinx: several pages have these words in their titles
    (answer_first, *_) = browser.find_elements("css selector", ".explained .first a")
    assert answer_first.get_property("href").endswith("failures/two-devices.html")


def test_what_the_search_quotes_begins_in_the_text_of_a_page(address, browser):
    resize(browser, WIDE)
    browser.get(f"{address}/search.html?q=shared+memory")
    quotes = reader.wait_for("quotes of pages", lambda: browser.execute_script(QUOTED))
    assert [quote for quote in quotes if re.search(r"System Settings|Light\s+Dark", quote)] == []


def test_the_search_answers_every_text_as_python_does(site, browser):
    browser.get((site / "search.html").as_uri())
    chapters = [tomllib.loads(file.read_text(encoding="utf-8")) for file in sorted(TEXTS.glob("*.toml"))]
    kinds = [text for chapter in chapters for entry in chapter.values() for text in entry.values()]
    texts = [text for kind in kinds for text in (kind if isinstance(kind, list) else [kind])]
    texts += [
        "",
        "\x1b[31mRuntimeError\x1b[0m: found at least \x1b[1mtwo\x1b[0m devices",
        "KeyError: 'epoch'\r\nhangs\x85",
        "训练报错CUDA out of memory怎么办",
        "두 GPU에서RuntimeError: Address already in use가 나옵니다",
    ]
    answers = browser.execute_script(ANSWERS, texts)
    differing = []
    for text, (name, sure) in zip(texts, answers, strict=True):
        said = answer(text)
        if (name, sure) != (said.entries[0].id if said.entries else "", said.sure):
            differing.append(f"{text.strip()[-80:]!r}: {name}, {'sure' if sure else 'a guess'}")
    assert len(texts) > 250 and len(differing) <= 0.02 * len(texts), differing


def test_a_pasted_traceback_is_answered_first_and_sent_nowhere(site, address, browser):
    browser.get(f"{address}/docs/verdicts.html")
    paste(browser, TRACEBACK)
    reader.wait_for("page of the search", lambda: browser.current_url.startswith(f"{address}/search.html#"))
    box = reader.wait_for("answer", lambda: browser.find_elements("css selector", ".explained"))[0]
    assert box.text.startswith("The text holds the message of this failure:")
    first = box.find_element("css selector", ".first a").get_attribute("href")
    assert first == f"{address}/failures/two-devices.html" and (site / "failures" / "two-devices.html").exists()
    typed = browser.find_element("css selector", "#search-results").find_element("xpath", "../form//input")
    assert typed.get_property("value").endswith(TRACEBACK.strip().rpartition("\n")[2])
    assert faults_at(browser, WIDE) + faults_at(browser, NARROW) == []


@pytest.mark.parametrize("page", ["index.html", "failures/index.html"])
def test_a_text_pasted_on_a_first_page_is_answered_there_with_its_fix(site, browser, page):
    browser.get((site / page).as_uri())
    field = browser.find_element("css selector", "#error-text")
    field.send_keys(TRACEBACK.strip())
    box = reader.wait_for("answer", lambda: browser.find_elements("css selector", ".ask-answer .explained"))[0]
    assert "The text holds the message of this failure:" in box.text and "Fix: Move one to the other" in box.text
    target = box.find_element("css selector", ".first a").get_property("href")
    assert target == (site / "failures" / "two-devices.html").as_uri()
    assert faults_at(browser, WIDE) + faults_at(browser, NARROW) == []
    browser.find_elements("css selector", "[data-text]")[1].click()
    reader.wait_for("answer", lambda: "collective" in browser.find_element("css selector", ".ask-answer .first").text)


def test_the_name_of_a_subject_leads_to_its_lesson_first(site, browser):
    for query, lesson in {"tensor+parallel": "11_", "FSDP": "10_", "DDP": "07_"}.items():
        browser.get((site / "search.html").as_uri() + f"?q={query}")
        box = reader.wait_for("answer", lambda: browser.find_elements("css selector", ".explained a"))
        assert f"/notebooks/{lesson}" in box[0].get_property("href")
        first = reader.wait_for("result", lambda: browser.execute_script(FIRST_FOUND))
        assert "/failures/" not in first, query


def test_of_a_log_of_megabytes_the_end_is_answered(site, browser):
    browser.get((site / "search.html").as_uri())
    browser.execute_script(
        "const field = document.querySelector('form.bd-search input');"
        "field.value = '🙂'.repeat(1.5e6) + ' ' + arguments[0];"
        "field.form.requestSubmit();",
        TRACEBACK.strip().rpartition("\n")[2],
    )
    box = reader.wait_for("answer", lambda: browser.find_elements("css selector", ".explained"))[0]
    assert box.find_element("css selector", ".first a").get_attribute("href").endswith("/failures/two-devices.html")


def test_a_question_is_answered_by_a_guess_above_what_sphinx_finds(site, browser):
    browser.get((site / "search.html").as_uri() + "?q=hangs+after+the+first+epoch")
    box = reader.wait_for("answer", lambda: browser.find_elements("css selector", ".explained"))[0]
    assert box.text.startswith("A guess, since")
    guessed = answer("hangs after the first epoch").entries[0].id
    assert box.find_element("css selector", ".first a").get_attribute("href").endswith(f"/failures/{guessed}.html")
    assert browser.execute_script("return document.querySelector('.explained + #search-results') !== null")
    browser.get((site / "search.html").as_uri() + "?q=kjhgf")
    assert browser.find_elements("css selector", ".explained") == []


def test_the_name_of_a_topic_leads_to_its_chapters(site, browser):
    browser.get((site / "search.html").as_uri() + "?q=Checkpoints")
    links = reader.wait_for("answer", lambda: browser.find_elements("css selector", ".explained a"))
    found = [link.get_dom_attribute("href").removeprefix("./") for link in links]
    assert found[0].startswith("notebooks/30_")
    assert found[1:] == ["failures/chapter-checkpoints.html", "failures/chapter-resuming.html"]
    assert all((site / page).exists() for page in found)


def paste(browser, text: str) -> None:
    """Copy a text, open the search and paste it there, then press Enter."""
    from selenium.webdriver import ActionChains, Keys

    browser.execute_script(
        "const area = document.body.appendChild(document.createElement('textarea'));"
        "area.value = arguments[0]; area.focus(); area.select();",
        text,
    )
    ActionChains(browser).key_down(Keys.CONTROL).send_keys("c").key_up(Keys.CONTROL).perform()
    ActionChains(browser).key_down(Keys.CONTROL).send_keys("k").key_up(Keys.CONTROL).perform()
    reader.wait_for("field", lambda: browser.execute_script("return document.activeElement.name === 'q'"))
    ActionChains(browser).key_down(Keys.CONTROL).send_keys("v").key_up(Keys.CONTROL).perform()
    ActionChains(browser).send_keys(Keys.ENTER).perform()


def test_every_failure_has_its_place_between_others(site):
    for entry in catalogue():
        page = (site / "failures" / f"{entry.id}.html").read_text(encoding="utf-8")
        assert 'title="previous page"' in page and 'title="next page"' in page, entry.id
        menu = page[page.index('<nav class="bd-links') :].partition("</nav>")[0]
        chapter = f'current active"><a class="reference internal" href="chapter-{entry.chapter}.html"'
        assert chapter in menu and 'href="../index.html"' in menu and 'href="index.html"' in menu, entry.id
        assert page.index('class="tip admonition"') < page.index("</details>"), entry.id
        assert (site / "failures" / f"{entry.id}.md").exists() and f'href="{entry.id}.md"' in page, entry.id


@pytest.mark.parametrize("page", ["index.html", "notebooks/00_start_here.html"])
def test_the_tiles_lead_to_every_notebook(site, browser, page):
    browser.get((site / page).as_uri())
    tiles = browser.find_elements("css selector", "a:has(small)")
    linked = {tile.get_dom_attribute("href").rpartition("/")[2] for tile in tiles}
    assert linked == {Path(path).with_suffix(".html").name for path in layout.notebooks()}
    to = tiles[3].get_dom_attribute("href")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].click()", tiles[3])
    reader.wait_for("notebook", lambda: browser.current_url.endswith(to))


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_first_page_shows_its_programs_and_its_tiles_whole(site, browser, width):
    resize(browser, width)
    browser.get((site / "index.html").as_uri())
    assert width == NARROW or browser.execute_script(CUT_OFF) == []
    (size,) = browser.execute_script(LETTERS)  # of the picture for this width
    assert size >= 10
    right = (
        "return Math.max(...[...document.querySelectorAll('a:has(small)')].map(a => a.getBoundingClientRect().right))"
    )
    assert browser.execute_script(right) <= browser.execute_script("return document.documentElement.clientWidth")


def test_a_narrow_page_gives_titles_and_tables_room(site, browser):
    resize(browser, NARROW)
    for page in ("docs/verdicts.html", "docs/architecture.html", "docs/glossary.html", "packages/vgpu/docs/green.html"):
        browser.get((site / page).as_uri())
        assert browser.execute_script(SQUEEZED) == [], page
    browser.get((site / "failures" / "chapter-checkpoints.html").as_uri())
    titles = browser.find_elements("css selector", ".prev-next-area a")
    assert len(titles) == 2 and titles[1].rect["y"] > titles[0].rect["y"] + 20  # one below the other
    assert all(title.rect["height"] < 130 for title in titles)


def test_an_anchor_is_not_hidden_by_the_header(address, browser):
    for width in (WIDE, NARROW):
        resize(browser, width)
        for anchor in ("notebooks/15_roi_pooling_the_rule.html#where-it-looks", "failures/index.html#the-marks"):
            browser.get("about:blank")
            browser.get(f"{address}/{anchor}")
            reader.wait_for("place of the anchor", lambda: browser.execute_script(SCROLLED))
            below, top = browser.execute_script(HIDDEN_BY_HEADER)
            assert top >= below, (width, anchor)


def test_links_to_the_project_lead_to_files_that_it_has(site):
    own = re.compile(rf'href="(https://(?:github\.com/{REPO}|colab\.research\.google\.com/github/{REPO})[^"]*)"')
    file = re.compile(r".*?/(?:blob|tree)/main/([^?#]+)")
    for page in pages(site):
        links = set(own.findall((site / page).read_text(encoding="utf-8"))) - {f"https://github.com/{REPO}"}
        missing = [link for link in links if not (found := file.match(link)) or not (layout.ROOT / found[1]).exists()]
        assert missing == [], page
        colab = [link for link in links if "colab" in link]
        assert bool(colab) == bool(re.match(r"notebooks/(\d\d_|puzzles)", page)), page
        assert page == "search.html" or any(link.endswith("?plain=1") for link in links), page


def test_pages_of_a_project_without_an_address_promise_none(tmp_path):
    source, out, notebook = tmp_path / "source", tmp_path / "out", layout.notebooks()[1]
    menu = build.toctree("", [notebook, "failures/two-devices"])
    build.write(source / "index.md", f"# Two pages\n{menu}")
    build.write(source / "failures" / "two-devices.md", "# A failure\n")
    cells = [nbformat.v4.new_markdown_cell("# A notebook"), nbformat.v4.new_code_cell("1 + 1")]
    python = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
    build.write(source / notebook, nbformat.writes(nbformat.v4.new_notebook(cells=cells, metadata=python)))
    code = (
        "import sys, pathlib; from website.build import sphinx; sys.exit(sphinx(*map(pathlib.Path, sys.argv[1:]), ''))"
    )
    built = subprocess.run([sys.executable, "-c", code, str(tmp_path), str(out)], cwd=layout.ROOT)
    assert built.returncode == 0
    assert len(pages(out)) == 4  # with the page of the search
    for page in pages(out):
        text = (out / page).read_text(encoding="utf-8")
        assert "https://github.com" not in text and "colab" not in text, page


def test_outcomes_and_solutions_are_folded(address, browser):
    resize(browser, WIDE)
    browser.get(f"{address}/notebooks/01_scatter_rows_that_vanished.html")
    seen = browser.execute_script("return document.querySelector('article').innerText")
    assert "Predict." in seen and "Solution of 01.share" in seen
    assert "def share(tensor: Tensor" not in seen and "Outcome:" not in seen
    assert "learn.predict" not in seen


def test_below_a_closed_outcome_no_text_can_be_read(address, browser):
    hidden = 0
    for page in layout.notebooks():
        browser.get(f"{address}/{page.replace('.ipynb', '.html')}")
        read, here = browser.execute_script(BELOW_OUTCOMES)
        assert read == [], page
        hidden += here
    assert hidden > 100


def test_the_text_below_an_outcome_opens_with_it_for_all_at_once_and_for_who_follows_a_link(address, browser):
    page = f"{address}/notebooks/00_start_here.html"
    browser.get(page)
    (_, closed) = browser.execute_script(BELOW_OUTCOMES)
    (first, *_) = browser.find_elements("css selector", "details:has(.outcome) > summary")
    first.click()
    reader.wait_for("text", lambda: browser.execute_script(BELOW_OUTCOMES)[0])
    (_, fewer) = browser.execute_script(BELOW_OUTCOMES)
    assert 0 < fewer < closed
    (button, *_) = [found for found in browser.find_elements("css selector", "p.below button") if found.is_displayed()]
    button.click()
    reader.wait_for("all texts", lambda: browser.execute_script(BELOW_OUTCOMES)[1] == 0)

    browser.get("about:blank")
    below = "#exercise-00-1-a-row-for-each-digit"
    browser.get(f"{page}{below}")
    reader.wait_for("heading", lambda: browser.find_element("css selector", f"{below} h3").is_displayed())
    assert browser.execute_script(BELOW_OUTCOMES)[1] > 0


def test_the_index_of_words_holds_every_kind_of_page(site):
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    names = json.loads(text[text.index("{") : text.rindex("}") + 1])["docnames"]
    for page in ("notebooks/07_ddp_by_hand", "failures/two-devices", "docs/verdicts", "api/frcnn_lite.ops", "api/vgpu"):
        assert page in names
