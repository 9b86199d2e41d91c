import torch


def report():
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        print(index, properties.name, torch.cuda.memory_allocated(index))
    print(torch.cuda.get_device_name(0))
