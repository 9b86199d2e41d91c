"""Each rule lets a good notebook pass and catches the bad one it is made for."""

from pathlib import Path

import nbformat
import pytest
import rules
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from stored import Notebook

from course.kit.learn.predict import outcome_card
from course.tools.glossary import Term
from course.tools.store import normal_form

TOP = """\
# 01 · Scatter: the rows that vanished

*After this notebook you can fix* a step that feeds ten rows and gets five back.

**Goals**

1. Predict how an input is split.
2. Name the rule.
3. Repair the call.

**Prerequisites:** [00 Start here](00_start_here.ipynb)\\
**Minutes:** 30\\
**Devices:** none needed; two virtual GPUs, or two real ones."""

END = """\
## Recap
- Each argument is chunked alone.

## Three questions

1. Why five?

   <details><summary>Answer</summary>

   Ten rows make `two` chunks.

   </details>

2. Why not six?

   <details><summary>Answer</summary>

   Chunks are equal.

   </details>

3. What of keywords?

   <details><summary>Answer</summary>

   They are cut, too.

   </details>

## Further reading
- pytorch/pytorch issue 65936 (2021), *Deprecate DataParallel*

## Next
[00 Start here](00_start_here.ipynb)"""

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><title>Rows</title><desc>Ten rows, two lanes.</desc></svg>'


@pytest.fixture(autouse=True)
def small_glossary(monkeypatch):
    terms = [Term("chunk", "01", "A part."), Term("rank", "03", "A number."), Term("RoI", "29", "A box.")]
    monkeypatch.setattr(rules, "GLOSSARY", terms)


def code(source, *outputs, tags=()):
    return new_code_cell(source, outputs=list(outputs), metadata={"tags": list(tags)} if tags else {})


def stdout(text):
    return new_output("stream", name="stdout", text=text)


def shown(**data):
    return new_output(
        "display_data", data={mime.replace("_", "/").replace("svg", "svg+xml"): text for mime, text in data.items()}
    )


def exercise(name):
    unsolved = stdout(f"01.{name}: not solved yet\n")
    folded = shown(text_html="<details><summary>Solution</summary></details>", text_plain="folded")
    return [
        code(
            f"def {name}(n):\n    return learn.TODO\n\n\nlearn.check('01.{name}', {name})", unsolved, tags=["exercise"]
        ),
        code(f"learn.solution('01.{name}')", folded, tags=["solution"]),
    ]


def good_cells():
    predict = [code(f"learn.predict('01.p{k}')", stdout("Predict\n"), tags=["predict"]) for k in "abc"]
    outcome = shown(**{mime.replace("/", "_"): text for mime, text in outcome_card("5")._repr_mimebundle_().items()})
    return [
        new_markdown_cell(TOP),
        code(
            "from course.kit import learn\nfrom course.kit.setup import setup\n\ngpus = setup(gpus=2)",
            stdout("2 virtual\n"),
            tags=["setup"],
        ),
        new_markdown_cell("## Ten in, five out\nThe batch is ten digits, and a *chunk* is `just` a part of it."),
        *predict,
        code(
            "learn.reveal('01.pa', 5)\nlearn.reveal('01.pb', 5)\nlearn.reveal('01.pc', 5)",
            stdout("shape (5, 64) on cuda:0\n"),
            *(outcome, outcome, outcome),
        ),
        code("figures.flow(rows)", shown(image_svg=SVG, text_plain="Ten rows")),
        code("figures.flow_slider()", tags=["widget"]),
        *exercise("chunk_sizes"),
        *exercise("rows_lost"),
        *exercise("share"),
        new_markdown_cell(END),
    ]


def notebook(cells, folder, name="01_scatter.ipynb", metadata=None):
    """The notebook as `make notebooks` would store it."""
    (folder / "00_start_here.ipynb").touch()
    count = 0
    for cell in cells:
        if cell.cell_type == "code":
            cell.execution_count = count = count + 1
    node = normal_form(new_notebook(cells=cells))
    node.metadata.update(metadata or {})
    return Notebook(Path(folder / name), nbformat.writes(node).rstrip("\n") + "\n")


def faults(rule, cells, folder, **kwargs):
    return "\n".join(getattr(rules, rule)(notebook(cells, folder, **kwargs)))


@pytest.mark.parametrize("rule", [rule.__name__ for rule in rules.LESSON + rules.ANYWHERE])
def test_good_notebook_passes(rule, tmp_path):
    assert faults(rule, good_cells(), tmp_path) == ""


