"""A differential tester of virtual GPUs: random short training programs, on virtual GPUs and on the plain CPU.

In packages/vgpu/tests:
python -m differential --seed 17             draw the program of seed 17, run both, compare, and print the program
python -m differential --for 60m             one seed after the other for an hour; every difference is printed
python -m differential --for 60m --ranks 2   the same with two processes in a process group

draw.py draws a program (layers.py, events.py, steps.py and ranks.py hold what it is put together from), run.py and
processes.py run one, compare.py says what differs, and mutants.py has faults that it must find.
"""
