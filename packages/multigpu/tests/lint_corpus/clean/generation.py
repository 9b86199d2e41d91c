import torch


@torch.inference_mode()
def generate(model, tokens, steps, end):
    for _ in range(steps):
        logits = model(tokens)[:, -1]
        token = torch.multinomial(logits.softmax(-1), 1)
        tokens = torch.cat([tokens, token], 1)
        if token.item() == end:
            break
    return tokens
