import argparse
import dataclasses
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from xml.etree import ElementTree

import pytest
from PIL import Image

import frcnn_lite
import vgpu
from frcnn_lite import cli
from frcnn_lite.cli import options, train
from frcnn_lite.cli.evaluate import REPORT
from frcnn_lite.data import DigitScenes, read_image
from frcnn_lite.detection import FasterRCNNConfig
from frcnn_lite.engine import (
    RunDirectory,
    TrainConfig,
    load_run,
    load_weights,
    predict,
)
from frcnn_lite.engine.resolve import OWN_PICTURES
from frcnn_lite.recipes.determinism import same_bits

pytestmark = pytest.mark.starts_early
WIDE = {**os.environ, "COLUMNS": "200"}
QUICK = ("--data", "digits", "--batch-size", "2", "--train-images", "8", "--test-images", "4")


@pytest.fixture(autouse=True)
def leave_no_virtual_gpus():
    yield
    if vgpu.is_enabled():
        vgpu.disable()


def run(*arguments):
    return cli.main([str(argument) for argument in arguments])


def test_the_average_of_the_weights_follows_from_the_steps_unless_given(tmp_path, capsys):
    for name, share, decay in (("fitted", (), 0.5), ("none", (0,), 0.0), ("own", (0.25,), 2 / 3)):
        given = [part for value in share for part in ("--averaging", value)]
        assert run("train", *QUICK, "--steps", 12, *given, "--out", tmp_path / name) == 0
        assert RunDirectory.open(tmp_path / name).read_config().ema == pytest.approx(decay)
        said = capsys.readouterr().err
        over = f"an average of the weights, over the last {1 / (1 - decay):.0f} steps or so"
        assert over in said if decay else "average of the weights" not in said


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("cli") / "first"
    assert run("train", *QUICK, "--steps", 2, "--out", out) == 0
    return out


def fails(capsys, words, *arguments, code=2):
    """The command ends with `code`, says one line with `words` on stderr, and prints nothing else."""
    assert run(*arguments) == code
    said = capsys.readouterr()
    assert said.out == "" and len(said.err.splitlines()) == 1
    assert said.err.startswith("error: ") and words in said.err


COMMANDS = [[], *([name] for name in cli.COMMANDS), ["data"], *(["data", kind] for kind in cli.LOOKS_AT_DATA)]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_is_quick_and_shows_an_example(command):
    program = (
        f"import sys; from frcnn_lite import cli\ntry: cli.main({[*command, '--help']})\nexcept SystemExit: pass\n"
    )
    program += "sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=WIDE)
    assert shown.returncode == 0 and shown.stderr == ""
    for name in () if command else (*cli.COMMANDS, "data"):
        assert f"\n    {name} " in shown.stdout
    if command and command != ["data"]:
        assert f"python -m frcnn_lite {' '.join(command)} " in shown.stdout.split("\n\n", 1)[1], "no example"


@pytest.mark.parametrize("command", [*cli.COMMANDS.values(), *cli.LOOKS_AT_DATA.values()], ids=lambda c: c.__name__)
def test_a_command_is_one_file_whose_options_are_explained(command):
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    assert [action.dest for action in parser._actions if not (action.help or action.choices)] == []


PROGRAMS = [
    *(("frcnn_lite.cli", command) for command in COMMANDS),
    ("course.tools.store", []),
    ("vgpu.__main__", []),
]


@pytest.mark.parametrize(
    ("module", "command"), PROGRAMS, ids=lambda part: part if isinstance(part, str) else " ".join(part)
)
def test_help_names_every_default(module, command, monkeypatch):
    """Of every option that takes a value and may be left out; a flag is off."""
    parsers = []
    monkeypatch.setattr(argparse.ArgumentParser, "print_help", lambda parser, file=None: parsers.append(parser))
    with pytest.raises(SystemExit):
        importlib.import_module(module).main([*command, "--help"])
    takes_value = (argparse._StoreAction, argparse._AppendAction)
    (parser,) = parsers
    options = [action for action in parser._actions if isinstance(action, takes_value)]
    may_be_left_out = [a for a in options if (not a.required if a.option_strings else a.nargs in ("?", "*"))]
    assert [a.dest for a in may_be_left_out if "(default: " not in (a.help or "")] == []


