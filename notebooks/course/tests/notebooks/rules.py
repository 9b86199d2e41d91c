"""The rules of docs/adding-a-notebook.md, each a function from a notebook to the list of its faults."""

import getpass
import re
import socket
from collections.abc import Callable

import nbformat
from names import names_of
from stored import Notebook, calls, items, keys, sections, without_code

from course.kit.learn.predict import BELOW, OUTCOME
from course.tools import reading_order
from course.tools.glossary import read_glossary
from course.tools.store import HIDDEN, normal_form

CELLS = 40  # one idea a notebook
GLOSSARY = read_glossary()
MARKED_TO = "12"  # the last notebook that has to mark the words which the glossary says it explains
UNREAD = re.compile(r"^## (?:Further reading|Next|The map)\b.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
CODE_LINES = 25  # the mechanism that a notebook teaches stands in its cells; plumbing lives in the course
STORED_BYTES = 1_000_000
EXERCISES, PREDICTIONS = 2, (3, 5)
CAPSTONE = "34"  # asks one question: its ten exercises are what the reader predicts
TAGS = {
    *("setup", "predict", "post", "widget", "exercise", "solution"),
    *("raises-exception", "nbval-ignore-output"),
}
HEADINGS = ("Recap", "Three questions", "Further reading", "Next")
# An answer is indented, so it belongs to its list item.
ANSWER = r"\n\n   <details><summary>Answer</summary>\n\n   \S.*\n\n   </details>\s*\Z"
BANNED = re.compile(r"\b(simply|just(?!-in-time)|obviously|of course)\b", re.IGNORECASE)
CLUTTER = ("clear_output", "update_display", "%%writefile")
# A closed `<details>` with no `open`, and nothing that can be seen beside it but a button.
FOLDED = (
    r"<div[^>]*>(<style>[^<]*</style>)*(<input [^>]*>)?"
    r"<details class=[^ >]*><summary>[^\n]*?</summary>.+</details></div>"
)
TRACES = {
    "a path": r"(?<![\w.:/<])/(?:home|Users|root|tmp|usr|opt|var|mnt|private)/|\b[A-Za-z]:\\\w|site-packages",
    "a date": r"\b(?:19|20)\d\d-\d\d-\d\d\b|\b\d{1,2} (?:January|February|March|April|June|July|August|September"
    r"|October|November|December) 20\d\d\b",
    "a time of day": r"\b\d\d:\d\d:\d\d\b",
    "an address": r"\b0x[0-9a-fA-F]{6,}",
    "an internal device": r"\bcpu:\d|\bprivateuseone\b",
}
TIMES = re.compile(r"\d\s?(?:[mµun]s|sec|seconds?|s/it|it/s)\b|\d s\b")
COMMON_NAMES = {"root", "user", "runner", "admin", "jovyan", "vscode", "localhost", "ubuntu"}  # words of many an output


def file_name(notebook: Notebook) -> list[str]:
    good = re.fullmatch(r"\d\d(_[a-z0-9]+)+\.ipynb", notebook.path.name)
    return [] if good else [f"{notebook.path.name} is not of the form NN_topic.ipynb"]


def top_cell(notebook: Notebook) -> list[str]:
    """Title, promise, three goals, prerequisites, minutes, devices."""
    first = notebook.node.cells[0]
    if first.cell_type != "markdown":
        return ["the first cell is not markdown"]
    top = first.source
    wanted = {
        f"a title '# {notebook.number} · …'": rf"\A# {notebook.number} · \S",
        "one sentence '*After this notebook you can fix* …'": r"^\*After this notebook you can fix\* [^.]",
        "'**Goals**'": r"^\*\*Goals\*\*",
        "'**Prerequisites:**' with links, or none": r"^\*\*Prerequisites:\*\* +(?:none|.*\]\(\S+\))",
        "'**Minutes:**' with a whole number": r"^\*\*Minutes:\*\* +\d+\b",
        "'**Devices:**'": r"^\*\*Devices:\*\* +\S",
    }
    faults = [f"the first cell lacks {what}" for what, form in wanted.items() if not re.search(form, top, re.MULTILINE)]
    goals = len(items(top, r"\d\."))
    return faults if goals == 3 else [*faults, f"the first cell has {goals} numbered goals, not three"]


def end_cells(notebook: Notebook) -> list[str]:
    """Recap, three questions, further reading with sources, next: the last four sections."""
    found = sections(notebook)
    if tuple(found)[-4:] != HEADINGS:
        return [f"the last sections are {', '.join(tuple(found)[-4:])}; they should be {', '.join(HEADINGS)}"]
    faults = [f"{name!r} is empty" for name in HEADINGS if not found[name].strip()]
    questions = len(items(found["Three questions"], r"\d\."))
    if questions != 3:
        faults.append(f"there are {questions} numbered questions, not three")
    sources = items(found["Further reading"], r"[-*]")
    sourced = r"https?://|\]\(|\b(?:19|20)\d\d\b|\b\d+\.\d+\b"
    faults += [f"no year, version or link: {line}" for line in sources if not re.search(sourced, line)]
    return faults if sources else [*faults, "'Further reading' lists nothing"]


def folded_answers(notebook: Notebook) -> list[str]:
    """Each of the three questions has its answer right below it, folded."""
    asked = sections(notebook).get("Three questions", "")
    parts = re.split(r"^ {0,3}\d\.[ \t]", asked, flags=re.MULTILINE)[1:]
    bare = [part.splitlines()[0] for part in parts if not re.search(ANSWER, part, re.DOTALL)]
    return [f"no folded answer below the question: {question}" for question in bare]


def setup_cell(notebook: Notebook) -> list[str]:
    """One cell calls setup(), and it is the first that runs."""
    callers = [k for k, cell in notebook.code if any(calls(cell.source, "setup"))]
    first = notebook.code[0][0] if notebook.code else None
    if callers != [first] or notebook.tagged("setup") != [first]:
        return [f"the first code cell, {first}, and no other calls setup() and has the tag 'setup'; found {callers}"]
    return []


def number_of_cells(notebook: Notebook) -> list[str]:
    cells = len(notebook.node.cells)
    return [f"{cells} cells, over {CELLS}: one idea a notebook"] if cells > CELLS else []


def cell_length(notebook: Notebook) -> list[str]:
    lengths = [(k, len(cell.source.splitlines())) for k, cell in notebook.code if k not in notebook.tagged("post")]
    return [f"cell {k} has {length} lines, over {CODE_LINES}" for k, length in lengths if length > CODE_LINES]


def files_found_from_anywhere(notebook: Notebook) -> list[str]:
    """A reader's copy lies in a different folder: programs and weights are found by `course.kit.files`."""
    near = re.compile(r"""["'](?:posts|checkpoints|scripts)/""")
    linked = re.compile(r"\]\((?:posts|checkpoints|scripts)/")
    faults = [
        f"cell {k} finds a file by the notebook's own place" for k, cell in notebook.code if near.search(cell.source)
    ]
    return faults + [
        f"cell {k} links to a file beside the notebook" for k, text in notebook.prose if linked.search(text)
    ]


def ordered_run(notebook: Notebook) -> list[str]:
    counts = [cell.execution_count for _, cell in notebook.code]
    if counts == list(range(1, len(counts) + 1)):
        return []
    return [f"execution counts are {counts}, not those of one run from top to bottom"]


def names_kept(notebook: Notebook) -> list[str]:
    """A reader runs cells twice, and earlier ones after later ones: what a cell reads has to be what it was."""
    faults, known = [], set[str]()
    cells = [(k, names_of(cell.source)) for k, cell in notebook.code]
    for place, (k, cell) in enumerate(cells):
        read = cell.reads & known
        faults += [f"cell {k} reads {name!r}, and binds it anew" for name in sorted(read & cell.binds)]
        for j, later in cells[place + 1 :]:
            faults += [f"cell {k} reads {name!r}, which cell {j} binds anew" for name in sorted(read & later.binds)]
        known |= cell.binds
    return faults


def no_clutter(notebook: Notebook) -> list[str]:
    """What JupyterLab and nbval execute differently."""
    faults = []
    for k, cell in notebook.code:
        lines = [line.strip() for line in cell.source.splitlines() if line.strip()]
        faults += [f"cell {k} uses {word}" for word in CLUTTER if word in cell.source]
        faults += [f"cell {k} runs a shell command: {line}" for line in lines if line.startswith("!")]
        if lines and lines[-1].split("#")[0].rstrip().endswith(";"):
            faults.append(f"cell {k} ends in ';': write `_ = …`")
    return faults


def errors_on_purpose(notebook: Notebook) -> list[str]:
    """An error output and the tag that announces it come together."""
    raising = {k for k, cell in notebook.code if any(output.output_type == "error" for output in cell.outputs)}
    tagged = set(notebook.tagged("raises-exception"))
    faults = [f"cell {k} raises without the tag 'raises-exception'" for k in sorted(raising - tagged)]
    return faults + [f"cell {k} has the tag 'raises-exception' and raises nothing" for k in sorted(tagged - raising)]


def no_stderr(notebook: Notebook) -> list[str]:
    written = [(k, output) for k, cell in notebook.code for output in cell.outputs if output.get("name") == "stderr"]
    return [f"cell {k} writes to stderr: {output.text.splitlines()[0]}" for k, output in written]


def no_machine_traces(notebook: Notebook) -> list[str]:
    """Nothing in an output tells where, when or by whom it was run."""
    people = {getpass.getuser(), socket.gethostname()} - COMMON_NAMES
    names = "|".join(re.escape(name) for name in people if len(name) > 3)
    traces = {**TRACES, "a user or host name": rf"\b(?:{names})\b"} if names else TRACES
    faults = []
    for k, text in notebook.shown():
        found = [(what, re.search(form, text)) for what, form in traces.items()]
        faults += [f"cell {k} shows {what}: {match.group()}" for what, match in found if match]
    return faults


def no_times(notebook: Notebook) -> list[str]:
    """Times of virtual devices mean nothing, so none is shown."""
    found = [(k, TIMES.search(re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL))) for k, text in notebook.shown()]
    return [f"cell {k} shows a time: {match.group()}" for k, match in found if match]


