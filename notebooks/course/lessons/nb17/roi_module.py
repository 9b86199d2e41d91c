"""The repaired RoI module of post 001, `posts/001_completed.py`, whose name Python cannot import."""

import importlib.util
import sys
from types import ModuleType

from course.kit.files import POSTS


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("course.lessons.nb17.completed", POSTS / "001_completed.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # so that its classes have a home, and their source can be shown
    spec.loader.exec_module(module)
    return module


roi_module = _load()
