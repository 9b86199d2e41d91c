import threading

import torch


def worker(index, replica, batch, results):
    with torch.cuda.device(index):
        results[index] = replica(batch.cuda())


def run(replicas, batches):
    results = {}
    threads = [threading.Thread(target=worker, args=(i, r, b, results)) for i, (r, b) in enumerate(zip(replicas, batches))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
