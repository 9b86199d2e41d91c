"""torchrun on this machine, for a function that stands in a cell: "machines", ranks, and what each of them said.

    run = torchrun(train, folder, machines=2, restarts=1)

starts two agents, which is what a user does on each of two machines with

    torchrun --nnodes 2 --nproc-per-node 1 --rdzv-backend c10d --rdzv-endpoint ADDRESS:PORT --rdzv-id ID \
        --max-restarts 1 train.py

and waits for both. Each rank calls `train(folder)`. Ranks are on the CPU and join nothing by themselves.
"""

import linecache
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cloudpickle

from course.kit.ranks import pack

SECONDS = 180.0  # a guard against agents that never end; they need ten, and a multiple of it on a busy machine
LAST_WORDS = 5.0  # seconds in which a rank that torchrun ends may say what it was about to say
# With the agents' store shared, ranks of the second life read the addresses of the first from it and try to connect to
# processes that are gone (pytorch/pytorch issue 135712, 2024; met in half of the runs with torch 2.13 and 2.15).
SETTINGS = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
ROOT_CAUSE = re.compile(r"Root Cause \(first observed failure\):\n\[\d+\]:\n(?P<told>.*?)\n=====", re.DOTALL)
# What differs from run to run: process ids, places of files, and in which of two ways gloo noticed that a peer is gone.
VARIES = (
    (r" +\(pid: \d+\)", ""),
    (r"(exitcode +: -\d+) +\(SIG\w+\)", r"\1"),  # torch 2.11 does not name the signal here
    (r"PID \d+", "PID ..."),
    (r"\S*/error\.json", ".../error.json"),
    (r"\[/\S+\] .*(closed|reset) by peer.*", "... Connection closed by peer ..."),
)


@dataclass(frozen=True)
class Run:
    """What became of a run. Machines are in the order of their ranks.

    codes: the exit code of each machine's agent; agents: what each of them printed;
    said: rank -> life -> the lines that the rank printed in that life, its traceback at the end;
    endpoint: the address and port at which the agents met; command: what a user types for this run on each machine.
    """

    codes: list[int]
    agents: list[str]
    said: list[list[list[str]]]
    endpoint: str = ""
    command: str = ""

    def root_cause(self, machine: int) -> str:
        """What this machine's torchrun reports as Root Cause: rank, exit code, error file, and the error itself.

        Left out: the time, the host, process ids, and all of a traceback but its last line.
        """
        found = ROOT_CAUSE.search(self.agents[machine])
        if found is None:
            return "no Root Cause"
        fields, _, error = found["told"].partition("  traceback : ")
        lines = [line for line in fields.splitlines() if line.split()[0] not in ("time", "host")]
        last = error.rstrip().splitlines()[-1].strip()
        return plain("\n".join([*lines, f"  traceback : {last}"]))


def plain(text: str) -> str:
    """What a launcher or a rank has said, without what differs from run to run."""
    for varies, same in VARIES:
        text = re.sub(varies, same, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def torchrun(function: Callable[..., Any], *args: Any, machines: int = 2, ranks: int = 1, restarts: int = 0) -> Run:
    """Call `function(*args)` on every rank of so many "machines", each of them an agent of torchrun on this one.

    Raises TimeoutError when the agents have not ended after `SECONDS`; they are ended then.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    endpoint = f"127.0.0.1:{port}"
    options = ["--nnodes", str(machines), "--nproc-per-node", str(ranks)]
    options += ["--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--rdzv-id", "notebook"]
    options += ["--local-addr", "127.0.0.1", "--max-restarts", str(restarts)]
    command = [sys.executable, "-m", "torch.distributed.run", *options]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "job").write_bytes(pickle.dumps(pack(function, args)))
        # The store of the rendezvous is on the first machine. Where it is otherwise depends on who comes first, and an
        # agent whose store ends with the other machine says so, and nothing of its own rank.
        hosts = [["--rdzv-conf", f"is_host={int(machine == 0)}"] for machine in range(machines)]
        agents = [
            _start([*command, *host, "-m", __name__, name], folder, machine) for machine, host in enumerate(hosts)
        ]
        try:
            codes = [agent.wait(SECONDS) for agent in agents]
        except subprocess.TimeoutExpired:
            told = "\n".join((folder / f"machine {machine}").read_text()[-2000:] for machine in range(machines))
            raise TimeoutError(f"the agents did not end within {SECONDS:g} s. They said:\n{told}") from None
        finally:
            for agent in agents:
                agent.terminate()  # an agent ends its ranks first
            for agent in agents:
                agent.wait()
        return replace(
            _read(folder, codes, machines * ranks),
            endpoint=endpoint,
            command=_typed(options).replace(str(port), "PORT"),
        )


def _typed(options: list[str]) -> str:
    """The command with one option a line, as a user writes it. `is_host` is 1 on the first machine alone."""
    pairs = [f"    {name} {value}" for name, value in zip(options[::2], options[1::2], strict=True)]
    lines = [*(f"{name}={value}" for name, value in SETTINGS.items()), "torchrun", *pairs]
    return " \\\n".join([*lines, "    --rdzv-conf is_host=1 train.py"])


def _start(command: list[str], folder: Path, machine: int) -> "subprocess.Popen[bytes]":
    ours = {**SETTINGS, "OMP_NUM_THREADS": "1", "COURSE_MACHINE": str(machine)}
    with (folder / f"machine {machine}").open("wb") as file:
        return subprocess.Popen(command, env={**os.environ, **ours}, stdout=file, stderr=subprocess.STDOUT)


def _read(folder: Path, codes: list[int], world_size: int) -> Run:
    """Bring what agents and ranks have left in the order of the ranks; who is first is settled when they meet."""
    lives: list[list[list[str]]] = []
    machines: list[int] = []
    for rank in range(world_size):
        files = sorted(folder.glob(f"rank {rank} *"))  # their names go on with the time
        lives.append([file.read_text(encoding="utf-8").splitlines() for file in files])
        machines += [int(file.name.rsplit(" ", 1)[1]) for file in files[:1]]
    order = [*dict.fromkeys([*machines, *range(len(codes))])]
    agents = [(folder / f"machine {machine}").read_text(encoding="utf-8", errors="replace") for machine in order]
    return Run([codes[machine] for machine in order], agents, lives)


def _live(folder: Path) -> None:
    """The life of a rank: what it prints goes to a file of its own, and it may finish a sentence."""
    place = folder / f"rank {os.environ['RANK']} {time.time_ns()} {os.environ['COURSE_MACHINE']}"
    sys.stdout = sys.stderr = place.open("w", encoding="utf-8", buffering=1)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())  # runs when the collective that waits for a peer has failed
    job, sources = pickle.loads((folder / "job").read_bytes())
    for label, lines in sources.items():
        linecache.cache[label] = (sum(map(len, lines)), None, lines, label)
    function, args = cloudpickle.loads(job)
    try:
        function(*args)
    except Exception:
        traceback.print_exc()
        patience = LAST_WORDS / 5 if int(os.environ["LOCAL_WORLD_SIZE"]) > 1 else 0.0
        if not ended.wait(patience):  # an agent of several ranks sees first who was first
            sys.exit(1)
    if ended.is_set():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    _live(Path(sys.argv[1]))
