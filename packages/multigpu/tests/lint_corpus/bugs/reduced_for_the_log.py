from torch import distributed


def is_main_process():
    return distributed.get_rank() == 0


class Meter:
    def __init__(self, device):
        self.total = device.new_zeros(2)

    def log(self, writer, step):
        if is_main_process():
            distributed.all_reduce(self.total)  # BUG FL017
            writer.add_scalar("loss", self.total[0] / self.total[1], step)
        elif writer is not None:
            print("only rank 0 writes")
