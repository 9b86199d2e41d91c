# The set-up of an engineer's notes (2021), which print a fragment; every line marked "completed" was added to run it.
import argparse  # completed
import os  # completed

parser = argparse.ArgumentParser()  # completed
parser.add_argument("--local_rank", type=int, default=0)  # completed, as the notes ask for
args = parser.parse_args()  # completed
import torch  # completed

model = torch.nn.Linear(64, 10).cuda(args.local_rank)  # completed
torch.distributed.init_process_group(backend="nccl", init_method="env://",)
model = torch.nn.parallel.DistributedDataParallel(
                                                model,
                                                find_unused_parameters=True,
                                                device_ids=[args.local_rank],
                                                output_device=args.local_rank
                                                )
rank, local_rank = os.environ["RANK"], os.environ["LOCAL_RANK"]  # completed
line = f"rank {rank}: --local_rank {args.local_rank}, LOCAL_RANK={local_rank}, model on {model.device}"  # completed
print(line + "\n", end="")  # completed: in one write, so that the lines of two ranks do not mix
torch.distributed.destroy_process_group()  # completed