@pytest.mark.parametrize(("listed", "dataclass"), [(train.RUN, TrainConfig), (train.DETECTOR, FasterRCNNConfig)])
def test_an_option_of_train_is_a_field_with_its_default_and_its_meaning(listed, dataclass):
    """What is read from the file, without importing it, is what the class says once it is imported."""
    defaults = {field.name: field.default for field in dataclasses.fields(dataclass)}
    parser = argparse.ArgumentParser()
    options.add_fields(parser, listed)
    helps = {action.dest: action.help for action in parser._actions}
    for field in listed:
        value = defaults[field.name]
        written = "none" if value in ("", ()) else field.default
        own = re.search(r"\(default: .*?(, for your own pictures .*)?\)$", helps[field.name] or "")
        assert value is False or helps[field.name].endswith(f"(default: {written}{own[1] or ''})")
        assert (
            written == "none"
            or eval(field.default, {}, {name: name for name in ("digits", "lite", "cosine", "align")}) == value
        )
    if dataclass is TrainConfig:
        assert {field.name for field in listed} == defaults.keys() - {"class_names", "model"}


def test_the_defaults_for_your_own_pictures_are_those_that_are_taken():
    parser = argparse.ArgumentParser()
    options.add_fields(parser, train.RUN)
    named = [re.search(r"for your own pictures (.*)\)$", action.help) for action in parser._actions]
    found = {action.dest: own[1] for action, own in zip(parser._actions, named, strict=True) if own}
    taken = {name: "all" if value == sys.maxsize else str(value) for name, value in OWN_PICTURES.items()}
    assert found == {**taken, "image_size": "what suits their boxes"}


def test_what_is_not_given_is_left_to_the_configuration():
    parser = argparse.ArgumentParser()
    options.add_fields(parser, [*train.RUN, *train.DETECTOR])
    fields = [*train.RUN, *train.DETECTOR]
    assert options.given(parser.parse_args([]), fields) == {}
    words = ["--amp", "--image-size", "64x96", "--handle", "outside=drop", "--handle", "empty=skip", "--lr", "1e-2"]
    expected = {"amp": True, "image_size": (64, 96), "handle": ("outside=drop", "empty=skip"), "lr": 0.01}
    assert options.given(parser.parse_args(words), fields) == expected
    backbone = options.given(parser.parse_args(["--fpn", "--backbone", "resnet18"]), fields)
    assert backbone == {"fpn": True, "backbone": "resnet18"}


@pytest.mark.parametrize(("command", "listed"), [([], cli.COMMANDS), (["data"], cli.LOOKS_AT_DATA)], ids=["", "data"])
def test_a_command_that_is_not_complete_lists_what_there_is(command, listed, capsys):
    assert run(*command) == 2
    said = capsys.readouterr()
    assert said.out == "" and all(f"\n    {name} " in said.err for name in listed)
    assert said.err.endswith(f"python -m frcnn_lite{' data' if command else ''}: name one of these\n")


def test_the_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        run("--version")
    assert capsys.readouterr().out == f"frcnn_lite {frcnn_lite.__version__}\n"


def test_a_tool_runs_behind_the_option_of_all_commands(capsys):
    assert run("--traceback", "copy") == run("copy") == 0


def test_train_says_where_and_how_good(tmp_path, capsys):
    assert run("train", *QUICK, "--steps", 2, "--seed", 7, "--lr", 0.001, "--out", tmp_path / "r") == 0
    said = capsys.readouterr()
    assert said.out == "" and "2 steps of 2 images on the CPU" in said.err and "AP50" in said.err
    assert "judge: 100%" in said.err and "4/4" in said.err
    config = RunDirectory.open(tmp_path / "r").read_config()
    assert (config.steps, config.batch_size, config.seed, config.lr, config.gpus) == (2, 2, 7, 0.001, 0)


def test_virtual_gpus_stand_in_and_give_the_same_curve(trained, tmp_path, capsys):
    assert run("train", *QUICK, "--steps", 2, "--gpus", 2, "--out", tmp_path / "r") == 0
    assert "2 virtual GPUs" in capsys.readouterr().err
    losses = [record["loss"] for record in load_run(tmp_path / "r").history]
    assert losses == pytest.approx([record["loss"] for record in load_run(trained).history], rel=1e-5)


def test_epochs_and_minutes_become_steps(tmp_path, monkeypatch):
    assert run("train", *QUICK, "--epochs", 0.6, "--out", tmp_path / "epochs") == 0
    assert RunDirectory.open(tmp_path / "epochs").read_config().steps == 3  # 0.6 of 8 images, 2 a step, rounded up
    assert run("train", *QUICK, "--minutes", 0.0001, "--out", tmp_path / "minutes") == 0
    assert RunDirectory.open(tmp_path / "minutes").read_config().steps == 1