REPLACED = [  # rule, what stands in the good notebook, what stands in the bad one, what the rule says
    ("top_cell", "# 01 ·", "# 03 ·", "a title '# 01"),
    ("top_cell", "3. Repair the call.\n", "", "2 numbered goals"),
    ("top_cell", "*After this notebook you can fix*", "You will learn", "After this notebook you can fix"),
    ("top_cell", "[00 Start here](00_start_here.ipynb)\\\n**M", "some maths\\\n**M", "Prerequisites"),
    ("top_cell", "**Minutes:** 30", "**Minutes:** half an hour", "Minutes"),
    ("top_cell", "**Devices:**", "Devices", "Devices"),
    ("end_cells", "## Recap", "## Summary", "the last sections are"),
    ("end_cells", "3. What of keywords?\n", "", "2 numbered questions"),
    ("folded_answers", "Chunks are equal.", "", "below the question: Why not six?"),
    ("folded_answers", "   <details><summary>Answer</summary>\n\n   Ten", "   Ten", "below the question: Why five?"),
    ("folded_answers", "<details><summary>Answer", "<details open><summary>Answer", "below the question: What of keyw"),
    ("end_cells", "issue 65936 (2021)", "issue", "no year, version or link"),
    ("setup_cell", "gpus = setup(gpus=2)", "gpus = 2", "calls setup()"),
    ("predictions", "learn.reveal('01.pb', 5)", "pass", "'01.pb' in cell 4 is never revealed"),
    ("predictions", "learn.predict('01.pb')", "pass", "2 predictions, not 3 to 5"),
    ("predictions", "learn.predict('01.pb'", "learn.predict('01.pa'", "share a name"),
    ("hidden_sources", "learn.predict('01.pb')", "learn.predict('01.pb', 'How?', 'ab')", "does more than to name its"),
    ("folded_outcomes", "learn.reveal('01.pb', 5)", "pass", "reveals 2 outcomes and stores 3"),
    ("folded_outcomes", "<details class", "<details open class", "an outcome that is not folded"),
    ("folded_outcomes", "<div>5</div></details>", "</details><div>5</div>", "an outcome that is not folded"),
    ("exercises", "learn.check('01.share', share)", "share(3)", "does not end in a check"),
    ("exercises", "<details>", "<div>", "is not folded"),
    ("exercises", "01.share: not solved yet", "01.share: solved", "does not end in a check"),
    ("figures_in_words", "<desc>Ten rows, two lanes.</desc>", "", "no <desc>"),
    ("figures_in_words", "<title>Rows</title>", "<title></title>", "no <title>"),
    ("plain_words", "The batch is", "The batch is simply", "says 'simply'"),
    ("plain_words", "The batch is", "Of course the batch is", "says 'Of course'"),
    (
        "files_found_from_anywhere",
        "gpus = setup(gpus=2)",
        "text = open('posts/000.py')\ngpus = setup(gpus=2)",
        "own place",
    ),
    ("files_found_from_anywhere", "The batch is", "[It](posts/README.md) is", "links to a file beside"),
    ("terms_at_first_use", "*chunk*", "chunk", "no cell explains 'chunk': it should stand there as *chunk*"),
    ("terms_at_first_use", "*chunk*", "*chunk of rows*", "no cell explains 'chunk'"),
    ("terms_at_first_use", "The batch is", "On this rank the batch is", "cell 2 says 'rank', which 03 explains"),
    ("terms_at_first_use", "Why five?", "Why five RoIs?", "says 'RoI', which 29 explains"),
    ("links", "00_start_here.ipynb)\\", "00_begin.ipynb)\\", "00_begin.ipynb, which is not there"),
]


@pytest.mark.parametrize(("rule", "old", "new", "says"), REPLACED, ids=[f"{row[0]}-{row[2][:20]}" for row in REPLACED])
def test_rule_catches_a_replaced_text(rule, old, new, says, tmp_path):
    cells = good_cells()
    for cell in cells:
        cell.source = cell.source.replace(old, new)
        for output in cell.get("outputs", []):
            if "text" in output:
                output.text = output.text.replace(old, new)
            for mime, text in output.get("data", {}).items():
                output.data[mime] = text.replace(old, new)
    assert says in faults(rule, cells, tmp_path)


