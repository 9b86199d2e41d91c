import errno
import os
import pickle

import pytest
import torch

from frcnn_lite.whole_file import WriteError, whole_file


def test_a_file_appears_when_it_is_whole_and_keeps_its_ending(tmp_path):
    path = tmp_path / "new" / "d.onnx"
    with whole_file(path) as partial:
        partial.write_text("text")
        assert partial.suffix == ".onnx" and not path.exists()
    assert path.read_text() == "text" and os.listdir(path.parent) == ["d.onnx"]
    with pytest.raises(FileExistsError, match=r"d\.onnx exists already"), whole_file(path):
        pass
    with whole_file(path, replace=True) as partial:
        partial.write_text("other")
    assert path.read_text() == "other"


@pytest.mark.parametrize(
    ("number", "reason"),
    [(errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "your quota"), (errno.EROFS, os.strerror(errno.EROFS))],
)
def test_what_fails_midway_leaves_nothing_and_names_the_file(tmp_path, number, reason):
    path = tmp_path / "d.bin"
    with (
        pytest.raises(WriteError, match=f"{path} could not be written: {reason}") as failed,
        whole_file(path) as partial,
    ):
        partial.write_bytes(b"half")
        raise OSError(number, os.strerror(number))
    assert failed.value.errno == number and os.listdir(tmp_path) == []
    assert str(pickle.loads(pickle.dumps(failed.value))) == str(failed.value)  # one rank tells the others


def test_other_errors_stay_what_they_are(tmp_path):
    for error in (KeyboardInterrupt, ValueError("no writer"), RuntimeError("no kernel")):
        with (
            pytest.raises(type(error) if isinstance(error, Exception) else error),
            whole_file(tmp_path / "d") as partial,
        ):
            partial.write_bytes(b"half")
            raise error
        assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full, which is always full, is Linux's")
def test_torch_hides_a_full_disk_behind_an_error_of_its_own(tmp_path):
    path = tmp_path / "w.pt"
    path.write_bytes(b"before")
    (tmp_path / "w.partial.pt").symlink_to("/dev/full")
    full = pytest.raises(WriteError, match="the disk is full")
    with full, whole_file(path, replace=True) as partial, partial.open("wb") as file:
        torch.save({"w": torch.zeros(1_000_000)}, file)
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == ["w.pt"]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="/proc, where nobody can make a file, is Linux's")
def test_a_folder_that_cannot_be_written_to(tmp_path):
    for name in ("/proc/none/w.pt", "/proc/w.pt"):
        with (
            pytest.raises(WriteError, match=f"{name} could not be written: "),
            whole_file(type(tmp_path)(name)) as partial,
        ):
            partial.write_bytes(b"text")