def test_evaluate_prints_one_json_object(trained, capsys):
    assert run("evaluate", "--run", trained) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["images"] == 4 and 0 <= found["AP50"] <= 1 and found["step"] == 2 and said.err == ""
    assert run("evaluate", "--run", trained, "--images", 3) == 0
    assert json.loads(capsys.readouterr().out)["images"] == 3


def test_the_best_weights_are_kept_on_request(tmp_path, capsys):
    out = tmp_path / "r"
    assert run("train", *QUICK, "--steps", 3, "--evaluate-every", 2, "--amp", "--out", out) == 0
    config = RunDirectory.open(out).read_config()
    assert config.evaluate_every == 2 and config.amp and (out / "best.pt").is_file()
    capsys.readouterr()
    assert run("evaluate", "--run", out, "--best") == 0
    assert json.loads(capsys.readouterr().out)["step"] == 2
    assert run("export", "--run", out, "--best", "--full", "--out", tmp_path / "w.pt") == 0
    assert same_bits(load_weights(tmp_path / "w.pt").state_dict(), load_weights(out / "best.pt").state_dict())


def test_predict_does_what_it_can(trained, tmp_path, capsys):
    good, bad = tmp_path / "good.png", tmp_path / "bad.png"
    Image.fromarray(DigitScenes("test", 1)[0].image.permute(1, 2, 0).numpy()).save(good)
    bad.write_text("no picture")
    out = tmp_path / "out"
    assert run("predict", "--run", trained, good, bad, tmp_path / "gone.png", "--out", out) == 1
    said = capsys.readouterr()
    assert os.listdir(out) == ["good.png"] and Image.open(out / "good.png").size == (128, 128)
    assert f"error: {bad} cannot be read as an image" in said.err and "no image at" in said.err
    assert run("predict", "--run", trained, good, "--out", out) == 0
    assert sorted(os.listdir(out)) == ["good-2.png", "good.png"]


def test_evaluate_draws_a_report_once(trained, tmp_path, capsys):
    ask = ("evaluate", "--run", trained, "--images", 3, "--report", tmp_path / "report")
    assert run(*ask) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["images"] == 3
    file = tmp_path / "report" / "precision_recall.svg"
    written = [line for line in said.err.splitlines() if line.endswith("written")]
    assert written == [f"{tmp_path / 'report' / name} written" for name in REPORT]
    curves = file.read_text(encoding="utf-8")
    assert "all classes" in curves and "AP50 0.00" in curves and ElementTree.fromstring(curves).tag.endswith("svg")
    matrix = json.loads((tmp_path / "report" / "confusion_matrix.json").read_text(encoding="utf-8"))
    assert (matrix["iou"], matrix["score"], matrix["run"]) == (0.5, 0.5, json.loads(said.out)["run"])
    assert (matrix["rows"][-1], matrix["columns"][-1]) == ("no object", "missed")
    objects = sum(sum(row) for row in matrix["counts"][:-1])
    assert objects == json.loads(said.out)["objects"] and len(matrix["counts"]) == len(matrix["rows"]) == 11
    drawn = (tmp_path / "report" / "confusion_matrix.svg").read_text(encoding="utf-8")
    assert "found as" in drawn and "score 0.5 or more, IoU 0.5 or more" in drawn
    for name in REPORT:
        fails(capsys, f"{name} exists already", *ask)
        (tmp_path / "report" / name).unlink()
    assert run(*ask) == 0 and file.read_text(encoding="utf-8") == curves


def test_predict_as_json(trained, tmp_path, capsys):
    trained = shutil.copytree(trained, tmp_path / "eager")  # two steps of training are sure of nothing
    text = (trained / "config.json").read_text()
    for field, old, new in (
        ("score_threshold", "0.05", "0.0"),
        ("detections", "32", "480"),
        ("pre_nms_detections", "128", "480"),
    ):
        text = text.replace(f'"{field}": {old}', f'"{field}": {new}')
    (trained / "config.json").write_text(text)
    good, gone = tmp_path / "good.png", tmp_path / "gone.png"
    scene = DigitScenes("test", 1)[0].image.permute(1, 2, 0).numpy()
    Image.fromarray(scene).resize((256, 192)).save(good)
    ask = ("predict", "--run", trained, "--min-score", 0, good, gone)
    fails(capsys, "predict needs --out DIR for pictures, --json FILE", "predict", "--run", trained, good)
    assert run(*ask, "--json", "-") == 1
    printed = json.loads(capsys.readouterr().out)
    found, missing = printed["images"]
    assert printed["step"] == 2 and found["image"] == str(good) and "no image at" in missing["error"]
    model, names = load_run(trained).model, DigitScenes.class_names
    expected = predict(model, read_image(good), min_score=0).objects(names)
    assert found["objects"] == expected and len(expected) > 0 and {one["label"] for one in expected} <= set(names)
    assert max(one["box"][2] for one in expected) > 128  # pixels of the picture

    assert run(*ask, "--json", tmp_path / "found.json", "--out", tmp_path / "out") == 1
    assert json.loads((tmp_path / "found.json").read_text()) == printed and os.listdir(tmp_path / "out") == ["good.png"]
    capsys.readouterr()
    fails(capsys, "found.json exists already", *ask, "--json", tmp_path / "found.json")


