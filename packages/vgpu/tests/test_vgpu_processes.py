"""Other processes: spawned children are virtual too; the command line runs scripts and modules."""

import os
import socket
import subprocess
import sys

import pytest
import torch
import torch.multiprocessing as mp
import vgpu_ranks

import vgpu
import vgpu.__main__ as command_line

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


@pytest.mark.parametrize("method", ["spawn", pytest.param("forkserver", marks=FORKS)])
def test_a_child_has_the_devices_of_its_parent(gpus, method):
    context = mp.get_context(method)
    queue = context.SimpleQueue()
    x = torch.tensor([1.0, 2.0], device="cuda:3")
    child = context.Process(target=vgpu_ranks.report, args=(queue, x))
    child.start()
    found = queue.get()
    child.join(60)
    assert found == (4, "cuda:3", [1.0, 2.0], [2.0, 3.0]) and child.exitcode == 0


def test_nccl_means_gloo_and_ddp_on_two_virtual_gpus_gives_the_gradients_of_one(gpus):
    pytest.importorskip("numpy", reason="PyTorch's collectives of objects need it")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    results = mp.get_context("spawn").SimpleQueue()
    mp.spawn(vgpu_ranks.train, args=(port, results), nprocs=2)
    found = sorted(results.get() for _ in range(2))
    assert [f[:2] for f in found] == [(0, "cuda:0"), (1, "cuda:1")]
    assert max(f[2] for f in found) < 1e-10


@FORKS
def test_a_child_that_was_forked_before_a_device_was_used_may_use_them(gpus):
    child = os.fork()
    if child == 0:
        try:
            on = torch.ones(1, device="cuda:3")
            os._exit(int(on.is_cuda and on.item()))
        finally:
            os._exit(70)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


@FORKS
@pytest.mark.parametrize(
    ("use", "refusal"),
    [
        (lambda x: torch.cuda.current_device(), b"Cannot re-initialize CUDA in forked subprocess."),
        (lambda x: torch.ones(1).cuda(), b"Cannot re-initialize CUDA in forked subprocess."),
        (lambda x: torch.nn.Linear(1, 1).to("cuda:1"), b"Cannot re-initialize CUDA in forked subprocess."),
        (lambda x: x + 1, b"CUDA error: initialization error"),
        (lambda x: x.cpu(), b"CUDA error: initialization error"),
        (lambda x: x.sum().item(), b"CUDA error: initialization error"),
    ],
)
def test_a_forked_child_gets_cudas_own_refusal(gpus, use, refusal):
    x = torch.ones(1, device="cuda")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            use(x)
            words = b"nothing raised"
        except BaseException as error:
            words = str(error).encode()
        os.write(writer, words)
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 1000).startswith(refusal)
    assert (x + 1).item() == 2  # the parent goes on


def run(*arguments: str, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "vgpu", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, **options)


