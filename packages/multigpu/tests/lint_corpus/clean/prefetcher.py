import torch


class DataPrefetcher:
    def __init__(self, loader):
        self.loader = iter(loader)
        self.stream = torch.cuda.Stream()
        self.preload()

    def preload(self):
        self.batch = next(self.loader, None)
        if self.batch is not None:
            with torch.cuda.stream(self.stream):
                self.batch = [t.cuda(non_blocking=True) for t in self.batch]

    def next(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        batch = self.batch
        self.preload()
        return batch
