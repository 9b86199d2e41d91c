"""Below a question's closed outcome no text tells it: every notebook is opened in JupyterLab, and read.

Needs Chromium and its driver.
"""

import nbformat
import pytest
import reader
from reader import NOTEBOOK, all_of, show, wait_for
from selenium.webdriver.common.keys import Keys

from course.kit.learn.predict import HIDDEN, TOLD

NOTEBOOKS = sorted(path.name for path in (reader.ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
FIRST, SECOND, *_ = NOTEBOOKS
# The words that can be seen of each cell of text, by its position; null until JupyterLab has drawn all texts and
# outcomes, because it draws what is out of sight when it has time.
WORDS = f"""
const shown = window.jupyterapp && {NOTEBOOK}?.content?.widgets;
if (!shown?.length) return null;
const found = {{}};
for (const [position, cell] of shown.entries()) {{
  if (cell.model.type === "markdown") {{
    const text = cell.node.isConnected && cell.node.querySelector(".jp-MarkdownOutput");
    if (!text?.childElementCount) return null;
    const walk = document.createTreeWalker(text, NodeFilter.SHOW_TEXT), seen = [];
    while (walk.nextNode()) {{
      const {{data, parentElement}} = walk.currentNode;
      if (data.trim() && parentElement.checkVisibility()) seen.push(data);
    }}
    found[position] = seen.join(" ");
  }} else {{
    const stored = JSON.stringify(cell.model.toJSON().outputs ?? "").includes(`details class=\\\\"{TOLD}`);
    if (stored && !cell.node.querySelector("details.{TOLD}")) return null;
  }}
}}
return found;
"""
HEIGHT = f"return {NOTEBOOK}.content.widgets[arguments[0]].node.getBoundingClientRect().height"
PLACEHOLDER = f"""
const text = {NOTEBOOK}.content.widgets[arguments[0]].node.querySelector(".jp-MarkdownOutput");
return getComputedStyle(text, "::before").content;
"""
ACTIVE = f"return {NOTEBOOK}.content.activeCellIndex"
STARTED = "return Boolean(window.jupyterapp?.shell && [...window.jupyterapp.shell.widgets('main')].length)"
# The new one is opened before the old one is closed, because JupyterLab fills an empty page with its launcher.
OPEN = """
const [path, done] = arguments;
const shown = [...window.jupyterapp.shell.widgets("main")];
window.jupyterapp.commands.execute("docmanager:open", {path, factory: "Notebook"})
  .then(() => shown.filter(one => one.context?.path !== path).forEach(one => one.dispose())).then(() => done(), done);
"""
END_KERNELS = """
const [address, token, done] = arguments;
const ask = (path, method) => fetch(`${address}/api/${path}`, {method, headers: {Authorization: `token ${token}`}});
ask("kernels", "GET").then(reply => reply.json())
  .then(kernels => Promise.all(kernels.map(({id}) => ask(`kernels/${id}`, "DELETE")))).then(() => done(), done);
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("unspoiled")


@pytest.fixture(scope="module")
def browser(place):
    session = reader.start_browser(place)
    yield session
    session.quit()


@pytest.fixture(scope="module")
def lab(browser, place):
    """One JupyterLab for all notebooks, which are only read here."""
    server = reader.Lab(reader.ROOT, place)
    server.start()
    browser.get(f"{server.address}/lab?token={server.token}&reset")
    wait_for("JupyterLab", lambda: browser.execute_script(STARTED))
    yield server
    server.stop()


def read(lab, browser, name: str) -> dict[int, str]:
    """Open a notebook in place of the one before; the visible words of each of its cells of text."""
    browser.execute_async_script(OPEN, f"notebooks/{name}")
    found = words(browser)
    browser.execute_async_script(END_KERNELS, lab.address, lab.token)
    return found


def words(browser) -> dict[int, str]:
    found = wait_for("texts", lambda: browser.execute_script(WORDS))
    return {int(position): found[position] for position in sorted(found, key=int)}


def below_outcomes(name: str) -> list[int]:
    """The positions of the cells of text between an outcome and the next cell of code, or the end."""
    found, asked = [], False
    for position, cell in enumerate(nbformat.read(reader.ROOT / "notebooks" / name, as_version=4).cells):
        if cell.cell_type == "code":
            asked = any(TOLD in output.get("data", {}).get("text/html", "") for output in cell.outputs)
        elif asked:
            found.append(position)
    return found


@pytest.mark.parametrize(
    "name", [name if name == FIRST else pytest.param(name, marks=pytest.mark.exhaustive) for name in NOTEBOOKS]
)
def test_below_a_closed_outcome_no_text_can_be_read_and_all_other_text_can(lab, browser, name):
    seen = read(lab, browser, name)
    assert [position for position, text in seen.items() if not text] == below_outcomes(name)


def test_one_outcome_opens_its_text_and_one_button_opens_all(lab, browser):
    read(lab, browser, FIRST)
    first, *others = hidden = below_outcomes(FIRST)
    (told, *_) = all_of(show(browser, first - 1), f"details.{TOLD}")
    all_of(told, "summary")[0].click()
    seen = words(browser)
    assert seen[first] and not any(seen[position] for position in others)
    all_of(show(browser, others[0] - 1), "input[type=button]")[0].click()
    assert all(words(browser)[position] for position in hidden)


def test_a_hidden_cell_is_one_line_that_the_keyboard_reaches(lab, browser):
    read(lab, browser, SECOND)
    (first, *_) = below_outcomes(SECOND)
    show(browser, first - 1)
    browser.execute_script(f"{NOTEBOOK}.content.mode = 'command'; {NOTEBOOK}.content.activate()")
    browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    wait_for("next cell", lambda: browser.execute_script(ACTIVE) == first)
    assert browser.execute_script(PLACEHOLDER, first) == f'"{HIDDEN}"'
    assert 20 < browser.execute_script(HEIGHT, first) < 60
    browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    wait_for("cell after it", lambda: browser.execute_script(ACTIVE) == first + 1)
