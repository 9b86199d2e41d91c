"""Which puzzles there are, by subject and from easy to hard."""

from dataclasses import dataclass

TARGETS = "puzzles."  # begins the keys of those that no lesson has, and that ask for a cost as well


@dataclass(frozen=True)
class Topic:
    """Puzzles of one subject, from easy to hard: each key with the minutes that it takes."""

    title: str
    about: str
    puzzles: dict[str, int]


TOPICS = (
    Topic(
        "Where is it?",
        "A tensor is on one device, and whoever adds two of them has to know which.",
        {"00.on_gpu": 3, "00.beside": 3, "04.current_device": 10, "04.bring_to": 10, "04.same_on_two_gpus": 15},
    ),
    Topic(
        "Rows",
        "`DataParallel` and DDP divide rows. Which ones, and how many?",
        {
            "00.a_row_for_each": 3,
            "00.idle_gpus": 5,
            "01.share": 5,
            "01.rows_lost": 10,
            "03.row_weights": 10,
            "08.sample": 10,
            "01.test_step": 15,
            "07.check_rows": 15,
        },
    ),
    Topic(
        "Models on several GPUs",
        "Copies of a model, what they hold, and how they train.",
        {
            "02.scatter": 5,
            "02.replicate": 5,
            "02.strip_module": 5,
            "02.gather": 10,
            "02.parallel_apply": 10,
            "02.bytes_held": 10,
            "07.train_step": 10,
            "05.check_training": 10,
            "05.train": 15,
            "10.optimizer_trains": 15,
        },
    ),
    Topic(
        "A loss, and numbers over ranks",
        "Sums travel well, and means do not.",
        {
            "03.rank_loss": 10,
            "06.same_loss": 15,
            "03.check_loss": 15,
            "07.normalise": 15,
            "puzzles.loss_and_stop": 10,
            "puzzles.batch_statistics": 10,
        },
    ),
    Topic(
        "Memory",
        "How many bytes are alive at the worst moment, and on which GPU?",
        {
            "puzzles.follow": 3,
            "puzzles.nearest": 10,
            "puzzles.chunked_loss": 10,
            "06.recomputed": 10,
            "06.rows_that_fit": 10,
            "06.held": 10,
            "06.first_rows": 15,
            "10.fullest_rank": 15,
        },
    ),
    Topic(
        "Who sends what",
        "Each collective sends bytes. A ring tells how many.",
        {
            "puzzles.own_part": 5,
            "puzzles.average_gradients": 10,
            "puzzles.gradient_norm": 10,
            "puzzles.two_layers": 10,
            "puzzles.whole_output": 15,
            "10.reduce_scattered": 15,
            "11.row_parallel": 15,
            "11.bytes_sent": 15,
            "11.choose": 15,
        },
    ),
    Topic(
        "What runs when",
        "Streams run beside each other, and stages of a pipeline take turns.",
        {
            "36.accumulate": 10,
            "36.one_forward_one_backward": 10,
            "35.average_beside": 15,
            "35.check_total": 15,
        },
    ),
    Topic(
        "When something stops",
        "Ranks that wait, machines that end, and what is computed twice.",
        {
            "08.agreed": 10,
            "09.repeated_steps": 10,
            "09.where_all_begin": 10,
            "08.missing_ranks": 10,
            "09.first_to_fail": 10,
        },
    ),
)
KEYS = [key for topic in TOPICS for key in topic.puzzles]
