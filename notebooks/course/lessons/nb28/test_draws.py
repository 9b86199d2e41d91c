import torch
from torch.utils.data import DataLoader

from course.lessons.nb28.draws import WorkerDraws


def test_workers_follow_the_generator_of_their_loader():
    def drawn(seed):
        generator = torch.Generator().manual_seed(seed)
        loader = DataLoader(WorkerDraws(4), batch_size=None, num_workers=2, generator=generator)
        return [tuple(item) for item in loader]

    first = drawn(1)
    assert first == drawn(1) and first != drawn(2)
    assert [item[0] for item in first] == [0, 1, 0, 1]
    for stream in range(1, 4):
        assert len({item[stream] for item in first}) == 4, "two items were loaded with the same numbers"