def exercises(notebook: Notebook) -> list[str]:
    """Two or more, unsolved, each with a folded solution before the next."""
    starters, answers = notebook.tagged("exercise"), notebook.tagged("solution")
    faults = [] if len(starters) >= EXERCISES else [f"{len(starters)} exercises, fewer than {EXERCISES}"]
    bounds = [*starters[1:], len(notebook.node.cells)]
    for start, end in zip(starters, bounds, strict=False):
        following = [k for k in answers if start < k < end]
        if len(following) != 1:
            faults.append(f"the exercise in cell {start} has {len(following)} solutions before the next exercise")
        cell = notebook.node.cells[start]
        if not any(calls(cell.source, "check")) or "not solved yet" not in str(cell.outputs):
            faults.append(f"the exercise in cell {start} does not end in a check that says 'not solved yet'")
    for k in answers:
        cell = notebook.node.cells[k]
        hidden = cell.metadata.get("jupyter", {}).get("source_hidden") and not cell.outputs
        if not hidden and "<details>" not in str(cell.outputs):
            faults.append(f"the solution in cell {k} is not folded")
    return faults


def predictions(notebook: Notebook) -> list[str]:
    """Three to five questions, each compared with the outcome further down."""
    asked, revealed = keys(notebook, "predict"), keys(notebook, "reveal")
    low, high = (1, 1) if notebook.number == CAPSTONE else PREDICTIONS
    faults = [] if low <= len(asked) <= high else [f"{len(asked)} predictions, not {low} to {high}"]
    if len({key for _, key in asked}) < len(asked):
        faults.append("two predictions share a name")
    later = {key: k for k, key in revealed}
    faults += [f"prediction {key!r} in cell {k} is never revealed" for k, key in asked if later.get(key, -1) < k]
    return faults + [
        f"cell {k} predicts without the tag 'predict'" for k, _ in asked if k not in notebook.tagged("predict")
    ]