def test_export_writes_weights_once(trained, tmp_path, capsys):
    file = tmp_path / "w.pt"
    assert run("export", "--run", trained, "--out", file) == 0
    assert not load_weights(file).training
    capsys.readouterr()
    fails(capsys, "exists already", "export", "--run", trained, "--out", file)


@pytest.mark.parametrize("name", ["d.xyz", "d", "d.onnx.zip"])
def test_export_refuses_an_ending_that_it_does_not_know(trained, name, tmp_path, capsys):
    words = f"--out must end in .pt, .pth or .onnx, got {tmp_path / name}"
    fails(capsys, words, "export", "--run", trained, "--out", tmp_path / name)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full, which is always full, is Linux's")
@pytest.mark.parametrize("ending", [".pt", pytest.param(".onnx", marks=pytest.mark.exhaustive)])
def test_an_export_to_a_full_disk_leaves_nothing_in_the_way(trained, ending, tmp_path, capfd):
    if ending == ".onnx":
        pytest.importorskip("onnxscript")
    file = tmp_path / f"d{ending}"
    (tmp_path / f"d.partial{ending}").symlink_to("/dev/full")
    assert run("export", "--run", trained, "--out", file) == 2
    said = capfd.readouterr().err  # of the exporter, too, which talks past capsys
    assert "Traceback" not in said
    assert f"error: {file} could not be written: the disk is full\n" in said and os.listdir(tmp_path) == []
    assert run("export", "--run", trained, "--out", file) == 0 and file.stat().st_size > 100


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="/proc, where nobody can make a file, is Linux's")
def test_what_cannot_be_written_is_one_line(trained, tmp_path, capsys):
    picture = tmp_path / "p.png"
    Image.new("RGB", (32, 32)).save(picture)
    fails(capsys, "/proc/none/d.pt could not be written: ", "export", "--run", trained, "--out", "/proc/none/d.pt")
    predict_one = ("predict", "--run", trained, picture)
    fails(capsys, "/proc/none/p.png could not be written: ", *predict_one, "--out", "/proc/none")
    assert run(*predict_one, "--json", "/proc/none/f.json") == 2
    assert "error: /proc/none/f.json could not be written: " in capsys.readouterr().err


