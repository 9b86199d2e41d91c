import argparse

import torch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda:0")
    args = parser.parse_args()
    device = torch.device(args.device)
    model = torch.nn.Linear(4, 4).to(device)
    with torch.no_grad():
        print(model(torch.zeros(1, 4, device=device)).sum().item())


if __name__ == "__main__":
    main()
