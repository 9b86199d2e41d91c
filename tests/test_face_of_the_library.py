"""What `from frcnn_lite import ...` offers, at what cost, and that README's programs run as they are printed."""

import subprocess
import sys

import pytest

import frcnn_lite
from frcnn_lite import detection, engine, parallel


def test_a_name_of_the_face_is_the_one_of_its_subpackage():
    assert frcnn_lite.FasterRCNN is detection.FasterRCNN and frcnn_lite.train is engine.train
    assert frcnn_lite.reduce_loss_over_ranks is parallel.reduce_loss_over_ranks
    assert len(set(frcnn_lite.__all__)) == len(frcnn_lite.__all__)


@pytest.mark.parametrize("name", frcnn_lite.__all__)
def test_every_name_is_there_and_listed_and_explained(name):
    assert name in dir(frcnn_lite) and getattr(frcnn_lite, name).__doc__


def test_to_list_the_names_brings_no_torch():
    code = "import sys, frcnn_lite; sys.exit('train' not in dir(frcnn_lite) or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_name_that_is_not_there_is_an_ordinary_error():
    with pytest.raises(AttributeError, match="module 'frcnn_lite' has no attribute 'RCNN'"):
        frcnn_lite.RCNN  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'RCNN'"):
        from frcnn_lite import RCNN  # noqa: F401
