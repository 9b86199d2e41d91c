"""Check whether a machine is ready for several GPUs, real or virtual: `python -m multigpu doctor [--real] [--json]`.

The doctor imports the standard library alone, because it has to work if torch does not. Whatever could crash or hang
runs in a child process with a time limit, and each failure names its fix.
"""

import argparse
import importlib.metadata
import json
import shutil
import socket
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cache
from pathlib import Path

from multigpu.doctor.finding import Finding
from multigpu.doctor.probe import Probe, probe
from multigpu.doctor.real_gpus import examine_gpus

PYTHON_RANGE = ((3, 11), (3, 14))  # from, up to but not including
OLDEST_TORCH = (2, 11)
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
START_OVER = "`make clean`, then `make lab` (or `python tasks.py clean`, `python tasks.py lab`)"


def in_project() -> bool:
    """Whether the doctor runs in a checkout of the notebooks, which has commands of its own to mend an environment."""
    return Path("tasks.py").is_file() and Path("notebooks").is_dir()


def mend(package: str) -> str:
    """How to get a package, or to get it again."""
    return START_OVER if in_project() else f"{sys.executable} -m pip install --upgrade {package}"


def installed(package: str) -> str:
    """The version a package was installed as, without importing it; empty when it is not there."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def release(version: str) -> tuple[int, ...]:
    """(2, 15) of 2.15.0+cpu."""
    return tuple(int(part) for part in version.split("+")[0].split(".")[:2])


def dotted(bounds: tuple[tuple[int, ...], tuple[int, ...]]) -> str:
    low, high = (".".join(map(str, bound)) for bound in bounds)
    return f">={low},<{high}"


def check_python() -> Finding:
    low, high = PYTHON_RANGE
    version = ".".join(map(str, sys.version_info[:3]))
    if low <= sys.version_info[:2] < high:
        return Finding("python", True, version)
    message = f"{version}; {dotted(PYTHON_RANGE)} is needed"
    return Finding("python", False, message, f"install such a Python{', ' + START_OVER if in_project() else ''}")


@cache
def ask_torch() -> Probe:
    """Its version, the CUDA version it was built for (or None), and the number of CUDA devices it finds."""
    return probe("-c", "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.device_count())")


def check_torch() -> Finding:
    found = ask_torch()
    if not found.ok:
        return Finding("torch", False, f"cannot be imported: {found.complaint}", mend("torch"))
    version, cuda, _ = found.printed.split()
    if release(version) < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        return Finding("torch", False, f"{version}; {oldest} or newer is needed", mend("torch"))
    return Finding("torch", True, f"{version}, {'CPU build' if cuda == 'None' else f'CUDA {cuda} build'}")


def check_torchvision() -> Finding:
    """The pair: torchvision's operators are compiled against one build of torch, and fail beside another."""
    code = "import torch; from torchvision import __version__, ops; ops.nms(torch.rand(3, 4), torch.rand(3), 0.5); "
    code += "print(__version__)"
    found = probe("-c", code)
    if found.ok:
        return Finding("torchvision", True, f"{found.printed}, its operators load")
    torch, torchvision = installed("torch"), installed("torchvision")
    mismatch = ("torchvision::nms does not exist", "undefined symbol", "custom C++ ops", "procedure could not be found")
    if any(sign in found.complaint for sign in mismatch):
        message = f"torch {torch} and torchvision {torchvision} are different builds ({found.complaint})"
        where = f"--index-url {CPU_INDEX} " if "+cpu" in torch else ""
        locked = f"--constraint {Path('constraints.txt').resolve()} " if in_project() else ""
        pip = f"{sys.executable} -m pip install --force-reinstall --no-deps {locked}".rstrip()
        return Finding("torchvision", False, message, f"take both from one index: {pip} {where}torch torchvision")
    return Finding("torchvision", False, f"cannot be imported: {found.complaint}", mend("torchvision"))


def check_devices() -> Finding:
    count = int(ask_torch().printed.split()[-1])
    if count:
        found = f"{count} CUDA device{'s' if count > 1 else ''}"
        return Finding("devices", True, f"{found}; notebooks that need more use virtual GPUs")
    driver = Path("/proc/driver/nvidia").exists() or shutil.which("nvidia-smi") is not None
    unused = " (the NVIDIA driver here does not serve this build of torch)" if driver else ""
    return Finding("devices", True, f"no CUDA device{unused}: the notebooks use virtual GPUs, made for this")


