"""Notebook 20 in a reader's hands: the stop button while it trains, "Run All", and a kernel that was restarted."""

import shutil
import time
from pathlib import Path

import nbformat
import pytest

manager = pytest.importorskip("jupyter_client.manager")

NOTEBOOK = Path(__file__).resolve().parents[3] / "20_train_faster_rcnn_lite.ipynb"
PATIENCE = 600  # seconds; a bound for a machine that is busy


class Reader:
    """A live kernel in a folder of the reader's own, and what its cells said."""

    def __init__(self, folder, monkeypatch):
        monkeypatch.setenv("FRCNN_LITE_LEARN", "on")
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
        self.kernel, self.client = manager.start_new_kernel(kernel_name="python3", cwd=str(folder))

    def run(self, source, meanwhile=lambda: None):
        """What a cell printed, and its error in a word or two, empty when it ended well."""
        said, error, deadline = "", "", time.monotonic() + PATIENCE
        sent = self.client.execute(source)
        while time.monotonic() < deadline:
            meanwhile()
            try:
                message = self.client.get_iopub_msg(timeout=0.2)
            except Exception:  # queue.Empty, of the client's own kind
                continue
            content = message["content"]
            if message["parent_header"].get("msg_id") != sent:
                continue
            if message["msg_type"] == "stream":
                said += content["text"]
            if message["msg_type"] == "error":
                error = f"{content['ename']}: {content['evalue']}"
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                return said, error
        raise TimeoutError(source)

    def close(self):
        self.client.stop_channels()
        self.kernel.shutdown_kernel(now=True)


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(NOTEBOOK.parent / "checkpoints", tmp_path / "checkpoints")
    return tmp_path


@pytest.fixture
def open_kernel(folder, monkeypatch):
    opened = []

    def start():
        opened.append(Reader(folder, monkeypatch))
        return opened[-1]

    yield start
    for reader in opened:
        reader.close()


def steps(folder):
    log = folder / "runs" / "20" / "live" / "log.jsonl"
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_a_stopped_training_goes_on(folder, open_kernel):
    cells = [cell.source for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    (training,) = (k for k, source in enumerate(cells) if 'runs / "live"' in source)
    first = open_kernel()
    assert first.run(cells[0])[1] == ""

    pressed = []

    def press():
        if steps(folder) >= 3 + 6 * len(pressed):  # a press can be lost; it is repeated, as by hand
            pressed.append(first.kernel.interrupt_kernel())

    said, error = first.run(cells[training], meanwhile=press)
    taken = steps(folder)
    assert 3 <= taken < 24 and f"stopped after {taken} of 24 steps" in said
    assert error.startswith("RunStopped: ") and "Run the cell that trains again" in error
    below = [first.run(source)[1] for source in cells[training + 1 :] if "result." in source]
    assert below == [error]  # whoever runs the rest first is told the same, and not 'NoneType'
    first.close()

    second = open_kernel()  # restarted: nothing is left but the folder
    for k, source in enumerate(cells):  # "Run All"
        said, error = second.run(source)
        assert error == "", f"cell {k}:\n{source}"
        assert (f"going on after {taken} of 24 steps" in said) == (k == training)
    assert steps(folder) == 24
    said, error = second.run(cells[training])  # once more: nothing is left to do
    assert error == "" and "going on after 24 of 24 steps" in said and steps(folder) == 24
