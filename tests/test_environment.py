"""pyproject.toml, environment.yml and constraints.txt say the same thing in three dialects."""

import re
import shlex
import tomllib
from importlib.metadata import distributions
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[1]
CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}
CONDA_ONLY = {"python", "pip"}


def project(folder: Path = ROOT) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def wanted() -> list[str]:
    """What a set-up installs: the library, the course, the tests, and the two packages with what tests them."""
    extras = project()["optional-dependencies"]
    lines = [*project()["dependencies"], *extras["course"], *extras["dev"]]
    for package in ("vgpu", "multigpu"):
        own = project(ROOT / "packages" / package)
        lines += [*own["dependencies"], *own["optional-dependencies"]["test"]]
    return lines


def pyproject_ranges() -> dict[str, SpecifierSet]:
    """Name to range, of what runs the notebooks and what tests them."""
    requirements = [Requirement(line) for line in wanted()]
    return {CONDA_NAMES.get(r.name, r.name): r.specifier for r in requirements}


def conda_ranges() -> dict[str, SpecifierSet]:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    requirements = [Requirement(line) for line in environment["dependencies"] if isinstance(line, str)]
    return {r.name: r.specifier for r in requirements}


def locked() -> dict[str, SpecifierSet]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    requirements = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {r.name.lower(): r.specifier for r in requirements}


def test_conda_and_pip_install_the_same_ranges():
    conda = conda_ranges()
    assert {name: spec for name, spec in conda.items() if name not in CONDA_ONLY} == pyproject_ranges()
    assert conda["python"] == SpecifierSet(project()["requires-python"])


def test_every_dependency_is_locked_inside_its_range():
    lock = locked()
    for line in wanted():
        requirement = Requirement(line)
        (pin,) = lock[requirement.name]
        assert pin.operator == "=="
        assert pin.version in requirement.specifier, f"constraints.txt locks {requirement.name} outside {line}"


def test_the_lock_admits_the_first_release_of_the_oldest_python():
    """Debian 12 has Python 3.11.2, and some distributions ask for a later 3.11."""
    oldest = f"{min(spec.version for spec in SpecifierSet(project()['requires-python']))}.0"
    lock, too_new = locked(), []
    for found in distributions():
        asks = found.metadata.get("Requires-Python") or ""
        if found.version in lock.get(found.name.lower(), ()) and oldest not in SpecifierSet(asks):
            too_new.append(f"{found.name} {found.version} asks for Python {asks}")
    assert too_new == []


def test_uv_installs_the_packages_and_the_course_by_the_lock():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    words = shlex.split(re.search(r"^ *uv pip install (.+)", readme, re.MULTILINE)[1])
    options = list(zip(words[::2], words[1::2], strict=True))
    installed = [name.partition("[") for option, name in options if option == "-e"]
    projects = {folder: {extra.removesuffix("]")} - {""} for folder, _, extra in installed}
    assert projects == {"packages/vgpu": set(), "packages/multigpu": set(), ".": {"course"}}
    assert all(
        extras <= project(ROOT / folder).get("optional-dependencies", {}).keys() for folder, extras in projects.items()
    )
    assert dict(options)["-c"] == "constraints.txt"


def test_tests_install_what_the_onnx_extra_does():
    extras = project()["optional-dependencies"]
    assert set(extras["onnx"]) <= set(extras["dev"])


def test_lock_leaves_cuda_libraries_to_torch():
    # They exist on Linux only, and torch pins them itself: a lock on one would break the others' set-up.
    assert not [name for name in locked() if name.startswith(("nvidia-", "cuda-", "triton"))]


def test_lock_admits_the_cpu_build():
    (pin,) = locked()["torch"]
    assert f"{pin.version}+cpu" in locked()["torch"]