def check_kernel() -> Finding:
    """A notebook's kernel, started as JupyterLab starts it, must be this interpreter."""
    code = (
        "from jupyter_client.manager import start_new_kernel as start; manager, client = start(kernel_name='python3');"
        "client.execute_interactive('import sys; print(sys.prefix)', timeout=60);"
        "client.stop_channels(); manager.shutdown_kernel(now=True)"
    )
    found = probe("-c", code)
    if not found.ok:
        fix = f"{sys.executable} -m pip install jupyterlab"
        return Finding("kernel", False, f"does not start: {found.complaint}", fix)
    if Path(found.printed).resolve() != Path(sys.prefix).resolve():
        fix = "`jupyter kernelspec remove python3`, which removes the one that comes first"
        return Finding("kernel", False, f"python3 starts another Python: {found.printed}", fix)
    return Finding("kernel", True, "starts, and is this Python")


def check_writing() -> Finding:
    """Notebooks are saved in their own folder, and runs are written beside them, so both must be writable."""
    for place in (Path.cwd(), Path(tempfile.gettempdir())):
        try:
            with tempfile.TemporaryFile(dir=place) as file:
                file.write(b"x")
        except OSError as error:
            fix = "use a folder of your own, on a disk with room"
            return Finding("writing", False, f"{place}: {error.strerror}", fix)
    return Finding("writing", True, "this folder and the temporary one can be written to")


def check_port() -> Finding:
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname(), timeout=5),
        ):
            return Finding("port", True, "127.0.0.1 accepts connections")
    except OSError as error:
        fix = "allow connections to 127.0.0.1 in the firewall, and take it out of any proxy"
        return Finding("port", False, f"127.0.0.1 refuses connections: {error}", fix)


def check_handshake() -> Finding:
    found = probe(str(Path(__file__).with_name("handshake.py")))
    if found.ok and found.printed == "3.0 3.0":
        return Finding("handshake", True, "two processes summed their numbers over gloo")
    fix = (
        "only programs of several processes need it; name the loopback interface (export GLOO_SOCKET_IFNAME=lo, "
        "on macOS lo0), let Python through the firewall, and see that the host name resolves"
    )
    message = found.complaint if not found.ok else found.printed
    return Finding("handshake", False, f"two processes over gloo: {message}", fix)


def check_scatter() -> Finding:
    code = (
        "import torch; from vgpu import virtual_gpus\n"
        "from torch.nn.parallel import scatter\n"
        "with virtual_gpus(2):\n"
        "    print(*(f'{part.device}:{len(part)}' for part in scatter(torch.ones(10, 1), [0, 1])))"
    )
    found = probe("-c", code)
    if found.ok and found.printed == "cuda:0:5 cuda:1:5":
        return Finding("scatter", True, "ten rows went to two virtual GPUs, five each")
    message = found.complaint if not found.ok else f"ten rows were split as {found.printed}"
    return Finding("scatter", False, f"on virtual GPUs: {message}", mend("vgpu"))


AT_ONCE = (check_python, check_writing, check_port, check_torch)
ON_TORCH = (check_devices, check_handshake)
# Checks of packages that an environment need not have: they run if it has the package, or if the notebooks need it.
OPTIONAL = {"torchvision": check_torchvision, "vgpu": check_scatter, "jupyterlab": check_kernel}


def examine() -> list[Finding]:
    """All checks, in the order in which to mend things; those that need torch are left out if torch does not work."""
    findings = [check() for check in AT_ONCE]
    wanted = {name: check for name, check in OPTIONAL.items() if installed(name) or in_project()}
    rest = [*ON_TORCH, *wanted.values()] if findings[-1].ok else [wanted[n] for n in wanted if n == "jupyterlab"]
    with ThreadPoolExecutor(max_workers=3) as pool:
        return findings + list(pool.map(lambda check: check(), rest))


def report(findings: list[Finding]) -> str:
    """A line for each check, with the fix below a failed one, and a line that sums up."""
    lines = []
    for finding in findings:
        lines.append(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.check:<12} {finding.message}")
        if finding.fix:
            lines.append(f"      {'':<12} fix: {finding.fix}")
    failed = sum(not finding.ok for finding in findings)
    lines.append(f"{failed} of {len(findings)} checks failed" if failed else f"all {len(findings)} checks passed")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Check whether PyTorch works here, and say how to mend what does not. The exit code is 1 if a check fails."""
    parser = argparse.ArgumentParser(prog="python -m multigpu doctor", description=main.__doc__)
    parser.add_argument("--json", action="store_true", help="print the checks as one JSON object")
    parser.add_argument(
        "--real",
        action="store_true",
        help="check how the real GPUs of this machine reach each other, in place of the other checks",
    )
    options = parser.parse_args(argv)
    findings = list(examine_gpus()) if options.real else examine()
    ok = all(finding.ok for finding in findings)
    told = {"ok": ok, "checks": [asdict(finding) for finding in findings]}
    print(json.dumps(told) if options.json else report(findings))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
