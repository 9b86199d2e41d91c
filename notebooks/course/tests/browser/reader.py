"""A reader at a browser: a JupyterLab of their own, Chromium, and what hands and eyes do with a notebook."""

import contextlib
import http.client
import importlib.util
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
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
OWN = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "XDG_STATE_HOME", "LOCALAPPDATA", "IPYTHONDIR")


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


def load_tasks():
    """tasks.py, which is no module of the package."""
    spec = importlib.util.spec_from_file_location("tasks_of_the_project", ROOT / "tasks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Lab:
    """What `make lab` starts, on a copy of the notebooks and with no settings of the user's; may be started again."""

    def __init__(self, project: Path, home: Path) -> None:
        self.project, self.home = project, home
        # A kernel that sees pytest or CI in its environment would not take the reader for a person.
        outside = {name: value for name, value in os.environ.items() if name not in ("PYTEST_CURRENT_TEST", "CI")}
        self.tasks = load_tasks()
        outside |= {"JUPYTER_CONFIG_PATH": self.tasks.lab_environment()["JUPYTER_CONFIG_PATH"]}
        outside.pop("FRCNN_LITE_LEARN", None)
        self.environment = {**outside, **{name: str(home / name.lower()) for name in OWN}}
        stored = map(str, (project / "notebooks").glob("*.ipynb"))
        trust = [sys.executable, "-m", "jupyter", "trust", *stored]
        subprocess.run(trust, env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def start(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.address, self.token = f"http://127.0.0.1:{port}", secrets.token_hex(16)
        command = self.tasks.lab_command(Path(sys.executable), self.project)
        command += ["--no-browser", "--allow-root", f"--port={port}", "--ip=127.0.0.1", "--ServerApp.port_retries=0"]
        command += [f"--IdentityProvider.token={self.token}", "--LabApp.expose_app_in_browser=True"]
        self.log = (self.home / "lab.log").open("a+")
        said = {"stdout": self.log, "stderr": self.log}
        self.server = subprocess.Popen(command, env=self.environment, cwd=self.project, **said)
        wait_for("answer from JupyterLab", self._answers)

    def _answers(self) -> bool:
        if self.server.poll() is not None:
            self.log.seek(0)
            pytest.fail(f"JupyterLab ended at once:\n{self.log.read()}")
        try:
            with urllib.request.urlopen(f"{self.address}/api/status?token={self.token}", timeout=5) as reply:
                return reply.status == 200
        except (OSError, http.client.HTTPException):  # nobody listens yet, or the connection ends without an answer
            return False

    def stop(self) -> None:
        """End the server, which shuts its kernels down."""
        self.server.terminate()
        try:
            self.server.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.server.kill()
        self.log.close()

    def open(self, browser, name: str, folder: str = "notebooks") -> None:
        """Show a notebook and wait until its kernel answers."""
        browser.get(f"{self.address}/lab/tree/{folder}/{name}?token={self.token}&reset")
        ready = f"return !!(window.jupyterapp && {NOTEBOOK}?.sessionContext?.session?.kernel?.status === 'idle')"
        wait_for("kernel", lambda: browser.execute_script(ready))
        # JupyterLab writes what it has to write about the kernel into the notebook once it knows it.
        known = f"return !!{NOTEBOOK}.content.model.getMetadata('language_info')?.version"
        wait_for("language of the kernel", lambda: browser.execute_script(known))


def start_browser(home: Path):
    """Chromium without a window; skips the test where it is not installed."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("chromium and chromedriver are not both on PATH (Debian: apt install chromium chromium-driver)")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={home / 'chromium'}"):
        options.add_argument(flag)
    session = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    session.set_script_timeout(SECONDS)
    return session


def cells_of(browser) -> list[dict]:
    """The cells as JupyterLab holds them: what an editor without a manager of files of ours would save."""
    return json.loads(browser.execute_script(f"return JSON.stringify({NOTEBOOK}.content.model.toJSON().cells)"))


def run_all(browser) -> list[dict]:
    """Run every cell as the menu does, wait for the last, and return the cells."""
    browser.execute_async_script(
        "const done = arguments[0]; const run = name => window.jupyterapp.commands.execute(`notebook:${name}`);"
        "run('clear-all-cell-outputs').then(() => run('run-all-cells')).then(done, done)"
    )
    # The promise of "run all" is settled by the first error, even one on purpose, with cells still waiting their turn.
    cells = f"{NOTEBOOK}.content.model.toJSON().cells"
    waiting = f"return {cells}.some(cell => cell.cell_type === 'code' && cell.execution_count === null)"
    wait_for("end of the run", lambda: not browser.execute_script(waiting))
    return cells_of(browser)


def show(browser, position: int):
    """Scroll to a cell, which JupyterLab may not have drawn before, and return its element."""
    browser.execute_script(f"{NOTEBOOK}.content.activeCellIndex = {position}")
    browser.execute_async_script(f"{NOTEBOOK}.content.scrollToItem({position}).then(arguments[0], arguments[0])")
    node = f"{NOTEBOOK}.content.widgets[{position}].node"
    return wait_for("cell", lambda: browser.execute_script(f"return {node}.isConnected && {node}"))


def tagged(cells: list[dict], tag: str) -> list[int]:
    """The positions of the cells that carry a tag."""
    return [k for k, cell in enumerate(cells) if tag in cell["metadata"].get("tags", [])]


def all_of(element, selector: str) -> list:
    """The elements inside another that a CSS selector finds."""
    from selenium.webdriver.common.by import By

    return element.find_elements(By.CSS_SELECTOR, selector)


def figure_text(cell) -> str:
    """What the drawings of a cell say in words: titles, descriptions, labels."""
    return "\n".join(drawing.get_attribute("textContent") for drawing in all_of(cell, ".jp-OutputArea svg"))


def move_a_slider(browser, position: int) -> None:
    """Press an arrow key on the first slider of a cell, and wait until its figure says something else."""
    from selenium.webdriver.common.keys import Keys

    cell = show(browser, position)
    (handle, *_) = wait_for("slider", lambda: all_of(cell, ".noUi-handle"))
    before = wait_for("figure", lambda: figure_text(cell))
    handle.send_keys(Keys.ARROW_RIGHT)
    wait_for("change of the figure", lambda: figure_text(cell) not in ("", before))


def answer(browser, position: int) -> None:
    """Choose the first answer of every prediction of a cell."""
    cell = show(browser, position)
    for group in wait_for("buttons", lambda: all_of(cell, ".widget-radio-box")):
        all_of(group, "input")[0].click()
    wait_for("thanks", lambda: "Kept:" in cell.get_attribute("textContent"))


def save(browser) -> None:
    """Save as Ctrl-S does, and wait until it is done."""
    browser.execute_async_script(f"{NOTEBOOK}.context.save().then(arguments[0], arguments[0])")
    wait_for("saved notebook", lambda: not is_changed(browser))


def is_changed(browser) -> bool:
    """Whether JupyterLab would ask to save the notebook."""
    return browser.execute_script(f"return {NOTEBOOK}.context.model.dirty")


def severe(browser) -> list[str]:
    """What the console of the browser has reported as an error since it was last asked."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def restart_kernel(browser) -> None:
    """Restart the kernel as the menu does once the question is answered."""
    browser.execute_async_script(f"{NOTEBOOK}.sessionContext.session.kernel.restart().then(arguments[0], arguments[0])")
    status = f"return {NOTEBOOK}.sessionContext.session.kernel.status"
    wait_for("restarted kernel", lambda: browser.execute_script(status) == "idle")


def set_source(browser, position: int, text: str) -> None:
    """Write something else into a cell."""
    browser.execute_script(f"{NOTEBOOK}.content.model.cells.get({position}).sharedModel.setSource(arguments[0])", text)