class TestProcessGroups:
    """In processes of their own: what is wrong here ends the interpreter."""

    @pytest.fixture
    def alone(self, tmp_path, monkeypatch):
        """Runs a program as the only rank of a group."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}.items():
            monkeypatch.setenv(name, value)

        def alone(program: str) -> subprocess.CompletedProcess:
            (tmp_path / "program.py").write_text(f"import torch, torch.distributed as dist\n{program}")
            return run("--gpus", "2", "--force", str(tmp_path / "program.py"))

        return alone

    def test_a_mesh_makes_its_own_group(self, alone):
        done = alone(
            "mesh = dist.init_device_mesh('cuda', (1,))\n"
            "x = torch.ones(2, device='cuda')\n"
            "dist.all_reduce(x, group=mesh.get_group())\n"
            "print(mesh.device_type, x.device, dist.get_backend_config())\n"
        )
        assert done.stdout == "cuda cuda:0 cuda:nccl\n", done.stderr
        assert "program.py:2: Notice: virtual GPUs have no NCCL" in done.stderr, "at the program's own line"

    def test_a_mesh_chooses_the_device_of_a_rank_that_has_used_none(self, alone):
        """Naming a rank's device to the group uses no device, as with NCCL: the mesh then takes that of LOCAL_RANK."""
        done = alone(
            "import os\n"
            "os.environ['LOCAL_RANK'] = '1'\n"
            "dist.init_process_group('nccl', device_id=torch.device('cuda', 1))\n"
            "print(torch.cuda.is_initialized())\n"
            "dist.init_device_mesh('cuda', (1,))\n"
            "print(torch.cuda.current_device())\n"
        )
        assert done.stdout == "False\n1\n", done.stderr

    def test_names_imported_before_the_virtual_gpus_came(self, alone):
        done = alone(
            "import vgpu\n"
            "vgpu.disable()\n"
            "from torch.distributed import init_process_group, new_group\n"
            "vgpu.enable(2, force=True)\n"
            "init_process_group('nccl', device_id=torch.device('cuda', 1))\n"
            "print(dist.get_backend(), dist.get_backend(new_group([0], backend='cpu:gloo,cuda:nccl')))\n"
        )
        assert done.stdout == "nccl cpu:gloo,cuda:nccl\n", done.stderr

    @pytest.mark.skipif(not hasattr(torch.distributed, "ProcessGroupNCCL"), reason="a build of torch without NCCL")
    def test_nccls_own_groups_refuse(self, alone):
        done = alone(
            "for module in (dist, dist.distributed_c10d):\n"
            "    for kind in [k for k in dir(module) if k.startswith('ProcessGroupNCCL')]:\n"
            "        try:\n"
            "            getattr(module, kind)(dist.HashStore(), 0, 1)\n"
            "        except NotImplementedError as error:\n"
            "            print(kind, error)\n"
            "        else:\n"
            "            raise SystemExit(f'{kind} of {module.__name__} was made')\n"
        )
        assert done.returncode == 0, done.stderr
        refused = "ProcessGroupNCCL virtual GPUs do not simulate ProcessGroupNCCL itself; init_process_group('nccl')"
        assert done.stdout.count(refused) == 2, done.stdout


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
    def test_a_bad_number(self, gpus, capsys):
        with pytest.raises(SystemExit) as stopped:
            command_line.main(["--gpus", gpus, __file__])
        assert stopped.value.code == 2 and f"gpus must be from 1 to 64, got {gpus}" in capsys.readouterr().err

    def test_a_missing_script(self):
        quiet = {
            **os.environ,
            "PYTHONWARNINGS": "ignore:Failed to initialize NumPy",
        }  # torch says so where there is none
        done = run("--force", "nowhere.py", env=quiet)
        assert (done.returncode, done.stderr) == (2, "python -m vgpu: error: no such file: nowhere.py\n")

    @pytest.mark.parametrize(("program", "text"), [(("-c", "PROGRAM"), ""), (("-",), "PROGRAM")])
    def test_a_text_is_run_as_python_runs_it(self, program, text):
        told = "import sys, torch; print(__name__, sys.argv, torch.ones(1, device='cuda:2').device)"
        command = [
            sys.executable,
            "-m",
            "vgpu",
            "--gpus",
            "3",
            *(part.replace("PROGRAM", told) for part in program),
            "x",
        ]
        given = text.replace("PROGRAM", told)
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=600)
        assert done.stdout == "__main__ ['-c', 'x'] cuda:2\n".replace("-c", program[0]), done.stderr

    def test_the_version(self, capsys):
        with pytest.raises(SystemExit) as stopped:
            command_line.main(["--version"])
        assert stopped.value.code == 0 and capsys.readouterr().out == f"vgpu {vgpu.__version__}\n"

    def test_python_programs_a_script_starts_are_virtual_too(self, tmp_path):
        inner = tmp_path / "inner.py"
        inner.write_text("import torch\nprint(torch.cuda.device_count(), torch.ones(1, device='cuda:1').device)\n")
        outer = tmp_path / "outer.py"
        outer.write_text("import subprocess, sys\nsubprocess.run([sys.executable, sys.argv[1]], check=True)\n")
        done = run("--gpus", "2", "--force", str(outer), str(inner))
        assert done.stdout == "2 cuda:1\n", done.stderr

    @pytest.mark.exhaustive
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

    @FORKS
    @pytest.mark.parametrize("preload", ["", "mp.set_forkserver_preload(['torch'])"])
    def test_so_are_those_of_a_fork_server(self, tmp_path, preload):
        """Which is the default of Python 3.14 on Linux. The server starts as a program, and forks the children."""
        script = tmp_path / "script.py"
        script.write_text(
            "import torch, torch.multiprocessing as mp\n"
            "from torch.utils.data import DataLoader\n"
            "def work(queue, x):\n"
            "    queue.put(f'{torch.ones(1).cuda(1).device} of {torch.cuda.device_count()}, {x.device} {x.sum():g}')\n"
            "if __name__ == '__main__':\n"
            f"    {preload}\n"
            "    context = mp.get_context('forkserver')\n"
            "    queue = context.SimpleQueue()\n"
            "    for k in range(2):\n"
            "        child = context.Process(target=work, args=(queue, torch.ones(3, device=f'cuda:{k}')))\n"
            "        child.start()\n"
            "        print(queue.get())\n"
            "        child.join()\n"
            "    workers = {'num_workers': 1, 'multiprocessing_context': 'forkserver', 'pin_memory': True}\n"
            "    batches = DataLoader(range(6), 3, **workers)\n"
            "    print([batch.cuda().sum().item() for batch in batches])\n"
        )
        done = run("--gpus", "3", "--force", str(script))
        expected = ["cuda:1 of 3, cuda:0 3", "cuda:1 of 3, cuda:1 3", "[3, 12]"]
        assert done.stdout.splitlines() == expected, done.stderr

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
