import threading

import torch


def worker(replica, batch, results, index):
    batch = batch.cuda()  # BUG FL001
    results[index] = replica(batch)


def run(replicas, batches):
    results = [None] * len(replicas)
    threads = [threading.Thread(target=worker, args=(r, b, results, i)) for i, (r, b) in enumerate(zip(replicas, batches))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results
