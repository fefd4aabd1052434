# PyTorch's expandable segments: memory that grows in place, with CUDA's virtual memory
# management. Run with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.
import torch

MIB = 1 << 18  # numbers of 4 bytes


def reserved():
    return torch.cuda.memory_reserved() >> 20


small, large = torch.ones(4 * MIB, device="cuda"), torch.ones(40 * MIB, device="cuda")
assert all(s["is_expandable"] for s in torch.cuda.memory_snapshot())
before = reserved()
del large
larger = torch.full((56 * MIB,), 2.0, device="cuda")
assert reserved() < before + 56, "what was freed has not grown"
assert (torch.cat([larger, small]).sum() == 116 * MIB).item()
del larger
torch.cuda.empty_cache()
assert reserved() < before, "nothing was given back"
graph, x = torch.cuda.CUDAGraph(), torch.ones(MIB, device="cuda")
with torch.cuda.graph(graph):
    y = x * 3
x.fill_(5)
graph.replay()
assert (y == 15).all().item()
assert (small == 1).all().item()
