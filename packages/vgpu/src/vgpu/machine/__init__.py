"""The machine that is played: its GPUs, their memory, streams and random numbers, and what each GPU is called."""
