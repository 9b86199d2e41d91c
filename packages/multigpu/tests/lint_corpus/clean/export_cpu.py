import torch

from package import Detector


def export(path):
    model = Detector()
    model.load_state_dict(torch.load(path, map_location=torch.device("cpu")))
    model.eval()
    example = torch.randn(1, 3, 128, 128)
    with torch.no_grad():
        before = model(example)
    torch.onnx.export(model, (example,), "model.onnx")
    return before
