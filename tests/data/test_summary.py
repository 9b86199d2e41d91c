from annotated_folders import write_voc

from frcnn_lite.cli import main
from frcnn_lite.data import AnnotatedPictures, DataSource, summarise


def test_the_page_of_a_folder(tmp_path):
    pictures = {name: [("dog", (9, 9, 40, 40)), ("cat", (11, 11, 30, 30), True)] for name in "abc"}
    write_voc(tmp_path, {**pictures, "d": [("dog", (60, 5, 60, 5))]}, {"train": list("ab"), "val": list("cd")})
    source = DataSource.guess(str(tmp_path))
    read, defects = source.read()
    data = AnnotatedPictures(read, source.class_names(read), defects=defects)
    page = summarise(source, data)
    for line in (
        "splits: train 2, val 2",
        "training: train takes train, evaluate takes val",
        "4 pictures, 6 objects, 3 of them difficult or crowds",
        "  dog       3 in 3 pictures",
        "sizes of pictures: 64 x 48 (4)",
        "pictures brought to 96 x 64, anchors of 42.7 pixels, height / width 1\n  100.0% of the boxes",
        "defects: 2\nno_area: 1\n  Annotations/d.xml: dog 60 5 60 5\nempty: 1\n  Annotations/d.xml: no objects",
    ):
        assert line in page
    assert "training:" not in summarise(DataSource.guess(f"{tmp_path}@val"), data)


def test_the_command_says_whether_there_are_defects(tmp_path, capsys):
    write_voc(tmp_path / "sound", {name: [("dog", (9, 9, 40, 40))] for name in "ab"}, {"train": ["a"], "val": ["b"]})
    write_voc(tmp_path / "empty", {"a": []}, {"val": ["a"]})
    assert main(["data", "check", str(tmp_path / "sound")]) == 0
    assert capsys.readouterr().out.endswith("defects: 0\n")
    assert main(["data", "check", f"voc:{tmp_path / 'empty'}"]) == 1
    page = capsys.readouterr().out
    assert "no split of ['val'] can be trainval or train" in page and "empty: 1" in page
    assert main(["data", "check", str(tmp_path / "nowhere")]) == 2
