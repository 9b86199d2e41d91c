import torch
ANCHORS = torch.FloatTensor([[10, 13], [16, 30]])  # BUG FL007
def decode(pred):
    return pred[..., 2:4].exp() * ANCHORS
