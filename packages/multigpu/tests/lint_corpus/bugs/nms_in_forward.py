import torch
class Detector(torch.nn.Module):
    def forward(self, images):
        feats = self.backbone(images)
        boxes = self.head(feats)
        boxes = boxes.detach().cpu().numpy()  # BUG FL006
        boxes = my_nms(boxes)
        boxes = torch.tensor(boxes, device=images.device)  # BUG FL006
        return boxes
