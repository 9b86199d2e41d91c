import torch
import torchvision


def main():
    model = torchvision.models.resnet18()
    model = model.to("cuda:1")  # BUG FL004
    for images, _ in loader():
        print(model(images.to("cuda:1")).argmax(1))  # BUG FL004


main()
