"""The stop button of a notebook, pressed for real: a kernel, a cell that trains, an interrupt."""

import time

import pytest

manager = pytest.importorskip("jupyter_client.manager")

CELL = """
from frcnn_lite.engine import TrainConfig, load_run, train

config = TrainConfig(steps=100_000, batch_size=2, image_size=64, test_images=0)
result = train(config, "run", progress=False, on_step=lambda record: print("step", record["step"]))
print("stopped:", result.interrupted, load_run("run").step == len(result.history))
"""


def test_a_stopped_cell_saves_and_ends_without_an_error(tmp_path):
    kernel, client = manager.start_new_kernel(kernel_name="python3", cwd=str(tmp_path))
    printed, errors, press_at = "", "", 2
    try:
        cell = client.execute(CELL)
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            message = client.get_iopub_msg(timeout=120)
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                printed += content["text"]
            if kind == "error":
                errors += content["ename"]
            # A press that is heard ends the run after the step at hand. One can be lost; it is repeated, as by hand.
            if printed.count("step") >= press_at:
                kernel.interrupt_kernel()
                press_at += 500
            ours = message["parent_header"].get("msg_id") == cell
            if ours and kind == "status" and content["execution_state"] == "idle":
                break
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
    assert errors == "" and "stopped: True True" in printed and "saved run" in printed
    assert (tmp_path / "run" / "checkpoint.pt").exists()