def hidden_sources(notebook: Notebook) -> list[str]:
    """A question and a solution are read in their outputs: the source is hidden, and does not ask a second time."""
    faults = []
    for tag in sorted(HIDDEN):
        for k in notebook.tagged(tag):
            if not notebook.node.cells[k].metadata.get("jupyter", {}).get("source_hidden"):
                faults.append(f"the source of cell {k}, tagged {tag!r}, is not hidden")
    for k in notebook.tagged("predict"):
        lines = notebook.node.cells[k].source.splitlines()
        more = [line for line in lines if not re.fullmatch(r"""learn\.predict\((["'])[\w.]+\1\)""", line)]
        faults += [f"cell {k} does more than to name its question: {line}" for line in more]
    return faults


def folded_outcomes(notebook: Notebook) -> list[str]:
    """What a prediction is compared with is stored folded, once for each question, and nothing opens it."""
    faults = []
    for k, cell in notebook.code:
        revealed = len(list(calls(cell.source, "reveal")))
        shown = [output.data.get("text/html", "") for output in cell.outputs if "data" in output]
        told = [html for html in shown if OUTCOME in re.sub(r"<[^>]+>", "", html)]
        folded = [html for html in told if re.fullmatch(FOLDED, html, re.DOTALL)]
        if len(told) != revealed:
            faults.append(f"cell {k} reveals {revealed} outcomes and stores {len(told)}")
        if len(folded) != len(told):
            faults.append(f"cell {k} stores an outcome that is not folded")
        below = [cell.cell_type for cell in notebook.node.cells[k + 1 : k + 2 + BELOW]]
        if told and below == ["markdown"] * (BELOW + 1):
            faults.append(f"below the outcome of cell {k} are more than {BELOW} cells of text, and not all are hidden")
    return faults


