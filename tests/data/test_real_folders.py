"""Real annotations with real defects, where a copy of BCCD is at hand: `FRCNN_LITE_BCCD=DIR pytest`."""

import os
from pathlib import Path

import pytest

from frcnn_lite.data import AnnotatedPictures, choose_splits

FOLDER = Path(os.environ.get("FRCNN_LITE_BCCD") or Path(__file__).parents[3] / "shared" / "data" / "bccd_voc")
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no copy of BCCD; FRCNN_LITE_BCCD names its folder")


def test_bccd_has_two_boxes_without_area():
    train, test = choose_splits(f"voc:{FOLDER}")
    assert (train.split, test.split) == ("trainval", "test") and (len(train.names()), len(test.names())) == (292, 72)
    pictures, defects = train.read()
    data = AnnotatedPictures(pictures, train.class_names(pictures), defects=defects)
    assert data.class_names == ("Platelets", "RBC", "WBC") and len(data) == 292
    assert {(d.kind, Path(d.file).stem) for d in data.defects} == {
        ("no_area", "BloodImage_00338"),
        ("no_area", "BloodImage_00343"),
    }
    scene = data[0]
    assert scene.image.shape == (3, 480, 640) and len(scene.boxes) == len(scene.labels) > 0
