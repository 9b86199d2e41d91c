"""Three of the ten suspects, what fits the report, and the board of all trials."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from course.kit import figures
from course.kit import guide_2017 as guide

Trial = tuple[str, str]  # how forward and backward ended, in two or three words


def literal_device() -> dict[str, Callable[..., Any]]:
    """A detector's part: the head's loss, whose class weights are sent to cuda:0 by number."""
    return {"FasterRCNN.build_loss": guide.parts_of((".cuda(deviceid)", ".cuda(0)"))["FasterRCNN.build_loss"]}


def losses_of(net: nn.Module) -> list[Tensor]:
    """The loss of a picture from each of two replicas, which run one after the other, each on its own GPU."""
    return _run(_replicas(net))


def old_self(net: nn.Module) -> list[Tensor]:
    """The same of a net that calls a layer through a lambda, which holds this very layer in every copy of the net."""
    layer = net.res5_features
    del net.res5_features
    net.layers, net.res5_features = nn.ModuleList([layer]), lambda x: layer(x)  # type: ignore[assignment,list-item,operator]
    return losses_of(net)


def kept_replicas(net: nn.Module) -> list[Tensor]:
    """The same from the replicas of a step that is over: the optimizer has changed the weights since."""
    pair = _replicas(net)
    nn.parallel.gather(_run(pair), 0).mean().backward()
    torch.optim.SGD(net.parameters(), lr=0.01).step()
    return _run(pair)


def _replicas(net: nn.Module) -> list[nn.Module]:
    return nn.parallel.replicate(net, [0, 1])  # type: ignore[attr-defined,no-any-return]


def _run(pair: list[nn.Module]) -> list[Tensor]:
    losses = []
    for k, replica in enumerate(pair):
        with torch.cuda.device(k):
            losses.append(replica(*guide.blob(k)))
    return losses


def fits(trial: Trial) -> bool:
    """What the report says: forward runs, and backward stops because of devices."""
    return trial[0] == "runs" and trial[1] in ("two devices", "gradient elsewhere")


def suspects_board(then: Mapping[str, Trial], today: Mapping[str, Trial]) -> figures.Figure:
    """All suspects under the rule of 2017, and how backward ends today."""
    cells = {}
    for name, (ahead, back) in then.items():
        cells[name, "rule of 2017: forward"], cells[name, "rule of 2017: backward"] = _ending(ahead), _ending(back)
        cells[name, "today: backward"] = _ending(today[name][1])
        why = "no, in forward" if ahead != "runs" else "no, it runs" if back == "runs" else "no, other words"
        fit = figures.Ending("fits") if fits((ahead, back)) else figures.Ending("none", why)
        cells[name, "the report: does it fit?"] = fit
    trials = {"the report": ["does it fit?"], "rule of 2017": ["forward", "backward"], "today": ["backward"]}
    return figures.case_board(list(then), trials, cells, "Ten suspects, the rule of 2017, and today")


def _ending(words: str) -> figures.Ending:
    return figures.Ending({"runs": "right", "not reached": "none"}.get(words, "raises"), words)
