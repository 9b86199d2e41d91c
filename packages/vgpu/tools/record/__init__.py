"""What a GPU answers, kept as data, and virtual GPUs asked the same: operators, and small programs.

In packages/vgpu/tools:
python -m record ask FILE             ask this machine's GPU, and write a record (rows of JSON, gzipped)
python -m record ask FILE --virtual   ask a virtual GPU instead; both want `expecttest`
python -m record page FILE            write docs/hardware.md from the records beside the tests and a virtual FILE
python -m record check                ask a virtual GPU, and print the rows that differ from a card without a reason
python -m record differ FILE          print the rows in which a virtual FILE differs, one a line

A question has a key, `operator|kind|argument`:
dtype|NAME            does it run for this dtype, and what comes back
mixed|POSITION        one of its tensors is on the CPU
strict|forward, strict|backward    under torch.use_deterministic_algorithms
cast|NAME             under autocast: the dtypes of the results
sync|forward          does it wait for the device
backward|plain        does its backward run
and of the small programs `group|program|name`: what they say, or their error.

questions.py asks every operator of PyTorch's test tables, programs.py runs the programs, files.py keeps, compare.py
says how two answers differ, page.py writes the page.
"""
