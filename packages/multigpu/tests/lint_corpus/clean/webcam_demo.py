import cv2
import numpy as np
import torch
from nets import load_detector

net = load_detector().cuda().eval()
cap = cv2.VideoCapture(0)
while True:
    ok, frame = cap.read()
    if not ok:
        break
    x = torch.from_numpy(frame[:, :, ::-1].copy()).permute(2, 0, 1).float().cuda()[None] / 255
    with torch.no_grad():
        boxes = net(x)[0]["boxes"].cpu().numpy()
    for b in boxes.astype(int):
        cv2.rectangle(frame, tuple(b[:2]), tuple(b[2:]), (0, 255, 0))
    cv2.imshow("demo", frame)
