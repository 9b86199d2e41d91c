import torch


def play(policy, env, episodes):
    for _ in range(episodes):
        state, done = env.reset(), False
        while not done:
            action = torch.distributions.Categorical(logits=policy(state)).sample()
            state, _, done, _ = env.step(action.item())
