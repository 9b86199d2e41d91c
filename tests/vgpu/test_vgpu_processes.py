"""Other processes: spawned children are virtual too; the command line runs scripts and modules."""

import os
import socket
import subprocess
import sys

import pytest
import torch
import torch.multiprocessing as mp
import vgpu_ranks


def test_a_spawned_child_has_the_devices_of_its_parent(gpus):
    context = mp.get_context("spawn")
    queue = context.SimpleQueue()
    x = torch.tensor([1.0, 2.0], device="cuda:3")
    child = context.Process(target=vgpu_ranks.report, args=(queue, x))
    child.start()
    found = queue.get()
    child.join(60)
    assert found == (4, "cuda:3", [1.0, 2.0], [2.0, 3.0]) and child.exitcode == 0


def test_nccl_means_gloo_and_ddp_on_two_virtual_gpus_gives_the_gradients_of_one(gpus):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    results = mp.get_context("spawn").SimpleQueue()
    mp.spawn(vgpu_ranks.train, args=(port, results), nprocs=2)
    found = sorted(results.get() for _ in range(2))
    assert [f[:2] for f in found] == [(0, "cuda:0"), (1, "cuda:1")]
    assert max(f[2] for f in found) < 1e-10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_gets_cudas_own_refusal(gpus):
    torch.ones(1, device="cuda")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            torch.cuda.current_device()
            words = b"nothing raised"
        except BaseException as error:
            words = str(error).encode()
        os.write(writer, words)
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 1000).startswith(b"Cannot re-initialize CUDA in forked subprocess.")


def run(*arguments: str, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "frcnn_lite.vgpu", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, **options)


class TestCommandLine:
    def test_a_script_sees_its_own_arguments_and_folder(self, tmp_path):
        (tmp_path / "neighbour.py").write_text("NAME = 'neighbour'\n")
        script = tmp_path / "script.py"
        script.write_text(
            "import sys, torch, neighbour\nprint(__name__, sys.argv[1:], neighbour.NAME, torch.cuda.device_count())\n"
        )
        done = run("--gpus", "3", "--force", str(script), "--gpus", "9", "-x")
        assert done.stdout.split("\n")[0] == "__main__ ['--gpus', '9', '-x'] neighbour 3", done.stderr

    def test_a_module(self, tmp_path):
        (tmp_path / "tool.py").write_text("import sys, torch\nprint(sys.argv[1:], torch.cuda.device_count())\n")
        done = run("--gpus", "2", "--force", "-m", "tool", "a", "-b", cwd=tmp_path)
        assert done.stdout == "['a', '-b'] 2\n", done.stderr

    def test_the_exit_code_is_the_scripts(self, tmp_path):
        script = tmp_path / "script.py"
        script.write_text("raise SystemExit(7)\n")
        assert run("--force", str(script)).returncode == 7

    @pytest.mark.parametrize("gpus", ["0", "-1", "99"])
    def test_a_bad_number(self, gpus):
        done = run("--gpus", gpus, "script.py")
        assert done.returncode == 2 and f"gpus must be from 1 to 64, got {gpus}" in done.stderr

    def test_a_missing_script(self):
        done = run("--force", "nowhere.py")
        assert done.returncode == 2 and "no such file: nowhere.py" in done.stderr

    def test_python_programs_a_script_starts_are_virtual_too(self, tmp_path):
        inner = tmp_path / "inner.py"
        inner.write_text("import torch\nprint(torch.cuda.device_count(), torch.ones(1, device='cuda:1').device)\n")
        outer = tmp_path / "outer.py"
        outer.write_text("import subprocess, sys\nsubprocess.run([sys.executable, sys.argv[1]], check=True)\n")
        done = run("--gpus", "2", "--force", str(outer), str(inner))
        assert done.stdout == "2 cuda:1\n", done.stderr

    def test_processes_that_a_script_spawns_are_virtual_too(self, tmp_path):
        script = tmp_path / "script.py"
        script.write_text(
            "import torch, torch.multiprocessing as mp\n"
            "def work(rank):\n"
            "    torch.cuda.set_device(rank)\n"
            "    print(f'{torch.ones(1).cuda().device} of {torch.cuda.device_count()}\\n', end='')\n"
            "if __name__ == '__main__':\n"
            "    mp.spawn(work, nprocs=2)\n"
        )
        done = run("--gpus", "3", "--force", str(script))
        assert sorted(done.stdout.splitlines()) == ["cuda:0 of 3", "cuda:1 of 3"], done.stderr
        assert "sitecustomize" not in done.stderr

    def test_torchrun_gives_each_rank_its_virtual_gpu(self, tmp_path):
        script = tmp_path / "worker.py"
        script.write_text(
            "import os, torch, torch.distributed as dist\n"
            "rank = int(os.environ['LOCAL_RANK'])\n"
            "torch.cuda.set_device(rank)\n"
            "dist.init_process_group('gloo')\n"
            "x = torch.full((2,), rank + 1.0, device='cuda')\n"
            "dist.all_reduce(x)\n"
            "open(f'{os.path.dirname(__file__)}/{rank}.txt', 'w').write(f'{x.device} {x.tolist()}')\n"
            "dist.destroy_process_group()\n"
        )
        torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        done = run("--gpus", "2", "--force", *torchrun, str(script))
        assert done.returncode == 0, done.stderr
        assert [(tmp_path / f"{k}.txt").read_text() for k in (0, 1)] == [f"cuda:{k} [3.0, 3.0]" for k in (0, 1)]
