"""Statistics over the valid cells of several processes."""
import torch
import torch.multiprocessing as mp
from torch import distributed as dist
from torch.testing import assert_close

from mmpe.position.valid_norm import build_valid_norm

LENGTHS = torch.tensor([6, 2, 0, 5])


def run(norm, x, mask):
    """Output and gradient, with a loss that isn't the same for all."""
    x = x.clone().requires_grad_()
    out = norm(x, mask)
    (out.masked_fill(mask[..., None], 0)**3).sum().backward()
    return out, x.grad


def batch():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4, 6, 8, generator=generator)
    return x, torch.arange(6)[None] >= LENGTHS[:, None]


def worker(rank, file, queue):
    dist.init_process_group(
        'gloo', init_method=f'file://{file}', rank=rank, world_size=2)
    x, mask = batch()
    # One process has three of the four images.
    own = slice(0, 3) if rank == 0 else slice(3, 4)
    norm = build_valid_norm(dict(type='SyncBN'), 8)
    out, grad = run(norm, x[own], mask[own])
    queue.put((rank, out.detach().tolist(), grad.tolist(),
               norm.running_mean.tolist(), norm.running_var.tolist()))
    dist.destroy_process_group()


def test_sync_bn_is_batch_norm_over_all_processes(tmp_path):
    context = mp.get_context('spawn')
    queue = context.SimpleQueue()
    processes = [
        context.Process(target=worker, args=(rank, tmp_path / 'init', queue))
        for rank in range(2)
    ]
    for process in processes:
        process.start()
    results = sorted(queue.get() for _ in processes)
    for process in processes:
        process.join(60)
        assert process.exitcode == 0

    norm = build_valid_norm(dict(type='BN'), 8)
    out, grad = run(norm, *batch())
    assert_close(torch.tensor(results[0][1] + results[1][1]), out)
    assert_close(torch.tensor(results[0][2] + results[1][2]), grad)
    for _, _, _, mean, var in results:
        assert_close(torch.tensor(mean), norm.running_mean)
        assert_close(torch.tensor(var), norm.running_var)
