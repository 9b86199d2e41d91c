"""Training and evaluation in several processes: what one process computes, and files from rank 0 alone."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
import training_ranks

import vgpu
from frcnn_lite.data import DigitScenes
from frcnn_lite.detection import FasterRCNNConfig
from frcnn_lite.engine import TrainConfig, build_model, evaluate, load_run, train
from frcnn_lite.parallel import run_ranks

pytestmark = pytest.mark.starts_early
# Constant and small steps, as in test_devices.py; batches of 5 are uneven on two ranks.
CONFIG = TrainConfig(
    steps=3, batch_size=5, image_size=64, train_images=20, test_images=5, warmup_steps=0, lr=1e-3, schedule="constant"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ranks")


@pytest.fixture(scope="module")
def ranks(folder):
    """What rank 0 and rank 1 have to tell of their lesson."""
    config = replace(CONFIG, gpus=2)
    # Copies of one process that has imported what each would import for itself, in seconds; torchrun's import it anew.
    multiprocessing.set_forkserver_preload(["torch", "torch._dynamo"])
    start = "forkserver" if sys.platform == "linux" else "spawn"
    few = replace(CONFIG, batch_size=1)
    with vgpu.virtual_gpus(2, force=True):
        yield run_ranks(training_ranks.lesson, 2, config, few, folder, timeout=300, start_method=start)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return train(CONFIG, tmp_path_factory.mktemp("alone") / "run", progress=False)


def test_collectives(ranks):
    for rank, said in enumerate(one["talk"] for one in ranks):
        assert said["sum"].tolist() == [1.0, 2.0] and str(said["sum"].device) == f"cuda:{rank}"
        assert said["any"] == (True, False)
        assert said["merged"] == ["0 by 0", "1 by 1", "2 by 0", "3 by 1", "4 by 0"]
        assert said["from main"] == "made by 0" and said["error"] == "there is a run already"


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_gradients_of_the_first_step_are_those_of_one_process(ranks, dtype, tolerance):
    expected = training_ranks.gradients(range(5), dtype, gpus=0)
    for rank in ranks:
        assert rank[dtype]["losses"] == pytest.approx(expected["losses"], rel=tolerance)
        for got, want in zip(rank[dtype]["gradients"], expected["gradients"], strict=True):
            assert (got - want).abs().max() <= tolerance * want.abs().max()
    for name, total in expected["losses"].items():  # what the ranks call backward() on has the total as its mean
        assert (ranks[0][dtype]["own"][name] + ranks[1][dtype]["own"][name]) / 2 == pytest.approx(total, rel=tolerance)


def test_the_curve_and_the_precision_are_those_of_one_process(ranks, alone):
    for rank in ranks:
        for got, want in zip(rank["whole"].history, alone.history, strict=True):
            assert got == pytest.approx(want, rel=1e-4)
        assert rank["whole"].evaluation.images == 5
    assert ranks[0]["whole"].evaluation == ranks[1]["whole"].evaluation


def test_only_rank_0_writes_and_one_process_can_go_on(ranks, folder):
    assert sorted(os.listdir(folder / "whole")) == ["checkpoint.pt", "config.json", "log.jsonl"]
    log = (folder / "whole" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in log] == [0, 1, 2]
    run = load_run(folder / "whole")
    assert run.step == 3 and not any(name.startswith("module.") for name in run.model.state_dict())


def test_when_one_rank_is_interrupted_all_stop_after_the_same_step(ranks):
    for rank in ranks:
        assert rank["stopped"].interrupted and [record["step"] for record in rank["stopped"].history] == [0, 1]
        assert rank["resumed"].losses == pytest.approx(rank["whole"].losses, rel=1e-5)


def test_every_picture_is_judged_once(ranks):
    """Five pictures on two ranks: DistributedSampler would judge one of them twice."""
    expected = evaluate(build_model(FasterRCNNConfig(), seed=0), DigitScenes("test", 5, size=64))
    assert ranks[0]["evaluation"] == ranks[1]["evaluation"] == expected and expected.images == 5


def test_what_ranks_cannot_share_is_refused(ranks):
    assert ranks[0]["batch of one"] == "`batch_size` must be at least 2, an image for each rank, got 1"
    assert ranks[1]["three GPUs"] == "`gpus` must be 2 with 2 ranks, one GPU for each, or 0 for the CPU; got 3"


def torchrun(*arguments, options=()):
    """The command as torchrun would run it. The second -- keeps --run from being read as its own --run-path."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *options]
    return [*command, "-m", "--", "frcnn_lite", *map(str, arguments)]


def ended(command):
    process = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stderr
    return process


@pytest.mark.exhaustive
def test_train_and_evaluate_under_torchrun(tmp_path):
    out = tmp_path / "run"
    length = ("--steps", 2, "--batch-size", 3, "--train-images", 8, "--test-images", 3)
    said = ended(torchrun("train", "--data", "digits", *length, "--out", out)).stderr
    assert said.count("2 steps of 3 images") == said.count("on 3 unseen pictures") == 1
    assert [record["step"] for record in load_run(out).history] == [0, 1]
    logs = ("--redirects", "1", "--log-dir", str(tmp_path / "logs"))  # a file for each rank: in one pipe lines may mix
    ended(torchrun("evaluate", "--run", out, "--images", 5, options=logs))
    printed = [log.read_text() for log in (tmp_path / "logs").rglob("stdout.log")]
    (line,) = [line for text in printed for line in text.splitlines() if line.startswith("{")]  # gloo greets there, too
    run = load_run(out)
    judged = json.loads(line)
    assert judged["images"] == 5
    assert judged["AP"] == pytest.approx(evaluate(run.model, DigitScenes("test", 5)).AP, abs=1e-6)


STOPS = [
    pytest.param(signal.SIGINT, id="ctrl-c", marks=pytest.mark.long),
    pytest.param(signal.SIGTERM, id="sigterm"),
]


@pytest.mark.skipif(os.name == "nt", reason="torchrun passes signals on as POSIX has them")
@pytest.mark.parametrize("sent", STOPS)
def test_a_stop_under_torchrun_saves_and_another_number_of_processes_goes_on(sent, tmp_path):
    out = tmp_path / "run"
    length = ("--steps", 20_000, "--batch-size", 2, "--train-images", 8, "--test-images", 0)  # more than a busy minute
    process = subprocess.Popen(torchrun("train", *length, "--out", out), stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not ((out / "log.jsonl").exists() and (out / "log.jsonl").stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(sent)
    said = process.communicate(timeout=60)[1]
    steps = load_run(out).step
    assert f"stopped after {steps} of 20000 steps" in said and steps > 0
    assert ("SIGTERM: stopped" in said) == (sent == signal.SIGTERM)
    assert [record["step"] for record in load_run(out).history] == list(range(steps))
    config = load_run(out).config
    resumed = train(config, out, resume=True, progress=False, on_step=stop)
    assert resumed.interrupted and len(resumed.history) == steps + 1


def stop(record):
    raise KeyboardInterrupt
