"""From a seed to a program in one process: a net, how it is spread over GPUs, a loop that trains it, and events."""

from __future__ import annotations

import random

from differential import events
from differential.layers import BETWEEN, HELPERS, NOT_UNDER_AUTOCAST, WIDTHS, Layer, chain
from differential.program import Program, block

# Only the first draw after a seed is the CPU's: these draw before a dropout might, or at the same time.
_DRAWS = {"attention", "sdpa", "gru", "lstm", "DataParallel"}
_OTHER_CALLS = {"bilinear", "attention", "gru", "lstm"}  # take or give more than one tensor
SHAPES = {"image": "4, 6, 6", "tokens": "5, 8", "rows": "8"}
OPTIMIZERS = (
    "torch.optim.SGD(net.parameters(), lr=0.05{more})",
    "torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01{more})",
    "torch.optim.Adam(net.parameters(), lr=0.01{more})",
    "torch.optim.AdamW(net.parameters(), lr=0.01, amsgrad=True{more})",
    "torch.optim.RMSprop(net.parameters(), lr=0.01, centered=True{more})",
    "torch.optim.Adagrad(net.parameters(), lr=0.01{more})",
    "torch.optim.NAdam(net.parameters(), lr=0.01{more})",
    "torch.optim.Adadelta(net.parameters(){more})",
    "torch.optim.Adamax(net.parameters(), lr=0.01{more})",
    "torch.optim.RAdam(net.parameters(), lr=0.01{more})",
)
FUSED = (".SGD", ".Adam(", ".AdamW", ".Adagrad")
LOSSES = (
    "out.to(DTYPE).square().mean()",
    "F.cross_entropy(out.to(DTYPE), (batch.flatten(1)[:, 0] > 0).long().to(out.device))",
    "F.mse_loss(out.to(DTYPE), target.to(out.device))",
    "F.smooth_l1_loss(out.to(DTYPE), target.to(out.device), reduction='sum') / 50",
    "-F.logsigmoid(out.to(DTYPE)).mean() + 0.1 * out.to(DTYPE).logsumexp(1).mean()",
)
HALVES = '''
class Halves(nn.Module):
    """What nn.DataParallel computes on two GPUs: only the first half of a batch reaches the buffers."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        first, *others = x.chunk(2)
        kept = {name: b.clone() for name, b in self.net.named_buffers()}
        outs = [self.net(first)]
        for half in others:
            outs.append(torch.func.functional_call(self.net, {k: b.clone() for k, b in kept.items()}, (half,)))
        return torch.cat(outs)
'''
NOTE = '''
def note(record, step, net, optimizer):
    """Record all that training has changed."""
    for name, p in net.named_parameters():
        record(f"{step} {name}", p)
        record(f"{step} {name}.grad", p.grad)
        record(f"{step} {name}.grad lies with it", p.grad is None or p.grad.device == p.device)
    for name, b in net.named_buffers():
        record(f"{step} {name}", b)
    for k, state in enumerate(optimizer.state.values()):
        for name, value in state.items():
            record(f"{step} optimizer {k} {name}", value)
'''
MAIN = """
if __name__ == "__main__":
    KIND = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    program([torch.device(KIND, k if KIND == "cuda" else None) for k in range(2)], print)
"""