def test_a_file_that_the_system_cuts_off_ends_training_with_a_sentence(tmp_path):
    resource = pytest.importorskip("resource", reason="limits on files are POSIX's")
    out = tmp_path / "r"
    command = [sys.executable, "-m", "frcnn_lite", "train", *QUICK, "--steps", "2", "--out", str(out)]
    limit = 6_000_000  # above the checkpoint before the first step, below the one with the optimizer's averages
    child = subprocess.run(
        command,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert child.returncode == 2 and "Traceback" not in child.stderr
    last = child.stderr.splitlines()[-1]
    assert last.startswith(f"error: {out / 'checkpoint.pt'} could not be written: File too large. ")
    assert "of step 0 is whole" in last and sorted(os.listdir(out)) == ["checkpoint.pt", "config.json", "log.jsonl"]
    assert run("train", "--resume", "--checkpoint-every", 1, "--out", out) == 0 and load_run(out).step == 2
    assert RunDirectory.open(out).read_config().checkpoint_every == 200  # as it was begun


def test_export_writes_a_graph(trained, tmp_path, capsys):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    from frcnn_lite.export.onnx_detector import OnnxDetector

    assert run("export", "--run", trained, "--out", tmp_path / "w.onnx") == 0
    detector = OnnxDetector(tmp_path / "w.onnx")
    assert detector.class_names == list("0123456789") and detector.image_size == (128, 128)
    capsys.readouterr()
    fails(capsys, "exists already", "export", "--run", trained, "--out", tmp_path / "w.onnx")


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("`gpus` must be at least 0, got -1", ("--gpus", "-1")),
        ("`gpus` must be at most `batch_size`, got gpus=99", ("--gpus", "99")),
        ("gpus must be from 1 to 64, got 99", ("--gpus", "99", "--batch-size", "128")),
        ("'yolo:DIR' or 'coco:FILE', or the path of one of these, got 'mnist'", ("--data", "mnist")),
        ("no such file or directory: 'nowhere'", ("--data", "voc:nowhere")),
        ("`minutes` must be a positive number, got -5.0", ("--minutes", "-5")),
        ("`epochs` must be a positive number, got 0.0", ("--epochs", "0")),
        ("`batch_size` must be at least 1, got 0", ("--batch-size", "0")),
        ("`steps` must be at least 0, got -3", ("--steps", "-3")),
        ("no run at", ("--resume",)),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(words, arguments, tmp_path, capsys):
    fails(capsys, words, "train", "--out", tmp_path / "r", *arguments)
    assert not (tmp_path / "r").exists()


def test_a_run_is_never_overwritten(trained, tmp_path, capsys):
    before = {name: (trained / name).read_bytes() for name in os.listdir(trained)}
    capsys.readouterr()
    fails(capsys, "holds a run already", "train", *QUICK, "--steps", 5, "--out", trained)
    fails(capsys, "leave out --lr", "train", "--resume", "--lr", "0.5", "--out", trained)
    fails(capsys, "leave out --minutes", "train", "--resume", "--minutes", "3", "--out", trained)
    assert before == {name: (trained / name).read_bytes() for name in os.listdir(trained)}


def test_missing_and_damaged_runs(trained, tmp_path, capsys):
    fails(capsys, "no run at", "evaluate", "--run", tmp_path / "none")
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in os.listdir(trained):
        (broken / name).write_bytes((trained / name).read_bytes())
    (broken / "checkpoint.pt").write_bytes(b"damaged")
    fails(capsys, "checkpoint.pt cannot be read", "evaluate", "--run", broken)
    fails(capsys, "checkpoint.pt cannot be read", "train", "--resume", "--out", broken)
    fails(capsys, "checkpoint.pt cannot be read", "predict", "--run", broken, "x.png", "--out", tmp_path / "out")


def test_the_traceback_is_shown_on_request(tmp_path):
    with pytest.raises(FileNotFoundError):
        run("--traceback", "evaluate", "--run", tmp_path / "none")


def lines_in(log):
    return len(log.read_bytes().splitlines()) if log.exists() else 0


def interrupt_beyond(steps, command, log, sent=signal.SIGINT):
    """Run `command` until it has logged more than `steps` steps, press Ctrl-C, return exit code and what it said.

    Another signal is sent to all processes of the command, as Slurm and `timeout` do.
    """
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=sent != signal.SIGINT)
    deadline = time.monotonic() + 120
    while process.poll() is None and lines_in(log) <= steps and time.monotonic() < deadline:
        time.sleep(0.05)
    if sent == signal.SIGINT:
        process.send_signal(sent)
    else:
        os.killpg(process.pid, sent)
    said = process.communicate(timeout=60)[1]
    return process.returncode, said


@pytest.mark.skipif(sys.platform == "win32", reason="a signal cannot be sent to one process there")
@pytest.mark.exhaustive
def test_ctrl_c_saves_and_resume_goes_on(tmp_path):
    out = tmp_path / "r"
    command = [sys.executable, "-m", "frcnn_lite", "train", "--out", str(out)]
    code, said = interrupt_beyond(1, [*command, *QUICK, "--steps", "100000"], out / "log.jsonl")
    assert code == 130 and "Traceback" not in said
    assert "checkpoint.pt" in said and "--resume --out" in said
    stopped = load_run(out)
    assert stopped.step == len(stopped.history) >= 2

    code, said = interrupt_beyond(stopped.step, [*command, "--resume"], out / "log.jsonl")
    resumed = load_run(out)
    assert code == 130 and resumed.step > stopped.step and resumed.history[: stopped.step] == stopped.history


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process without a signal")
@pytest.mark.parametrize("workers", [pytest.param(0, marks=pytest.mark.exhaustive), 1])
def test_sigterm_to_all_processes_saves_and_says_so(workers, tmp_path):
    out = tmp_path / "r"
    command = [sys.executable, "-m", "frcnn_lite", "train", *QUICK, "--steps", "100000", "--out", str(out)]
    code, said = interrupt_beyond(1, [*command, "--workers", str(workers)], out / "log.jsonl", signal.SIGTERM)
    stopped = load_run(out)
    assert code == 143 and "Traceback" not in said and stopped.step == len(stopped.history) >= 2
    assert f"SIGTERM: stopped after {stopped.step} of 100000 steps" in said and "--resume --out" in said
