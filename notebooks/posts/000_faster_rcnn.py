# The post's two build_loss and its forward, as printed, in whole indentation. Added: this line, the imports, "class".
import logging
import torch
import torch.nn.functional as F
from torch.autograd import Variable


class RPN:
    def build_loss(self, rpn_cls_score_reshape, rpn_bbox_pred, rpn_data):
        # classification loss
        rpn_cls_score = rpn_cls_score_reshape.permute(0, 2, 3, 1).contiguous().view(-1, 2)
        rpn_label = rpn_data[0].view(-1)
        # 修改
        deviceid = rpn_cls_score.get_device() # 获取 GPU id
        rpn_keep = Variable(rpn_label.data.ne(-1).nonzero().squeeze()).cuda(deviceid) # 指定 GPU id

        rpn_cls_score = torch.index_select(rpn_cls_score, 0, rpn_keep)

        # 修改
        deviceid = rpn_label.get_device() # 获取 GPU id
        rpn_keep = Variable(rpn_label.data.ne(-1).nonzero().squeeze()).cuda(deviceid) # 指定 GPU id

        rpn_label = torch.index_select(rpn_label, 0, rpn_keep)

        fg_cnt = torch.sum(rpn_label.data.ne(0))

        rpn_cross_entropy = F.cross_entropy(rpn_cls_score, rpn_label)

        # box loss
        rpn_bbox_targets, rpn_bbox_inside_weights, rpn_bbox_outside_weights = rpn_data[1:]
        rpn_bbox_targets = torch.mul(rpn_bbox_targets, rpn_bbox_inside_weights)
        rpn_bbox_pred = torch.mul(rpn_bbox_pred, rpn_bbox_inside_weights)

        rpn_loss_box = F.smooth_l1_loss(rpn_bbox_pred, rpn_bbox_targets, size_average=False) / (fg_cnt + 1e-4)
        return rpn_cross_entropy, rpn_loss_box


class FasterRCNN:
    def build_loss(self, cls_score, bbox_pred, roi_data):
        # classification loss
        label = roi_data[1].squeeze()
        fg_cnt = torch.sum(label.data.ne(0))
        bg_cnt = label.data.numel() - fg_cnt

        # for log
        if self.debug:
            maxv, predict = cls_score.data.max(1)
            self.tp = torch.sum(predict[:fg_cnt].eq(label.data[:fg_cnt])) if fg_cnt > 0 else 0
            self.tf = torch.sum(predict[fg_cnt:].eq(label.data[fg_cnt:])) if bg_cnt > 0 and len(predict)-fg_cnt > 0 else 0
            self.fg_cnt = fg_cnt
            self.bg_cnt = bg_cnt

        ce_weights = torch.ones(cls_score.size()[1])
        ce_weights[0] = float(fg_cnt) / (bg_cnt+1e-4)

        # 修改
        deviceid = cls_score.get_device() # 获取 GPU id
        ce_weights = ce_weights.cuda(deviceid) # 指定 GPU id

        cross_entropy = F.cross_entropy(cls_score, label, weight=ce_weights)

        # bounding box regression L1 loss
        bbox_targets, bbox_inside_weights, bbox_outside_weights = roi_data[2:]
        bbox_targets = torch.mul(bbox_targets, bbox_inside_weights)
        bbox_pred = torch.mul(bbox_pred, bbox_inside_weights)

        loss_box = F.smooth_l1_loss(bbox_pred, bbox_targets, size_average=False) / (fg_cnt + 1e-4)

        return cross_entropy, loss_box

    def forward(self, im_data, im_info, gt_boxes=None, gt_ishard=None, dontcare_areas=None):


        res4_features, rois = self.rpn(im_data, im_info, gt_boxes, gt_ishard, dontcare_areas)

        if self.training:
            roi_data = self.proposal_target_layer(rois, gt_boxes, gt_ishard, dontcare_areas, self.n_classes)
            rois = roi_data[0]


        # roi pool
        pooled_features = self.roi_pool(res4_features, rois)

        # print 'pooled_features',pooled_features.size()
        res5_features = self.res5_features(pooled_features)

        logging.info("res5 feature finished")
        x = res5_features.view(res5_features.size()[0], -1)

        cls_score = self.score_fc(x)
        cls_prob = F.softmax(cls_score)
        bbox_pred = self.bbox_fc(x)

        if self.training:
            self.cross_entropy, self.loss_box = self.build_loss(cls_score, bbox_pred, roi_data)

        #return cls_prob, bbox_pred, rois

        return self.cross_entropy + self.loss_box * 10 # 修改为返回loss
