"""RoI pooling and RoIAlign compiled: one file for each rule and each way to compile it, all of them optional.

`roi_pool.py` and `roi_align.py` beside this folder look here for the one that suits a tensor's device. Where it, or
the package that compiles it, is missing, torchvision pools, and RoIAlign is computed in plain torch.
"""