ADDED = [  # rule, a cell added before the end, what the rule says
    ("cell_length", code("\n".join(["x = 1"] * 26)), "26 lines, over 25"),
    ("setup_cell", code("setup(gpus=4)"), "calls setup()"),
    ("no_clutter", code("x = 1;"), "ends in ';'"),
    ("no_clutter", code("x = 1;  # quiet"), "ends in ';'"),
    ("no_clutter", code("from IPython.display import clear_output"), "uses clear_output"),
    ("no_clutter", code("display(x).update_display(y)"), "uses update_display"),
    ("no_clutter", code("!ls"), "shell command: !ls"),
    ("no_clutter", code("%%writefile train.py\nx = 1"), "uses %%writefile"),
    ("errors_on_purpose", code("f()", new_output("error", ename="E", evalue="e")), "without the tag"),
    ("errors_on_purpose", code("f()", tags=["raises-exception"]), "raises nothing"),
    ("no_stderr", code("f()", new_output("stream", name="stderr", text="warned\n")), "stderr: warned"),
    ("no_machine_traces", code("f()", stdout("/home/ada/frcnn_lite/x.py")), "a path: /home/"),
    ("no_machine_traces", code("f()", stdout(r"C:\Users\ada")), "a path: C:\\U"),
    ("no_machine_traces", code("f()", stdout("lib/python3.11/site-packages/torch")), "a path: site-packages"),
    ("no_machine_traces", code("f()", stdout("run of 2026-11-21")), "a date: 2026-11-21"),
    ("no_machine_traces", code("f()", stdout("at 09:03:00")), "a time of day: 09:03:00"),
    ("no_machine_traces", code("f()", stdout("<Net object at 0x7fb53f7c13a0>")), "an address: 0x7fb5"),
    ("no_machine_traces", code("f()", stdout("tensor on cpu:2")), "an internal device: cpu:2"),
    ("no_machine_traces", code("f()", shown(text_html="<p>/tmp/x</p>")), "a path: /tmp/"),
    ("no_times", code("f()", stdout("step: 12.5 ms")), "a time: 5 ms"),
    ("no_times", code("f()", stdout("3 it/s")), "a time: 3 it/s"),
    ("exercises", code("x", tags=["solution"]), "has 2 solutions"),
    (
        "predictions",
        code("learn.predict('01.z', 'How?', 'ab')\nlearn.reveal('01.z', 'a')"),
        "without the tag 'predict'",
    ),
    ("widget_twins", code("f()", tags=["widget"]), "has no static twin"),
    ("stored_form", code("f()", tags=["exercize"]), "unknown tag 'exercize'"),
    ("stored_size", code("f()", stdout("x" * 1_000_000)), "over 1000000"),
]


@pytest.mark.parametrize(("rule", "cell", "says"), ADDED, ids=[f"{row[0]}-{row[2][:20]}" for row in ADDED])
def test_rule_catches_an_added_cell(rule, cell, says, tmp_path):
    cells = good_cells()
    assert says in faults(rule, [*cells[:-1], cell, cells[-1]], tmp_path)


def test_rule_catches_a_missing_solution(tmp_path):
    assert "has 0 solutions" in faults(
        "exercises", [cell for cell in good_cells() if "01.share')" not in cell.source], tmp_path
    )


def test_rule_catches_too_few_exercises(tmp_path):
    cells = [cell for cell in good_cells() if not {"exercise", "solution"} & set(cell.metadata.get("tags", []))]
    assert "0 exercises, fewer than 2" in faults("exercises", cells, tmp_path)


@pytest.mark.parametrize(("texts", "says"), [(3, ""), (4, "below the outcome of cell 6 are more than 3 cells of text")])
def test_rule_catches_more_text_below_an_outcome_than_is_hidden(texts, says, tmp_path):
    told, cells = 6, good_cells()
    cells[told + 1 : told + 1] = [new_markdown_cell(f"Text {k}.") for k in range(texts)]
    assert faults("folded_outcomes", cells, tmp_path).startswith(says)
    assert says or not faults("folded_outcomes", cells, tmp_path)


def test_rule_catches_too_many_cells(tmp_path):
    cells = [*good_cells(), *(new_markdown_cell("More.") for _ in range(40))]
    assert "over 40" in faults("number_of_cells", cells, tmp_path)
    assert faults("number_of_cells", good_cells(), tmp_path) == ""


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (["x = 1", "print(x)", "x = 2"], "cell 1 reads 'x', which cell 2 binds anew"),
        (
            ["x = 1", "def f():\n    return x", "for x in range(3):\n    pass"],
            "cell 1 reads 'x', which cell 2 binds anew",
        ),
        (["x = 1", "[x for _ in range(3)]", "import numpy as x"], "cell 1 reads 'x', which cell 2 binds anew"),
        (["x = 1", "def f(y=x):\n    return y", "x = 2"], "cell 1 reads 'x', which cell 2 binds anew"),
        (["x = 1", "x = x + 1"], "cell 1 reads 'x', and binds it anew"),
        (["x = 1", "x += 1"], "cell 1 reads 'x', and binds it anew"),
        (["x = 1", "x = 2\nprint(x)", "x = 3"], ""),
        (["def f():\n    return x", "x = 1\nf()", "f()"], ""),
        (["x = 1", "print([x for x in range(3)], (lambda x: x)(4))", "x = 2"], ""),
        (
            [
                "try:\n    f()\nexcept ValueError as e:\n    print(e)",
                "try:\n    f()\nexcept ValueError as e:\n    pass",
            ],
            "",
        ),
        (["x = 1", "%time x", "x = 2"], ""),
    ],
)
def test_rule_follows_names_through_the_cells(cells, says, tmp_path):
    assert faults("names_kept", [code(source) for source in cells], tmp_path) == says


