"""The fixtures of the browser tests."""

import shutil

import pytest
import reader


@pytest.fixture
def project(tmp_path):
    """A copy of the notebooks that the reader may change, with what nbval needs to judge it."""
    root = tmp_path / "project"
    shutil.copytree(reader.ROOT / "notebooks", root / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    for name in ("conftest.py", "pyproject.toml", "notebooks/course/tests/notebooks/nbval_sanitize.cfg"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(reader.ROOT / name, root / name)
    return root


@pytest.fixture
def browser(tmp_path):
    session = reader.start_browser(tmp_path)
    yield session
    session.quit()


@pytest.fixture
def lab(project, tmp_path, browser):  # the browser first: without one there is nothing to start
    """A running JupyterLab on the copy."""
    server = reader.Lab(project, tmp_path)
    server.start()
    yield server
    server.stop()
