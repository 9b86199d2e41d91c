# The post's RoI pooling, as printed, in whole indentation. Added: this line, the import, "class".
import torch


class RoIPoolFunction:
    def forward(self, features, rois):
        batch_size, num_channels, data_height, data_width = features.size()
        num_rois = rois.size()[0]
        output = torch.zeros(num_rois, num_channels, self.pooled_height, self.pooled_width)
        argmax = torch.IntTensor(num_rois, num_channels, self.pooled_height, self.pooled_width).zero_()

        if not features.is_cuda:
            _features = features.permute(0, 2, 3, 1)
            roi_pooling.roi_pooling_forward(self.pooled_height, self.pooled_width, self.spatial_scale,
    _features, rois, output)
            # output = output.cuda()
        else:
            # output = output.cuda() # 修改前
            # argmax = argmax.cuda() # 修改前

            output = output.cuda(features.get_device()) # 修改为分配到指定位置
            argmax= argmax.cuda(argmax.get_device()) # 修改为分配到指定位置

            roi_pooling.roi_pooling_forward_cuda(self.pooled_height, self.pooled_width, self.spatial_scale,
    features, rois, output, argmax)
            self.output = output
            self.argmax = argmax
            self.rois = rois
            self.feature_size = features.size()
        return output