class _Draft:
    """A program while it is drawn."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.seed = seed
        self.pieces: set[str] = set()

    def chance(self, probability: float, piece: str = "") -> bool:
        happens = self.draw.random() < probability
        if happens and piece:
            self.pieces.add(piece)
        return happens

    def pick(self, some: tuple[events.Event, ...]) -> str:
        event = self.draw.choice([e for e in some if not e.not_with & self.pieces])
        self.pieces.add(event.piece)
        return event.lines

    def program(self) -> Program:
        self.low = self.chance(0.2, "autocast")
        start = self.draw.choice(list(WIDTHS))
        self.layers = chain(self.draw, start, self.draw.randint(1, 4), self.low)
        self.pieces |= {one.piece for one in self.layers}
        # In nn.DataParallel's threads autocast has its default, float16, whatever the caller chose.
        self.spread = self.draw.choice(
            ("one GPU", "one GPU", "model parallel", *([] if self.low else ["DataParallel"]))
        )
        self.pieces.add(self.spread)
        net = self._net(self._forward())
        body = self._body(start)
        text = f"{net}\n\n{body}"
        helpers = "".join(f"\n{helper}" for mark, helper in HELPERS.items() if mark in text)
        halves = f"\n{HALVES}" if self.spread == "DataParallel" else ""
        title = f'"""Program {self.seed} of the differential tester: {", ".join(sorted(self.pieces))}."""'
        dtype = "torch.float32" if self.low else "torch.float64"
        imports = "import copy\nimport io\nimport sys\n\nimport torch\nimport torch.nn.functional as F\n"
        imports += "from torch import nn\nfrom torch.utils.checkpoint import checkpoint\n"
        source = f"{title}\n\n{imports}\nDTYPE = {dtype}\n{helpers}{halves}\n\n{text}\n\n{NOTE}\n{MAIN}"
        return Program(self.seed, 1, frozenset(self.pieces), not self.low, source)

    def _net(self, forward: list[str]) -> str:
        where = [0] * len(self.layers)
        if self.spread == "model parallel":
            where = sorted(self.draw.choice((0, 1)) for _ in where)
            forward = self._hop(forward, where)
        elif self.spread == "one GPU" and self.chance(0.3, "the second GPU"):
            where = [1] * len(self.layers)
        self.last = where[0]
        init = [f"self.l{k} = {layer.module}" for k, layer in enumerate(self.layers)]
        place = [f"self.l{k}.to(gpus[{g}])" for k, g in enumerate(where)]
        if self.low and self.spread == "model parallel":
            forward = [line.replace(".to(gpus[", ".to(self.gpus[") for line in forward]
        return "\n".join(
            (
                "class Net(nn.Module):",
                block(["def __init__(self):", block(["super().__init__()", *init], 1)], 1),
                "",
                block(["def place(self, gpus):", block(["self.gpus = gpus", *place, "return self"], 1)], 1),
                "",
                block(["def forward(self, x):", block(["gpus = self.gpus", *forward, "return x"], 1)], 1),
            )
        )

    @staticmethod
    def _hop(forward: list[str], where: list[int]) -> list[str]:
        out = []
        for line in forward:
            if line.startswith("# layer "):
                out.append(f"x = x.to(gpus[{where[int(line.removeprefix('# layer '))]}])")
            else:
                out.append(line)
        return out

    def _forward(self) -> list[str]:
        """The lines of `forward`; "# layer k" stands before layer k."""
        lines: list[str] = []
        self.drops = False
        self.again = False
        for k, layer in enumerate(self.layers):
            lines.append(f"# layer {k}")
            lines.append(self._call(k, layer))
            while self.chance(0.45):
                lines.append(self._between())
        return lines

    def _between(self) -> str:
        some = BETWEEN
        if self.low:
            banned = NOT_UNDER_AUTOCAST | {"detach", "number read", "dtype", "no grad inside"}
            some = tuple(one for one in BETWEEN if one[0] not in banned)
        piece, line = self.draw.choice(some)
        self.pieces.add(piece)
        return line

    def _call(self, k: int, layer: Layer) -> str:
        call = layer.call.format(m=f"self.l{k}", x="x")
        if not self.drops and not (_DRAWS & {*(one.piece for one in self.layers), self.spread}) and self.chance(0.15):
            self.drops = True
            self.pieces.add("dropout")
            call = f"F.dropout({call}, 0.3, self.training)"
        twice_in_buffers = layer.piece == "batch norm" and self.spread == "DataParallel"  # the reference would differ
        if not twice_in_buffers and self.chance(0.25, "checkpoint"):
            # Its own backward would find two halves in the reference, and replicas' gradients that are zero, not None.
            may_enter_again = k > 0 and self.spread != "DataParallel"
            reentrant = may_enter_again and self.chance(0.4, "reentrant checkpoint")
            return f"x = checkpoint(lambda x: {call}, x, use_reentrant={reentrant})"
        return f"x = {call}"

    def _optimizer(self) -> str:
        # The others divide by the size of a gradient: of one that is zero but for rounding, bfloat16's becomes large.
        chosen = self.draw.choice(OPTIMIZERS[:2] if self.low else OPTIMIZERS)
        ways = ["", "", ", foreach=True", ", foreach=False"]
        if any(name in chosen for name in FUSED):
            ways.append(", fused=True")
        more = self.draw.choice(ways)
        self.pieces.add(f"optimizer{more}")
        return chosen.format(more=more)

    def _body(self, start: str) -> str:
        run = "run(x)"
        seeded = ["torch.manual_seed(100 + step)"] if self.drops else []
        where = f"gpus[{self.last}]"
        plain = [
            k for k, one in enumerate(self.layers) if one.call.startswith("{m}({x}") and one.piece not in _OTHER_CALLS
        ]
        setup = ["kind = gpus[0].type", f"torch.manual_seed({self.seed})", "net = Net().to(DTYPE).place(gpus)"]
        while plain and self.chance(0.25):
            setup.append(self.pick(events.HOOKS).format(layer=f"l{self.draw.choice(plain)}"))
        after = [self.pick(events.CHANGES) for _ in range(self.draw.choice((0, 1, 1, 2)))]
        if "average" in self.pieces:
            setup.append("average = copy.deepcopy(net)")
        scaler = self.low and self.chance(0.4, "GradScaler")
        if scaler:
            setup.append("scaler = torch.amp.GradScaler(kind, init_scale=64.0, growth_interval=2)")
        setup += [
            f"spread = {self._spread()}",
            f"new_optimizer = lambda net: {self._optimizer()}",
            "run, optimizer = spread(net), new_optimizer(net)",
        ]
        rows = self.draw.choice((8, 8, 6, 7, 5) if self.spread != "DataParallel" else (8, 6, 7, 5))
        makes = [
            "torch.manual_seed(1000 + step)",
            f"batch = torch.randn({rows}, {SHAPES[start]}, dtype=DTYPE)",
            f"target = torch.randn({rows}, 8, dtype=DTYPE)",
            f"x = batch.to({where})",
        ]
        wants_input = self.chance(0.25, "gradient of the input")
        if wants_input:
            makes.append("x.requires_grad_()")
        early: list[str] = []
        if self.chance(0.3, "evaluated before"):
            # nn.DataParallel's threads are not in inference mode, so its replicas' buffers could not change.
            mode = "no_grad" if self.spread == "DataParallel" else self.draw.choice(("no_grad", "inference_mode"))
            self.pieces.add(mode)
            early += [f"with torch.{mode}():", block([*seeded, f"record(f'{{step}} evaluated', {run})"], 1)]
            if self.chance(0.4, "eval"):
                early = ["net.eval()", *early, "net.train()"]
        zero = self.draw.choice(("optimizer.zero_grad()", "optimizer.zero_grad(set_to_none=False)", "net.zero_grad()"))
        forward = [*early, *seeded, f"out = {run}"]
        if self.low:
            forward = ["with torch.autocast(kind, torch.bfloat16):", block(forward, 1)]
        loss = [f"loss = {self.draw.choice(LOSSES)}"]
        twice = all(layer.twice for layer in self.layers) and not self.pieces & {
            "checkpoint", "autocast", "function", "in place", "DataParallel", "tensor hook", "saved on the CPU",
        }  # fmt: skip
        if twice and self.chance(0.2, "gradient penalty"):
            loss += [
                "ps = [p for p in net.parameters() if p.requires_grad]",
                "found = torch.autograd.grad(loss, ps, create_graph=True, allow_unused=True)",
                "loss = loss + sum(g.square().sum().to(loss.device) for g in found if g is not None)",
            ]
        between = [self.pick(events.BETWEEN)] if self.chance(0.3) else []
        total = "scaler.scale(loss)" if scaler else "loss"
        backward = [f"{total}.backward()"]
        if self.chance(0.1, "backward twice"):
            backward = [f"{total}.backward(retain_graph=True)", f"{total}.backward()"]
        once = [*forward, *loss, *between, *backward, "record(f'{step} loss', loss)"]
        if self.chance(0.2, "accumulation"):
            once = ["for _ in range(2):", block(once, 1)]
        grads = [self.pick(events.GRADIENTS) for _ in range(self.draw.choice((0, 0, 1, 2)))]
        if scaler and grads:
            grads = ["scaler.unscale_(optimizer)", *grads]
        update = ["scaler.step(optimizer)", "scaler.update()"] if scaler else ["optimizer.step()"]
        if scaler:
            update.append("record(f'{step} scale', scaler.get_scale())")
        if wants_input:
            update.append("record(f'{step} x.grad', x.grad)")
        when = self.draw.randint(0, 2)
        map_location = self.draw.choice(("None", "'cpu'", "gpus[1]"))
        changes = [line.replace("{where}", map_location).replace("{{", "{").replace("}}", "}") for line in after]
        if changes:
            changes = [f"if step == {when}:", block(changes, 1)]
        steps = [*makes, zero, *once, *grads, *update, "note(record, step, net, optimizer)", *changes]
        lines = [*setup, "for step in range(3):", block(steps, 1), "note(record, 'end', net, optimizer)"]
        return f"def program(gpus, record):\n{block(lines, 1)}"

    def _spread(self) -> str:
        if self.spread == "DataParallel":
            return "lambda net: nn.DataParallel(net, [0, 1]) if kind == 'cuda' else Halves(net)"
        return "lambda net: net"


def draw(seed: int) -> Program:
    """The program of a seed."""
    return _Draft(seed).program()
