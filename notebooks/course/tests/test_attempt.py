import threading

import pytest
import torch

import vgpu
from course.kit.attempt import attempt, last_line, outcome_of


def test_results_are_told_by_their_devices(capsys):
    with vgpu.virtual_gpus(2):
        attempt("two", lambda n: [torch.zeros(n).cuda(k) for k in (0, 1)], 3)
    assert capsys.readouterr().out == "two: ['cuda:0', 'cuda:1']\n"


def test_an_error_in_a_replica_is_told_by_its_last_line(capsys):
    with vgpu.virtual_gpus(2):
        layer = torch.nn.Linear(3, 1).cuda()
        attempt("here", torch.nn.DataParallel(layer, [0, 1]), torch.ones(4, 2))
    words = capsys.readouterr().out
    assert words.startswith("here: RuntimeError: ") and words.count("RuntimeError") == words.count("\n") == 1
    assert "mat1 and mat2 shapes cannot be multiplied (2x2 and 3x1)" in words


def test_what_a_thread_raises_is_not_printed_and_the_hook_is_put_back(capsys):
    hook = threading.excepthook

    def leaves_a_dead_thread():
        thread = threading.Thread(target=lambda: [][0])
        thread.start()
        thread.join()
        raise KeyError(0)

    attempt("thread", leaves_a_dead_thread)
    assert threading.excepthook is hook
    assert capsys.readouterr() == ("thread: KeyError: 0\n", "")


def test_the_outcome_is_what_a_function_returns_or_that_it_failed(capsys):
    def refuses():
        raise RuntimeError("Two devices. Move one of the tensors.")

    assert outcome_of(lambda: 5) == 5 and capsys.readouterr().out == ""
    assert outcome_of(refuses) == "an error"
    assert outcome_of(refuses, failed="it raises an error") == "it raises an error"
    assert capsys.readouterr().out == "RuntimeError: Two devices\n" * 2


@pytest.mark.parametrize("error", [ValueError(), ValueError("")])
def test_an_error_without_words(error):
    assert last_line(error) == ""
