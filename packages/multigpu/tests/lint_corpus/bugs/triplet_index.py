import torch
import torch.nn.functional as F


def pairwise_loss(embeddings, labels):
    pairs = torch.LongTensor([[i, j] for i in range(len(labels)) for j in range(i)]).cuda()  # BUG FL001
    left, right = embeddings[pairs[:, 0]], embeddings[pairs[:, 1]]
    same = (labels[pairs[:, 0]] == labels[pairs[:, 1]]).float()
    return F.binary_cross_entropy_with_logits((left * right).sum(1), same)
