"""A kernel that loses its port is started again; anything else that goes wrong is told at once."""

import socket

import pytest
from jupyter_client.manager import KernelManager
from nbval.kernel import start_new_kernel

from course.tools.kernels import TRIES, start_again


def test_a_kernel_whose_port_is_taken_is_started_again(monkeypatch):
    """A real kernel: at the first start somebody sits on the port that it was told to take."""
    original, taken = KernelManager.write_connection_file, []

    def write_connection_file(manager, **options):
        original(manager, **options)
        if not taken:
            server = socket.socket()
            server.bind((manager.ip, manager.shell_port))
            server.listen()
            taken.append(server)

    monkeypatch.setattr(KernelManager, "write_connection_file", write_connection_file)
    manager, client = start_again(start_new_kernel)(kernel_name=":nbval-parent-env")
    try:
        assert manager.is_alive() and len(taken) == 1
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        taken[0].close()


@pytest.mark.parametrize(("words", "tries"), [("Kernel died before replying", TRIES), ("no such kernel", 1)])
def test_the_last_error_is_raised(words, tries):
    tried = []

    def start():
        tried.append(1)
        raise RuntimeError(words)

    with pytest.raises(RuntimeError, match=words):
        start_again(start)()
    assert len(tried) == tries
