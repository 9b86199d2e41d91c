"""Read a pasted text: which lines are messages, which only show where it happened, and of which program they are."""

import re
from collections import Counter
from dataclasses import dataclass, replace


def expression(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """A compiled expression for which only the letters of ASCII are letters, as for JavaScript.

    Chinese has no blanks, so a message of a program often begins or ends right beside its words.
    """
    return re.compile(pattern, re.ASCII | flags)


# The codes of a terminal's colours, also without the sign of escape, which some pages leave out.
COLOURS = expression(r"\x1b\[[0-?]*[ -/]*[@-~]|(?:\^\[)?\[\d+(?:;\d+)*m")
# Quotation marks, dashes and blanks as a web page or a word processor sets them, and as the program has printed them.
TYPESET = {
    "\u2018": "'",
    "\u2019": "'",
    "\u02bc": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u2010": "-",
    "\u2011": "-",
    "\u2013": "-",
    "\ufeff": "",
    **dict.fromkeys("\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))), " "),
}
_TYPESET = str.maketrans(TYPESET)
# The marks that a launcher or a logger puts before the lines of a process: torchrun, Ray, vLLM, mpirun,
# pytest, and the time and place of a logger as vLLM and SGLang print it.
PREFIX = (
    r"^\W*(?:\[\d+\]\s*)?(?:\[rank ?\d+\]:|\(\w+ pid=\d+[^)]*\)|[\d,]+\]<\w+>:|E\b)?\s*"
    r"(?:(?:ERROR|CRITICAL) [\d-]+ [\d:.]+ \[?[\w./]+:\d+\]|\[[\d-]+ [\d:]+(?: [A-Z]{2}\d+)+\])?\s*"
)
FRAME = expression(PREFIX + r'(?:File ".*", line \d+|frame #\d+:|\S+\(\d+\): |│|-+> ?\d+|\d+ .*\()', re.IGNORECASE)
CARETS = expression(PREFIX + r"[~^]+\s*$")
RAISED = expression(
    PREFIX + r"(?:((?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Warning|Failed|Interrupt|Exit|Iteration))\b:?"
    r"|(?:\S+\.py|torchrun|accelerate|Accelerate CLI tool): error: )"
)
# Errors that report a different one: of a launcher, or of code that carries errors between processes or threads.
REPORT = expression(
    r"ChildFailedError|CalledProcessError|Process(?:Raised|Exited)Exception|SignalException|RemoteTraceback"
    r"|Caught ?\w* ?in |Engine core initialization failed|Engine process failed to start|Engine(?:Dead|Generate)Error"
    r"|WorkerProc initialization failed|ActorDiedError|RayActorError|RayTaskError|WorkerCrashedError"
)
USAGE = expression(PREFIX + r"usage: ", re.IGNORECASE)  # the options that a parser of arguments knows
# How many letters are read: a longer text is taken for the log of a run, and shortened.
LONG = 30_000
REPEATED = 3  # of lines that differ by their numbers alone, so many are read: the last ones
NOT_LETTERS = expression(r"[^A-Za-z]+")
PIECE = expression(r".{1,1000}(?!\S)|.{1,1000}")  # a longer line is read as several
# Words that most messages of a log have in one of their lines; AROUND lines before and after are read with it.
TELLING = expression(
    r"error|exception|traceback|warn|fail|kill|abort|signal|fault|timed? ?out|cannot|can't|could not|unable|not found"
    r"|invalid|mismatch|refused|expected|must ",
    re.IGNORECASE,
)
AROUND = 5
# A word, or a row of signs, so long that it is cut, because the time of an expression may grow with its square.
ENDLESS = expression(r"([A-Za-z0-9_]{200})[A-Za-z0-9_]+|([ -/:-@[-^`{-~\t]{200})[ -/:-@[-^`{-~\t]+")
REPETITIONS = expression(r"\\.|\[(?:\\.|[^\]\\])*\]|[+*]|,\}")
AT_MOST = 4000  # repetitions of a part of an expression: as far apart are the ends of a traceback in a replica
TRACEBACK = "Traceback (most recent call last)"  # an error was raised, even if its last line is cut off
BARE = expression(PREFIX + r"AssertionError:?\s*$")  # without a message: the code that was asserted shows what is wrong
ASSERTED = expression(r"\bassert\b")
NEAR = 3  # the code of a bare assertion is in one of so many lines above it; carets may be between them
WARNED = expression(r"(?i:\bwarn(?:ing)?\b)|[a-z]Warning: |\[W\d*|\bINFO\b")
NOT_WARNED = expression(r"NCCL WARN|Error|Exception")

# Signs of a program that uses PyTorch, and of one with several processes.
PYTORCH = expression(
    r"torch|cuda|\bgpu|nccl|gloo|\brank|tensor(?!flow)|DataParallel|DataLoader|accelerate|deepspeed|lightning|ddp|fsdp"
    r"|vllm|sglang|\bray\b|raylet|megatron|nvidia|nvml",
    re.IGNORECASE,
)
SEVERAL = expression(
    r"\brank ?\d|local_?rank|world_?size|torchrun|distributed|c10d|nccl|gloo|\bddp|DataParallel|DataLoader|utils/data"
    r"|accelerate|deepspeed|lightning|elastic|mp\.spawn|multi.?gpu|\bgpus\b|MASTER_(PORT|ADDR)|TCPStore|SocketImpl"
    r"|Killing subprocess \d|\bsrun\b|slurmstepd|resource_tracker|semaphore_tracker|CudaIPCTypes"
    r"|vllm|sglang|raylet|tensor.?parallel|ProcessRaisedException|multiprocessing[./]spawn|mpirun|dist_train|fairseq",
    re.IGNORECASE,
)
# Further signs of a program of ours, in texts that do not name PyTorch. A longer text without any is not guessed at.
KINDRED = expression(
    r"\b[AHVBLT]\d{2,3}\b|RTX ?\w*\d|\bhvd\b|horovod|c10|fully_shard|num_workers|loader|\b[bf]p?f?16\b|half\(\)"
    r"|BatchNorm|Backward\d?\b|distributed|state[_ ]?dict|checkpoint|\bamp\b|fine-?tun|llama|pipeline.?parallel"
    r"|resource_tracker|semaphore|async_io|slurm|srun|several (?:cards|nodes|machines)|multi.?node|ZeRO"
    r"|\b\d+ ?(?:gpus|nodes|cards)|ROCm|HIP_",
    re.IGNORECASE,
)
FEW_WORDS = 12  # a text of so many is a question, which need not say what it is about
# Signs of other programs that compute on GPUs and print CUDA's messages, and signs that PyTorch is used after all.
OTHERS = expression(
    r"celery|ForkPoolWorker|worker_connections|\bXLA\b|xla_extension|\bjax|tensorflow|tf_stack|cutlass|ggml|llama[._]?cpp|mxnet|paddlepaddle|paddle/|darknet"
    r"|\bcaffe\b|onnxruntime|TensorRT|hashcat|GPUassert|gromacs|\bOptiX|\bblender|CUDA\.jl|ollama|\bcv::|opencv|xgboost"
    r"|lightgbm|\bnumba\b|\bthrust::|rapids",
    re.IGNORECASE,
)
TORCH = expression(
    r"torch|\bc10|aten\b|\bat::|accelerate|deepspeed|lightning|fsdp|\bddp\b|DataParallel|DataLoader|transformers",
    re.IGNORECASE,
)
# Frames and files of other languages: JavaScript and Java, then C, Lua, Go, Rust, Ruby and PHP.
FOREIGN = expression(
    r"^\s{0,80}at [\w$.<>\[\] ]+ ?\(.*:\d+\)|\w\.(c|h|js|mjs|ts|lua|java|go|rs|rb|php)\b[,:] ?\d"
    r"|luarocks|npm ERR|node:internal|\bgoroutine \d|\bjava\.\w+\.\w|thread '\w+' panicked",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Line:
    """One line of a text.

    Attributes:
        text: the line, its white space made single blanks.
        told: whether it is a message; else it only shows where something happened.
        raised: whether it is the last line of an error.
        warned: whether it is a warning.
    """

    text: str
    told: bool
    raised: bool
    warned: bool


def plain_text(text: str) -> str:
    """A text without the colours of a terminal and the quotation marks of a word processor."""
    return ENDLESS.sub(r"\1\2", COLOURS.sub("", text).translate(_TYPESET))


def bounded(pattern: str) -> str:
    """An expression whose `*` and `+` end after AT_MOST times, so that the time for a text grows with its length alone.

    An expression that begins with "^" stays as it is: it is tried only at the beginning of the text.
    """
    if pattern.startswith("^"):
        return pattern
    bounds = {"*": f"{{0,{AT_MOST}}}", "+": f"{{1,{AT_MOST}}}", ",}": f",{AT_MOST}}}"}
    return REPETITIONS.sub(lambda found: bounds.get(found[0], found[0]), pattern)


def unrepeated(text: str) -> str:
    """A text without its repetitions: of the lines of a long text that differ by numbers alone, only the last are kept.

    Each of two thousand patterns reads the whole text, and most lines in a log of some megabytes are alike, such as
    those of the steps of a training. If many lines are different, those around an error and the last ones are kept.
    """
    if len(text) < LONG:
        return text
    seen: Counter[str] = Counter()
    kept: list[str] = []
    for piece in reversed([piece for line in text.splitlines() for piece in PIECE.findall(line)]):
        form = NOT_LETTERS.sub("", piece)
        seen[form] += 1
        if seen[form] <= REPEATED:
            kept.append(piece)
    return "\n".join(_most_telling(kept[::-1]))


def _most_telling(lines: list[str]) -> list[str]:
    """No more than LONG letters of these lines: the last of those around a sign of an error, then the last others."""
    telling = (number for number, line in enumerate(lines) if TELLING.search(line))
    near = {number + step for number in telling for step in range(-AROUND, AROUND + 1)}
    chosen, letters = [], 0
    for number in sorted(range(len(lines)), key=lambda number: (number in near, number), reverse=True):
        letters += len(lines[number]) + 1
        if letters > LONG:
            break
        chosen.append(number)
    return [lines[number] for number in sorted(chosen)]


def lines_of(text: str) -> list[Line]:
    """The lines of a text, each with its kind."""
    lines: list[Line] = []
    code = usage = False  # the line below a frame shows its code; a usage goes on in indented lines
    for line in text.splitlines():
        usage = bool(USAGE.match(line)) or (usage and line[:1].isspace())
        where = usage or bool(FRAME.match(line) or CARETS.match(line))
        raised = bool(RAISED.match(line)) and not where and TRACEBACK not in line
        told = raised or not (where or code)
        lines.append(
            Line(" ".join(line.split()), told, raised, bool(WARNED.search(line) and not NOT_WARNED.search(line)))
        )
        code = where and not (usage or CARETS.match(line) or "frame #" in line)
        if raised and BARE.match(line):
            _tell_what_was_asserted(lines)
    return lines


def _tell_what_was_asserted(lines: list[Line]) -> None:
    """Make a message of the code that was asserted, if the last line is a bare AssertionError."""
    for number in range(len(lines) - 2, max(len(lines) - 2 - NEAR, -1), -1):
        if ASSERTED.search(lines[number].text):
            lines[number] = replace(lines[number], told=True)
            return


def joined(lines: list[Line]) -> tuple[str, list[int]]:
    """The text of all lines in one, because a message may go over several.

    Returns:
        The text, and for each line the place in it where the line ends.
    """
    texts: list[str] = []
    ends: list[int] = []
    end = 0
    for line in lines:
        if line.text:
            end += len(line.text) + (1 if texts else 0)  # the blank between two
            texts.append(line.text)
        ends.append(end)
    return " ".join(texts), ends
