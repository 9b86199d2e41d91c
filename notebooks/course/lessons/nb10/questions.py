"""The questions of notebook 10, Sharding: FSDP2."""

from course.kit.learn.question import Question

QUESTIONS = (
    Question(
        "10.product",
        "A batch of 8 rows, four ranks, a layer of 16 inputs and 16 outputs under `fully_shard`. "
        "What does rank 0 multiply in this layer?",
        ("2 rows by all 16 outputs", "8 rows by 4 outputs", "2 rows by 4 outputs"),
    ),
    Question(
        "10.sends",
        "The same net and the same rows on two ranks, under `fully_shard` and under DDP. Compared with DDP, how much "
        "does a rank send in one step under `fully_shard`?",
        ("0.5 times as much", "as much", "1.5 times as much"),
    ),
    Question(
        "10.kinds",
        "Five plans for the same net, with as many rows on each of four ranks. Compared with DDP, under which of the "
        "other four do the activations take less memory?",
        ("all four", "offloaded and recomputed", "recomputed"),
    ),
    Question(
        "10.early",
        "A net of two layers: `fully_shard(net[0])`, `fully_shard(net)`, then one forward to see that it works, then "
        "the optimizer, then the loop. Which of the layers learn?",
        ("none of them", "one of them", "both of them"),
    ),
)
