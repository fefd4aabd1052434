"""PyTorch's own kernels on the GPU against the CPU: one line for each operation,
with what differed or was refused and how long the first use took."""

import sys
import time

import torch
import torch.nn.attention
import torch.nn.functional as F

torch.manual_seed(0)
A = torch.randn(37, 41)
B = torch.randn(37, 41)
V = torch.randn(5000)
I = torch.randint(0, 37, (64,))
N = torch.randint(0, 50, (3000,))
IMAGE = torch.randn(2, 3, 16, 16)
WEIGHTS = torch.randn(3, 1, 3, 3)


def adam(device):
    """Three steps of Adam of a model without matrix products."""
    w = torch.nn.Parameter(torch.linspace(-1, 1, 41, device=device))
    o = torch.optim.Adam([w], lr=0.1)
    for _ in range(3):
        o.zero_grad()
        ((A.to(device) * w).sigmoid() - B.to(device)).pow(2).mean().backward()
        o.step()
    return w.detach()


def attention(d):
    """Attention by PyTorch's own tensor core kernels: cuBLAS has no part in it."""
    q = d(IMAGE.reshape(1, 4, 12, 32))
    backend = torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION if q.is_cuda else torch.nn.attention.SDPBackend.MATH
    with torch.nn.attention.sdpa_kernel(backend):
        return F.scaled_dot_product_attention(q, q + 1, q * 2)


# What to compute on a device. d puts a tensor there.
OPERATIONS = {
    "ones": lambda d: torch.ones(4, device=d(A).device),
    "add": lambda d: d(A) + d(B),
    "multiply, divide": lambda d: d(A) * d(B) / (d(B).abs() + 1),
    "exp, log, sin, erf": lambda d: d(A).exp().log1p() + d(A).sin() + d(A).erf(),
    "power, square root": lambda d: d(A).abs().pow(1.5) + d(A).abs().sqrt(),
    "half": lambda d: (d(A).half() + d(B).half()).float(),
    "bfloat16": lambda d: (d(A).bfloat16() * d(B).bfloat16()).float(),
    "double": lambda d: d(A).double().cosh(),
    "integers": lambda d: d(N) * 3 // 2 % 7,
    "complex": lambda d: torch.view_as_real(torch.complex(d(A), d(B)) * 2j),
    "compare, where": lambda d: torch.where(d(A) > d(B), d(A), d(B)),
    "relu, gelu, tanh": lambda d: F.relu(d(A)) + F.gelu(d(A)) + d(A).tanh(),
    "sum, mean, max": lambda d: torch.stack([d(A).sum(), d(A).mean(), d(A).max()]),
    "sum of a dimension": lambda d: d(A).sum(1),
    "variance": lambda d: d(A).var(0),
    "argmax": lambda d: d(A).argmax(1),
    "cumulative sum": lambda d: d(A).cumsum(1),
    "cumulative sum, long": lambda d: d(V).double().cumsum(0),
    "softmax": lambda d: d(A).softmax(1),
    "layer norm": lambda d: F.layer_norm(d(A), [41]),
    "batch norm": lambda d: F.batch_norm(d(IMAGE), None, None, training=True),
    "cross entropy": lambda d: F.cross_entropy(d(A), d(I[:37])),
    "embedding": lambda d: F.embedding(d(I), d(A)),
    "gather, scatter": lambda d: torch.zeros(37, 41, device=d(A).device).scatter_add(0, d(I.view(-1, 1) % 37), d(B[I])) + d(A).gather(1, d(I[:37].view(-1, 1))),
    "index": lambda d: d(A)[d(I)],
    "sort": lambda d: d(V).sort()[0],
    "topk": lambda d: d(V).topk(9)[0],
    "unique": lambda d: d(N).unique(),
    "nonzero": lambda d: (d(N) > 25).nonzero(),
    "cat, transpose": lambda d: torch.cat([d(A), d(B)]).t().contiguous(),
    "max pool": lambda d: F.max_pool2d(d(IMAGE), 2),
    "interpolate": lambda d: F.interpolate(d(IMAGE), scale_factor=2, mode="bilinear"),
    "depthwise convolution": lambda d: torch.ops.aten._conv_depthwise2d(d(IMAGE), d(WEIGHTS), [3, 3], None, [1, 1], [1, 1], [1, 1]) if d(A).is_cuda else F.conv2d(IMAGE, WEIGHTS, padding=1, groups=3),
    "attention": attention,
    "gradient": lambda d: torch.autograd.grad((t := d(A).requires_grad_()).sigmoid().sum(), t)[0],
    "Adam": lambda d: adam(d(A).device),
    "pinned memory": lambda d: A.pin_memory().to(d(A).device, non_blocking=True) + 1 if d(A).is_cuda else A + 1,
}


def judge(operation):
    """What is wrong with an operation on the GPU; empty: nothing."""
    want = operation(lambda t: t.clone())
    got = operation(lambda t: t.cuda()).cpu()
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype} {tuple(got.shape)}, want {want.dtype} {tuple(want.shape)}"
    if not torch.allclose(got, want, rtol=1e-4, atol=1e-5, equal_nan=True):
        return f"differs by {(got - want).abs().max().item():.3g}"
    return ""


def main():
    wrong = 0
    chosen = sys.argv[1:] or OPERATIONS
    print(f"{len(chosen)} operations on {torch.cuda.get_device_name()}, {torch.cuda.get_device_capability()}", flush=True)
    for name in chosen:
        start = time.monotonic()
        try:
            why = judge(OPERATIONS[name])
        except RuntimeError as e:
            why = str(e).splitlines()[0]
        wrong += why != ""
        print(f"{'right' if not why else 'WRONG'}  {time.monotonic() - start:6.2f} s  {name}  {why}", flush=True)
    print(f"{wrong} of {len(chosen)} operations are wrong")
    sys.exit(wrong > 0)


main()