def widget_twins(notebook: Notebook) -> list[str]:
    """A widget is alive in a browser only: the code cell before it stores the same figure."""
    faults = []
    positions = [k for k, _ in notebook.code]
    for k in notebook.tagged("widget"):
        before = notebook.node.cells[positions[max(0, positions.index(k) - 1)]]
        if not any("image/svg+xml" in output.get("data", {}) for output in before.outputs):
            faults.append(f"the widget in cell {k} has no static twin: the code cell before it shows no SVG")
    return faults


def figures_in_words(notebook: Notebook) -> list[str]:
    """Every drawing has a title and a description that a screen reader can read."""
    drawings = [(k, text) for k, text in notebook.shown() if "<svg" in text]
    parts = ("title", "desc")
    return [
        f"a figure of cell {k} has no <{p}>"
        for k, text in drawings
        for p in parts
        if not re.search(rf"<{p}>[^<]", text)
    ]


def plain_words(notebook: Notebook) -> list[str]:
    """Words that belittle whoever is stuck; quotations and code are left alone."""
    faults = []
    for k, text in notebook.prose:
        own = re.sub(r"^>.*$", "", without_code(text), flags=re.MULTILINE)
        faults += [f"cell {k} says {word!r}" for word in BANNED.findall(own)]
    return faults


def links(notebook: Notebook) -> list[str]:
    """Links inside the project lead somewhere."""
    targets = [(k, target) for k, text in notebook.prose for target in re.findall(r"\]\(([^)\s]+)", without_code(text))]
    local = [
        (k, target.split("#")[0]) for k, target in targets if not re.match(r"https?://|mailto:|#|attachment:", target)
    ]
    return [
        f"cell {k} links to {target}, which is not there"
        for k, target in local
        if not (notebook.path.parent / target).exists()
    ]


def terms_at_first_use(notebook: Notebook) -> list[str]:
    """No word of the glossary stands before the place that explains it, where it is emphasised, alone."""
    faults = []
    texts = _as_read(notebook)
    for term in GLOSSARY:
        using = [k for k, text in texts if any(term.find(text))]
        told = [k for k, text in texts if term.is_marked(text)]
        if reading_order.place(notebook.number) < reading_order.place(term.notebook):
            faults += [f"cell {k} says {term.name!r}, which {term.notebook} explains" for k in using]
        elif notebook.number == term.notebook <= MARKED_TO:
            start = told[0] if told else None
            if start is None:
                faults.append(f"no cell explains {term.name!r}: it should stand there as *{term.name}*")
            else:
                faults += [f"cell {k} says {term.name!r}, which cell {start} explains" for k in using if 0 < k < start]
    return faults


def _as_read(notebook: Notebook) -> list[tuple[int, str]]:
    """Prose and questions, without fenced code, names of other notebooks and the sections that only point elsewhere."""
    found = []
    for k, cell in enumerate(notebook.node.cells):
        if cell.cell_type == "markdown":
            text = re.sub(r"```.*?```", "", UNREAD.sub("", cell.source), flags=re.DOTALL)
            found.append((k, re.sub(r"\[[^\]]*\]\([^)\s]+\.ipynb[^)]*\)", "", text)))
        elif k in notebook.tagged("predict"):
            asked = [output.get("data", {}).get("text/plain", "") for output in cell.outputs]
            found.append((k, "\n".join(map(str, asked))))
    return found


def stored_size(notebook: Notebook) -> list[str]:
    size = len(notebook.text.encode())
    return [] if size < STORED_BYTES else [f"{size} bytes, over {STORED_BYTES}"]


def stored_form(notebook: Notebook) -> list[str]:
    """The file is what `make notebooks` writes, and its tags are known."""
    nbformat.validate(notebook.node)
    tags = {tag for cell in notebook.node.cells for tag in cell.metadata.get("tags", [])}
    faults = [f"unknown tag {tag!r}" for tag in sorted(tags - TAGS)]
    if notebook.text != nbformat.writes(normal_form(notebook.node)).rstrip("\n") + "\n":
        faults.append(f"not in stored form: run `python tasks.py notebooks {notebook.path.name}`")
    return faults


ANYWHERE: tuple[Callable[[Notebook], list[str]], ...] = (
    *(
        cell_length,
        ordered_run,
        names_kept,
        no_clutter,
        errors_on_purpose,
        no_stderr,
        no_machine_traces,
        no_times,
        widget_twins,
    ),
    *(figures_in_words, plain_words, links, files_found_from_anywhere, stored_size, stored_form),
)
LESSON: tuple[Callable[[Notebook], list[str]], ...] = (
    file_name,
    top_cell,
    end_cells,
    folded_answers,
    setup_cell,
    number_of_cells,
    exercises,
    predictions,
    hidden_sources,
    folded_outcomes,
    terms_at_first_use,
)
