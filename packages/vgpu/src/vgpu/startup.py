"""Virtual GPUs for any Python program that runs with VGPUS=N, as soon as it imports torch.

An interpreter imports this file at start-up where the variable is set and one of two things tells it to: PYTHONPATH,
which `python -m vgpu` and `pytest --vgpus` leave to their children (inherit.py), or a file in site-packages, which only
`python -m vgpu autostart --install` adds (autostart.py). Programs that never import torch pay nothing.
"""

import sys

from vgpu.base import imports


def _enable() -> None:
    import vgpu
    from vgpu.racing import watch
    from vgpu.starting import choices

    vgpu.enable(**choices.of_each({}))
    watch.begin_if_told()


# A child of multiprocessing is told by its parent (processes.py); told twice, it would start in the middle of itself.
if "torch" not in sys.modules and "--multiprocessing-fork" not in sys.orig_argv:
    imports.after("torch", _enable)
