# -*- coding: utf-8 -*-
"""Proposals, as of 2017."""
import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Variable


class RPN(nn.Module):

    def forward(self, x, im_info, gt_boxes=None):
        rois = self.proposals(x)
        self.cross_entropy, self.loss_box = self.build_loss(x, gt_boxes)  # BUG FL005
        print "rois", rois.size()  # BUG FL000
        return rois

    def proposals(self, scores):
        """Calls .cuda() on what NumPy gave."""
        scores = scores.data.cpu().numpy()  # BUG FL006
        keep = np.argsort(scores)[::-1]
        return Variable(torch.from_numpy(keep)).cuda()  # BUG FL001


def train(net, loader, optimizer):
    total = 0
    for im_data, gt in loader:
        loss = net(im_data.cuda(), None, gt)
        loss.backward()
        optimizer.step()
        total += loss.data[0]  # BUG FL009
    print total
