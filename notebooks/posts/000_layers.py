# The post's helper and its three layers, as printed, in whole indentation. Added: this line, the imports, the last line.
import logging
from types import SimpleNamespace
import torch
from torch.autograd import Variable


def np_to_variable(x, is_cuda=True, dtype=torch.FloatTensor):
    v = Variable(torch.from_numpy(x).type(dtype))
    if is_cuda:
        #  v = v.cuda()   #原先未制定分配的GPU位置，统一分配在GPU 0 上面
        deviceid = torch.cuda.current_device() # 修改为寻找当前使用的GPU id
        v = v.cuda(deviceid) #分配显存
    return v


def proposal_layer(rpn_cls_prob_reshape, rpn_bbox_pred, im_info, cfg_key, _feat_stride, anchor_scales):
    deviceid = rpn_cls_prob_reshape.get_device() # 获取输入变量GPU id
    rpn_cls_prob_reshape = rpn_cls_prob_reshape.data.cpu().numpy()
    rpn_bbox_pred = rpn_bbox_pred.data.cpu().numpy()
    x = proposal_layer_py(rpn_cls_prob_reshape, rpn_bbox_pred, im_info, cfg_key, _feat_stride, anchor_scales)
    with torch.cuda.device(deviceid): # 指定分配时候的GPU id
        x = network.np_to_variable(x, is_cuda=True)
    return x.view(-1, 5)


def anchor_target_layer(rpn_cls_score, gt_boxes, gt_ishard, dontcare_areas, im_info, _feat_stride, anchor_scales):
    """
    rpn_cls_score: for pytorch (1, Ax2, H, W) bg/fg scores of previous conv layer
    gt_boxes: (G, 5) vstack of [x1, y1, x2, y2, class]
    gt_ishard: (G, 1), 1 or 0 indicates difficult or not
    dontcare_areas: (D, 4), some areas may contains small objs but no labelling. D may be 0
    im_info: a list of [image_height, image_width, scale_ratios]
    _feat_stride: the downsampling ratio of feature map to the original input image
    anchor_scales: the scales to the basic_anchor (basic anchor is [16, 16])
    ----------
    Returns
    ----------
    rpn_labels : (1, 1, HxA, W), for each anchor, 0 denotes bg, 1 fg, -1 dontcare
    rpn_bbox_targets: (1, 4xA, H, W), distances of the anchors to the gt_boxes(may contains some transform)
                    that are the regression objectives
    rpn_bbox_inside_weights: (1, 4xA, H, W) weights of each boxes, mainly accepts hyper param in cfg
    rpn_bbox_outside_weights: (1, 4xA, H, W) used to balance the fg/bg,
    beacuse the numbers of bgs and fgs mays significiantly different
    """
    deviceid = rpn_cls_score.get_device() # 获取输入变量GPU id

    rpn_cls_score = rpn_cls_score.data.cpu().numpy()
    rpn_labels, rpn_bbox_targets, rpn_bbox_inside_weights, rpn_bbox_outside_weights = \
        anchor_target_layer_py(rpn_cls_score, gt_boxes, gt_ishard, dontcare_areas, im_info, _feat_stride, anchor_scales)
    with torch.cuda.device(deviceid):    # 指定分配时候的GPU id
        rpn_labels = network.np_to_variable(rpn_labels, is_cuda=True, dtype=torch.LongTensor)
        rpn_bbox_targets = network.np_to_variable(rpn_bbox_targets, is_cuda=True)
        rpn_bbox_inside_weights = network.np_to_variable(rpn_bbox_inside_weights, is_cuda=True)
        rpn_bbox_outside_weights = network.np_to_variable(rpn_bbox_outside_weights, is_cuda=True)

    return rpn_labels, rpn_bbox_targets, rpn_bbox_inside_weights, rpn_bbox_outside_weights


def proposal_target_layer(rpn_rois, gt_boxes, gt_ishard, dontcare_areas, num_classes):
    """
    ----------
    rpn_rois:  (1 x H x W x A, 5) [0, x1, y1, x2, y2]
    gt_boxes: (G, 5) [x1 ,y1 ,x2, y2, class] int
    # gt_ishard: (G, 1) {0 | 1} 1 indicates hard
    dontcare_areas: (D, 4) [ x1, y1, x2, y2]
    num_classes
    ----------
    Returns
    ----------
    rois: (1 x H x W x A, 5) [0, x1, y1, x2, y2]
    labels: (1 x H x W x A, 1) {0,1,...,_num_classes-1}
    bbox_targets: (1 x H x W x A, K x4) [dx1, dy1, dx2, dy2]
    bbox_inside_weights: (1 x H x W x A, Kx4) 0, 1 masks for the computing loss
    bbox_outside_weights: (1 x H x W x A, Kx4) 0, 1 masks for the computing loss
    """

    deviceid = rpn_rois.get_device() # 获取输入变量GPU id
    rpn_rois = rpn_rois.data.cpu().numpy()

    rois, labels, bbox_targets, bbox_inside_weights, bbox_outside_weights = \
        proposal_target_layer_py(rpn_rois, gt_boxes, gt_ishard, dontcare_areas, num_classes)

    # print labels.shape, bbox_targets.shape, bbox_inside_weights.shape
    with torch.cuda.device(deviceid): # 指定分配时候的GPU id
        rois = network.np_to_variable(rois, is_cuda=True)
        logging.info('"deviceid {0}"'.format(deviceid))
        labels = network.np_to_variable(labels, is_cuda=True, dtype=torch.LongTensor)
        bbox_targets = network.np_to_variable(bbox_targets, is_cuda=True)
        bbox_inside_weights = network.np_to_variable(bbox_inside_weights, is_cuda=True)
        bbox_outside_weights = network.np_to_variable(bbox_outside_weights, is_cuda=True)

    return rois, labels, bbox_targets, bbox_inside_weights, bbox_outside_weights


network = SimpleNamespace(np_to_variable=np_to_variable)
