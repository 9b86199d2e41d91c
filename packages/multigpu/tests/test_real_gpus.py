"""`doctor --real` on machines without GPUs, with good ones, and with broken paths between them.

The questions themselves run on virtual GPUs; their answers, right and wrong, come from a made-up probe.
"""

import contextlib
import io
import json

import pytest

from multigpu import doctor
from multigpu.doctor import real_gpus
from multigpu.doctor.probe import Probe

torch = pytest.importorskip("torch", reason="asks torch about its GPUs")
vgpu = pytest.importorskip("vgpu", reason="asks virtual GPUs")


def answered(monkeypatch, **answers):
    """Let each question be answered: DEVICES=[...], or a Probe; without direct copies, the name with _NO_PEER."""
    names = {getattr(real_gpus, name.removesuffix("_NO_PEER")): name.removesuffix("_NO_PEER") for name in answers}

    def ask(code, **environment):
        answer = answers[names[code] + ("_NO_PEER" if environment else "")]
        return answer if isinstance(answer, Probe) else Probe(True, json.dumps(answer), "")

    monkeypatch.setattr(real_gpus, "ask", ask)


def found(check):
    return {finding.check: finding for finding in real_gpus.examine_gpus()}[check]


GOOD = {
    "DEVICES": ["H200", "H200"],
    "PEERS": [[True, True], [True, True]],
    "COPIES": [],
    "ALL_REDUCE": ["2.27.5", True],
}
HANGS = Probe(False, "", "no answer after 60 s")


@pytest.mark.parametrize(("names", "words"), [([], "no CUDA device"), (["A100"], "1 CUDA device (A100)")])
def test_fewer_than_two_gpus_leave_nothing_to_check(monkeypatch, capsys, names, words):
    answered(monkeypatch, DEVICES=names)
    assert doctor.main(["--real"]) == 0
    printed = capsys.readouterr().out
    assert words in printed and "there is nothing to check" in printed
    assert "all 1 checks passed" in printed


def test_this_machine_is_asked_and_answers_in_json(capsys):
    if torch.cuda.device_count() > 1:
        pytest.skip("the GPUs of this machine are not ours to judge")
    assert doctor.main(["--real", "--json"]) == 0
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert check["check"] == "gpus" and "nothing to check" in check["message"]


def test_torch_that_does_not_start_is_sent_to_the_other_checks(monkeypatch):
    answered(monkeypatch, DEVICES=Probe(False, "", "ImportError: libcudart"))
    assert not found("gpus").ok and "without --real" in found("gpus").fix


def test_good_gpus_pass(monkeypatch):
    answered(monkeypatch, **GOOD)
    assert all(finding.ok for finding in real_gpus.examine_gpus())
    assert found("peers").message == "2 of 2 pairs copy directly (cuda:0 1 1; cuda:1 1 1)"
    assert found("nccl").message.startswith("2.27.5")


def test_no_direct_path_is_no_fault(monkeypatch):
    answered(monkeypatch, **{**GOOD, "PEERS": [[True, False], [False, True]]})
    assert found("peers").ok and found("peers").message == "0 of 2 pairs copy directly (cuda:0 1 -; cuda:1 - 1)"


def test_wrong_copies_are_a_fault_of_the_machine(monkeypatch):
    answered(monkeypatch, **{**GOOD, "COPIES": [[0, 1]]})
    assert not found("copies").ok and "from cuda:0 to cuda:1" in found("copies").message
    assert "IOMMU" in found("copies").fix


@pytest.mark.parametrize(
    ("again", "message", "fix"),
    [(["2.27.5", True], "with NCCL_P2P_DISABLE=1 it is right", "iommu=pt"), (HANGS, "no answer", "NCCL_DEBUG=INFO")],
)
def test_nccl_that_hangs_is_tried_without_direct_copies(monkeypatch, again, message, fix):
    answered(monkeypatch, **{**GOOD, "ALL_REDUCE": HANGS, "ALL_REDUCE_NO_PEER": again})
    assert not found("nccl").ok and message in found("nccl").message and fix in found("nccl").fix


def test_iommu_is_told_from_the_kernel(monkeypatch, tmp_path):
    monkeypatch.setattr(real_gpus, "IOMMU", tmp_path / "iommu")
    monkeypatch.setattr(real_gpus, "KERNEL", tmp_path / "cmdline")
    assert real_gpus.check_iommu().message == "off"
    (tmp_path / "iommu" / "dmar0").mkdir(parents=True)
    (tmp_path / "cmdline").write_text("quiet intel_iommu=on\n")
    assert "1 units; kernel options: intel_iommu=on" in real_gpus.check_iommu().message
    (tmp_path / "cmdline").write_text("quiet iommu=pt\n")
    assert "iommu=pt" in real_gpus.check_iommu().message


def test_questions_run_as_they_are_written(monkeypatch):
    """On virtual GPUs, where copies are right; NCCL itself is not there, so its sum is made by hand."""
    with vgpu.virtual_gpus(2, force=True):
        monkeypatch.setattr(torch.cuda.nccl, "version", lambda: (2, 27, 5))
        monkeypatch.setattr(torch.cuda.nccl, "all_reduce", lambda tensors: [tensor.fill_(3) for tensor in tensors])
        answers = []
        for code in (real_gpus.DEVICES, real_gpus.PEERS, real_gpus.COPIES, real_gpus.ALL_REDUCE):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(code, {})
            answers.append(json.loads(printed.getvalue()))
    assert len(answers[0]) == 2 and [len(row) for row in answers[1]] == [2, 2]
    assert answers[2:] == [[], ["2.27.5", True]]


def test_environment_of_a_question_reaches_its_process():
    question = "import json; print(json.dumps(os.environ['NCCL_P2P_DISABLE']))"
    assert real_gpus.ask(question, **real_gpus.NO_PEER).printed == '"1"'
