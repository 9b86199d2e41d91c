"""Read at start-up by the interpreters that a virtual program starts, because its PYTHONPATH names this folder.

Python imports one module of this name, the first on the path. The environment may have one of its own, which this one
stands in front of, so it is run afterwards.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

# A child may also be the Python of a different environment, which has no virtual GPUs to offer.
if os.environ.get("VGPUS") and find_spec("vgpu") is not None:
    import vgpu.startup  # noqa: F401

_here = os.path.dirname(os.path.abspath(__file__))
_hidden = PathFinder.find_spec("sitecustomize", [entry for entry in sys.path if os.path.abspath(entry) != _here])
if _hidden is not None and _hidden.loader is not None:
    sys.modules["sitecustomize"] = module_from_spec(_hidden)
    _hidden.loader.exec_module(sys.modules["sitecustomize"])
