import os
import pickle
from random import Random

import pytest
import torch

from frcnn_lite.engine import CheckpointError
from frcnn_lite.engine.checkpoint import load_checkpoint, save_checkpoint


def test_state_comes_back(tmp_path):
    file = tmp_path / "c.pt"
    state = {"step": 3, "nested": {"w": torch.arange(3.0), "list": [1, torch.ones(2)]}}
    save_checkpoint(file, state)
    loaded = load_checkpoint(file)
    assert loaded["step"] == 3 and torch.equal(loaded["nested"]["w"], torch.arange(3.0))
    assert torch.equal(loaded["nested"]["list"][1], torch.ones(2))
    assert os.listdir(tmp_path) == ["c.pt"]


def test_a_crash_while_writing_keeps_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "c.pt"
    save_checkpoint(file, {"step": 1})

    def half_written(state, handle):
        handle.write(b"PK half a file")
        raise OSError("disk full")

    monkeypatch.setattr(torch, "save", half_written)
    with pytest.raises(OSError, match="disk full"):
        save_checkpoint(file, {"step": 2})
    assert load_checkpoint(file)["step"] == 1 and os.listdir(tmp_path) == ["c.pt"]


class Payload:
    def __reduce__(self):
        return (os.mkdir, ("executed",))


def test_code_in_a_checkpoint_is_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"format": 1, "payload": Payload()}, "c.pt")
    with pytest.raises(CheckpointError, match=r"c\.pt cannot be read: it holds code \(\w+\.mkdir\), which is not run"):
        load_checkpoint(tmp_path / "c.pt")
    assert not os.path.exists("executed")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"version https://git-lfs.github.com/spec/v1", "torch.save did not write it"),
        (b"PK\x03\x04 cut short", "it is cut off"),
        (pickle.dumps(os.getcwd, protocol=2), "torch.save did not write it"),
    ],
)
def test_a_damaged_file_is_named_and_left_alone(tmp_path, content, why):
    file = tmp_path / "c.pt"
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"c\.pt cannot be read: {why}"):
        load_checkpoint(file)
    assert file.read_bytes() == content


def test_a_changed_bit_never_gives_a_different_state(tmp_path):
    """PyTorch does not compare the checksums of the file; one bit of a weight in 100 files was read as it came."""
    file = tmp_path / "c.pt"
    right = torch.linspace(0, 1, 3000)
    save_checkpoint(file, {"w": right})
    whole = file.read_bytes()
    random, refused = Random(0), 0
    for _ in range(100):
        broken = bytearray(whole)
        broken[random.randrange(len(whole))] ^= 1 << random.randrange(8)
        file.write_bytes(broken)
        try:
            assert torch.equal(load_checkpoint(file)["w"], right)  # the bit was in padding, or in a name of no use
        except CheckpointError:
            refused += 1
    assert refused > 80


@pytest.mark.parametrize(
    ("state", "why"),
    [({"trainer": 5}, "'trainer' must be of dict, got int"), ({"step": "x"}, "'step' must be of int, got str")],
)
def test_what_a_checkpoint_holds_has_its_kind(tmp_path, state, why):
    save_checkpoint(tmp_path / "c.pt", state)
    with pytest.raises(CheckpointError, match=why):
        load_checkpoint(tmp_path / "c.pt")


def test_missing_and_foreign_files(tmp_path):
    with pytest.raises(CheckpointError, match="no checkpoint at"):
        load_checkpoint(tmp_path / "c.pt")
    torch.save({"weights": 1}, tmp_path / "c.pt")
    with pytest.raises(CheckpointError, match="not a checkpoint of frcnn_lite"):
        load_checkpoint(tmp_path / "c.pt")
