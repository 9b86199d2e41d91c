"""A differential tester of virtual GPUs: random short training programs, on virtual GPUs and on the plain CPU.

In packages/vgpu/tools:
python -m differential --seed 17             draw the program of seed 17, run both, compare, and print the program
python -m differential --for 60m             one seed after the other for an hour; every difference is printed
python -m differential --for 60m --ranks 2   the same with two processes in a process group
python -m differential --for 60m --ranks 2 --threads   the same with two threads of one process

draw.py draws a program of one process (from layers.py and events.py, by nets.py and steps.py), ranks.py one of several;
run.py and processes.py run it, compare.py says what differs, rounding.py whether that is more than rounding, and
mutants.py has faults that the tester must find.
"""
