import torch


class Prefetcher:
    def __init__(self, loader, device):
        self.loader = loader
        self.device = device
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __iter__(self):
        for batch in self.loader:
            with torch.cuda.stream(self.stream):
                moved = [t.to(self.device, non_blocking=True) for t in batch]
            torch.cuda.current_stream(self.device).wait_stream(self.stream)
            yield moved