@pytest.mark.parametrize("name", ["2_scatter.ipynb", "02-scatter.ipynb", "02_Scatter.ipynb", "Untitled.ipynb"])
def test_rule_catches_a_file_name(name, tmp_path):
    assert "NN_topic" in faults("file_name", good_cells(), tmp_path, name=name)


def test_rule_catches_a_user_and_a_host(tmp_path, monkeypatch):
    monkeypatch.setattr(rules.getpass, "getuser", lambda: "lovelace")
    monkeypatch.setattr(rules.socket, "gethostname", lambda: "analytical-engine")
    for name in ("lovelace", "analytical-engine"):
        cells = [*good_cells(), code("f()", stdout(f"{name}: ready"))]
        assert f"a user or host name: {name}" in faults("no_machine_traces", cells, tmp_path)


def test_rule_catches_cells_run_out_of_order(tmp_path):
    stored = notebook(good_cells(), tmp_path)
    stored.node.cells[3].execution_count, stored.node.cells[4].execution_count = 3, 2
    assert "not those of one run" in rules.ordered_run(stored)[0]
    stored.node.cells[3].execution_count = None
    assert "not those of one run" in rules.ordered_run(stored)[0]


@pytest.mark.parametrize("tag", ["predict", "solution"])
def test_rule_catches_a_source_that_is_shown(tag, tmp_path):
    stored = notebook(good_cells(), tmp_path)
    k = stored.tagged(tag)[0]
    del stored.node.cells[k].metadata["jupyter"]
    assert rules.hidden_sources(stored) == [f"the source of cell {k}, tagged {tag!r}, is not hidden"]


def test_rule_catches_an_editors_memory(tmp_path):
    assert "run `python tasks.py notebooks" in faults(
        "stored_form", good_cells(), tmp_path, metadata={"widgets": {"a": 1}}
    )


@pytest.mark.parametrize(
    "text", ["Figure 3 of 2", "http://www.w3.org/2000/svg", "loss 0.25 / 0.5", "rows 0:5 on cuda:1", "5 samples", "1/2"]
)
def test_innocent_outputs_pass(text, tmp_path):
    cells = [*good_cells(), code("f()", stdout(text))]
    assert faults("no_machine_traces", cells, tmp_path) == "" and faults("no_times", cells, tmp_path) == ""


def test_bitmaps_inside_a_figure_are_not_read_as_text(tmp_path):
    figure = SVG.replace("</svg>", '<image href="data:image/png;base64,/tmp/0x7fb53f7c13a0"/></svg>')
    assert faults("no_machine_traces", [*good_cells(), code("f()", shown(image_svg=figure))], tmp_path) == ""


def test_a_word_may_not_come_before_the_cell_that_explains_it(tmp_path):
    cells = good_cells()
    assert faults("terms_at_first_use", [*cells[:2], new_markdown_cell("Two `chunks`."), *cells[2:]], tmp_path) == (
        "cell 2 says 'chunk', which cell 3 explains"
    )
    question = code("learn.predict('01.pd')", shown(text_plain="Predict: How many chunks?"), tags=["predict"])
    assert "cell 2 says 'chunk'" in faults("terms_at_first_use", [*cells[:2], question, *cells[2:]], tmp_path)
    assert "cell 2 says 'rank'" in faults(
        "terms_at_first_use", [*cells[:2], new_markdown_cell("A **rank**."), *cells[2:]], tmp_path
    )


@pytest.mark.parametrize(
    "text", ["[08 When ranks wait](08_ranks.ipynb)", "```python\nrank = 3\n```", "cranky", "dp.rank"]
)
def test_names_of_notebooks_and_programs_use_no_word(text, tmp_path):
    (tmp_path / "08_ranks.ipynb").touch()
    assert (
        faults("terms_at_first_use", [*good_cells()[:-1], new_markdown_cell(text), new_markdown_cell(END)], tmp_path)
        == ""
    )


def test_what_to_read_next_may_use_words_of_later_notebooks(tmp_path):
    cells = good_cells()
    cells[-1].source = cells[-1].source.replace("(2021), *Depr", "(2021), ranks and RoIs, *Depr")
    assert faults("terms_at_first_use", cells, tmp_path) == ""


def test_a_notebook_that_comes_later_may_use_every_word(tmp_path):
    cells = [*good_cells(), new_markdown_cell("A rank has one RoI.")]
    assert faults("terms_at_first_use", cells, tmp_path, name="30_scatter.ipynb") == ""
    assert faults("terms_at_first_use", cells, tmp_path, name="29_scatter.ipynb") == "", "29 has no marks yet"
    assert "no cell explains 'rank'" in faults("terms_at_first_use", cells, tmp_path, name="03_scatter.ipynb")
