"""Named tensors in files of every kind: written, read, told apart from the rest of a checkpoint, never run."""

import pytest
import torch
from torch import nn

import vgpu
from course.lessons.nb31.weight_files import read_weights, write_weights
from frcnn_lite.export.weights import load_weights_into

SUFFIXES = (".pt", ".pth", ".npz", ".safetensors")


def model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3))


@pytest.fixture
def file_of(tmp_path):
    def write(state, suffix=".pt"):
        if suffix == ".safetensors":
            pytest.importorskip("safetensors")
        write_weights(state, tmp_path / f"weights{suffix}")
        return tmp_path / f"weights{suffix}"

    return write


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_read_is_what_was_written(file_of, suffix):
    state = {f"module.{name}": tensor for name, tensor in model(1).state_dict().items()}  # as DataParallel's
    found = read_weights(file_of(state, suffix))
    assert list(found) == list(state) or (suffix == ".safetensors" and set(found) == set(state))
    assert all(torch.equal(found[name], state[name]) and found[name].dtype == state[name].dtype for name in state)
    target = model()
    assert load_weights_into(target, found).is_complete and torch.equal(target[3].weight, model(1)[3].weight)


def test_device_stays_the_models(file_of):
    file = file_of(model(1).state_dict())
    with vgpu.virtual_gpus(2):
        target = model().to("cuda:1")
        load_weights_into(target, read_weights(file))
        assert {t.device for t in target.state_dict().values()} == {torch.device("cuda:1")}
        assert torch.equal(target[0].weight.cpu(), model(1)[0].weight)


def test_file_saved_on_a_gpu_that_is_not_there(tmp_path):
    file = tmp_path / "gpu.pt"
    with vgpu.virtual_gpus(2):
        torch.save(model(1).to("cuda:1").state_dict(), file)
    assert load_weights_into(model(), read_weights(file)).is_complete


def test_old_format(tmp_path):
    torch.save(model(1).state_dict(), tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    assert load_weights_into(model(), read_weights(tmp_path / "old.pth")).is_complete


def test_sections(tmp_path):
    held = {"step": 3, "trainer": {"model": model(1).state_dict(), "ema": model(2).state_dict()}}
    torch.save(held, tmp_path / "run.pt")
    with pytest.raises(ValueError, match=r"holds 'step', 'trainer': name the part"):
        read_weights(tmp_path / "run.pt")
    with pytest.raises(ValueError, match=r"no 'modle' in run\.pt, which has 'model', 'ema'"):
        read_weights(tmp_path / "run.pt", section="trainer.modle")
    assert load_weights_into(model(), read_weights(tmp_path / "run.pt", section="trainer.model")).is_complete
    torch.save({"step": 3, "state_dict": model(1).state_dict()}, tmp_path / "one.pt")
    assert load_weights_into(model(), read_weights(tmp_path / "one.pt")).is_complete


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_awkward_tensors_survive(file_of, suffix):
    shared = torch.arange(6.0)
    state = {"file": shared, "tied": shared, "column": shared.view(2, 3).t(), "scalar": torch.tensor(3), "a/b": shared}
    found = read_weights(file_of(state, suffix))
    assert found.keys() == state.keys()
    assert all(torch.equal(found[name], state[name]) and found[name].dtype == state[name].dtype for name in state)


def test_files_are_not_overwritten_and_suffixes_are_known(tmp_path):
    state = {"w": torch.zeros(1)}
    write_weights(state, tmp_path / "w.npz")
    with pytest.raises(FileExistsError):
        write_weights(state, tmp_path / "w.npz")
    with pytest.raises(ValueError, match=r"`file` must end in one of \.pt, .*, got .w\.pdparams"):
        write_weights(state, tmp_path / "w.pdparams")
    with pytest.raises(TypeError, match="bfloat16"):
        write_weights({"w": torch.zeros(1, dtype=torch.bfloat16)}, tmp_path / "b.npz")
    assert not (tmp_path / "b.npz").exists()
