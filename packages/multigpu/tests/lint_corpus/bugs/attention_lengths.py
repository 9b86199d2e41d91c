import torch
def attention_mask(lengths, max_len):
    ids = torch.arange(0, max_len).cuda()  # BUG FL001
    return ids < lengths.unsqueeze(1)
