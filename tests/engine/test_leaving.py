"""A rank that is done waits for one that still writes a checkpoint.

Else it may abort on the way out, and torchrun ends the other in mid-write.
"""
import time

import torch.multiprocessing as mp
from torch import distributed

from mmpe.engine.command_line import run


def worker(rank, file, queue):
    distributed.init_process_group(
        'gloo', init_method=f'file://{file}', rank=rank, world_size=2)
    done = []

    def main():
        time.sleep(0 if rank else 2)
        done.append(time.time())

    run(main)
    queue.put((rank, done[0], time.time(), distributed.is_initialized()))


def test_no_rank_leaves_before_all_are_done(tmp_path):
    context = mp.get_context('spawn')
    queue = context.SimpleQueue()
    processes = [
        context.Process(target=worker, args=(rank, tmp_path / 'init', queue))
        for rank in range(2)
    ]
    for process in processes:
        process.start()
    (_, first_done, _, _), (_, _, second_left, _) = results = sorted(
        queue.get() for _ in processes)
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert second_left >= first_done
    assert not any(initialized for *_, initialized in results)
