"""What a reader does in JupyterLab: run all cells, move a slider, search. Needs Chromium and its driver."""

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
SECONDS = 180  # for one step, on a machine with two busy cores
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,1000"),
    *(
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-quic",
    ),
]
NOTEBOOK = "[...window.jupyterapp.shell.widgets('main')][0]"  # no window manager, so no widget is ever "current"


def wait_for(what: str, condition: Callable[[], object]) -> object:
    """The first true value of `condition`, tried until the patience of a step is over."""
    from selenium.common.exceptions import StaleElementReferenceException

    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(StaleElementReferenceException):  # drawn anew while it was looked at
            if value := condition():
                return value
        time.sleep(0.2)
    pytest.fail(f"no {what} within {SECONDS} s")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture
def lesson(request, tmp_path) -> Path:
    """The notebook whose name begins with the parameter, in a copy of the folder that the reader may change."""
    found = sorted(NOTEBOOKS.glob(f"{request.param}*.ipynb"))
    copy = shutil.copytree(NOTEBOOKS, tmp_path / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    return copy / found[0].name


@pytest.fixture
def lab(lesson, tmp_path):
    """A JupyterLab of its own, which knows nothing of the user's settings; yields the address of the notebook."""
    port, token = free_port(), secrets.token_hex(16)
    own = {
        name: str(tmp_path / name)
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "XDG_STATE_HOME", "IPYTHONDIR")
    }
    # A kernel that sees pytest or CI in its environment would not take the reader for a person.
    outside = {name: value for name, value in os.environ.items() if name not in ("PYTEST_CURRENT_TEST", "CI")}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}", "--ip=127.0.0.1"]
    settings = [f"--ServerApp.root_dir={lesson.parent}", f"--IdentityProvider.token={token}"]
    settings += [
        "--LabApp.expose_app_in_browser=True",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--ServerApp.port_retries=0",
    ]
    log = (tmp_path / "lab.log").open("w+")
    server = subprocess.Popen([*command, *settings], env={**outside, **own}, cwd=tmp_path, stdout=log, stderr=log)

    def answers() -> bool:
        if server.poll() is not None:
            log.seek(0)
            pytest.fail(f"JupyterLab ended at once:\n{log.read()}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/status?token={token}", timeout=5) as reply:
                return reply.status == 200
        except urllib.error.URLError:
            return False

    try:
        wait_for("answer from JupyterLab", answers)
        yield f"http://127.0.0.1:{port}/lab/tree/{lesson.name}?token={token}&reset"
    finally:
        server.terminate()  # it shuts its kernels down
        try:
            server.wait(timeout=30)
        except subprocess.TimeoutExpired:
            server.kill()
        log.close()


@pytest.fixture
def browser(tmp_path):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("chromium and chromedriver are not both on PATH (Debian: apt install chromium chromium-driver)")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'chromium'}"):
        options.add_argument(flag)
    session = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    session.set_script_timeout(SECONDS)
    yield session
    session.quit()


def run_all(browser) -> list[dict]:
    """Run every cell as the menu does, wait for the last, and return the cells as they would be saved."""
    ready = f"return !!(window.jupyterapp && {NOTEBOOK}?.sessionContext?.session?.kernel?.status === 'idle')"
    wait_for("kernel", lambda: browser.execute_script(ready))
    browser.execute_async_script(
        "const done = arguments[0]; const run = name => window.jupyterapp.commands.execute(`notebook:${name}`);"
        "run('clear-all-cell-outputs').then(() => run('run-all-cells')).then(done, done)"
    )
    # The promise of "run all" is settled by the first error, even one on purpose, with cells still waiting their turn.
    cells = f"return {NOTEBOOK}.content.model.toJSON().cells"
    waiting = f"{cells}.some(cell => cell.cell_type === 'code' && cell.execution_count === null)"
    wait_for("end of the run", lambda: not browser.execute_script(waiting))
    return browser.execute_script(cells)


def show(browser, position: int):
    """Scroll to a cell, which JupyterLab may not have drawn before, and return its element."""
    browser.execute_script(f"{NOTEBOOK}.content.activeCellIndex = {position}")
    browser.execute_async_script(f"{NOTEBOOK}.content.scrollToItem({position}).then(arguments[0], arguments[0])")
    return browser.execute_script(f"return {NOTEBOOK}.content.widgets[{position}].node")


@pytest.mark.parametrize("lesson", ["02_"], indirect=True)
def test_run_all_cells_and_move_a_slider(lab, browser):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    browser.get(lab)
    cells = run_all(browser)

    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        raised = [output["evalue"] for output in cell["outputs"] if output["output_type"] == "error"]
        assert not raised or "raises-exception" in cell["metadata"].get("tags", []), raised

    widgets = [k for k, cell in enumerate(cells) if "widget" in cell["metadata"].get("tags", [])]
    assert widgets, "notebook 02 has no cell with the tag 'widget'"
    cell = show(browser, widgets[0])
    (handle, *_) = wait_for("slider", lambda: cell.find_elements(By.CSS_SELECTOR, ".noUi-handle"))
    before = wait_for("figure", lambda: figure_text(cell))
    handle.send_keys(Keys.ARROW_RIGHT)
    wait_for("change of the figure", lambda: figure_text(cell) not in ("", before))


def figure_text(cell) -> str:
    """What the drawings of a cell say in words: titles, descriptions, labels."""
    from selenium.webdriver.common.by import By

    drawings = cell.find_elements(By.CSS_SELECTOR, ".jp-OutputArea svg")
    return "\n".join(drawing.get_attribute("textContent") for drawing in drawings)


@pytest.mark.parametrize("lesson", ["failures"], indirect=True)
def test_search_the_failures(lab, browser):
    from selenium.webdriver.common.by import By

    browser.get(lab)
    run_all(browser)
    cell = show(browser, 1)
    (field,) = wait_for("field", lambda: cell.find_elements(By.CSS_SELECTOR, ".jp-OutputArea textarea"))
    field.send_keys("found at least two devices")

    def titles() -> list[str]:
        return [e.get_attribute("textContent") for e in cell.find_elements(By.CSS_SELECTOR, ".jp-OutputArea summary")]

    (title,) = wait_for("one result", lambda: found if len(found := titles()) == 1 else None)
    assert title.startswith("two-devices:")
