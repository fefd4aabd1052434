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


def products(dtype):
    """Products of matrices, of batches and with a vector."""

    def compute(d):
        a, b = d(A).to(dtype), d(B).to(dtype)
        batch = torch.stack([b, a, a + b])
        return torch.cat([(a @ b.t()).flatten(), torch.bmm(batch, batch.mT).flatten(), a @ b[0], (a[0] @ b[0]).view(1)]).float()

    return compute


def gradients(d):
    """What a product gives back to both of its factors."""
    a, b = d(A).requires_grad_(), d(B).requires_grad_()
    return torch.cat(torch.autograd.grad(F.linear(a, b).pow(2).sum(), [a, b]))


def transformer(device):
    """The losses of 20 steps in which a small transformer learns to say what came before."""
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, activation="gelu", batch_first=True)
    model = torch.nn.ModuleDict({"words": torch.nn.Embedding(50, 32), "layers": torch.nn.TransformerEncoder(layer, 2), "out": torch.nn.Linear(32, 50)})
    words = N[:256].view(8, 32).to(device)
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        said = model["out"](model["layers"](model["words"](words)))
        loss = F.cross_entropy(said[:, 1:].flatten(0, 1), words[:, :-1].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    assert losses[-1] < losses[0] / 2, losses
    return torch.stack(losses)


def streams(d):
    """A product on a stream of its own, for which the other one waits."""
    a = d(A)
    if not a.is_cuda:
        return a @ a.t() + 1
    stream, done = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        product = a @ a.t()
        done.record()
    done.wait()
    product.record_stream(torch.cuda.current_stream())
    return product + 1


def graph(d):
    """A layer that is captured once and replayed with another input."""
    layer = torch.nn.Linear(41, 41)
    with torch.no_grad():
        layer.weight.copy_(A.t() @ A)
        layer.bias.copy_(A[0])
        layer, x = layer.to(d(A).device), d(A).clone()
        if not x.is_cuda:
            return layer(B).relu()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            layer(x)
        torch.cuda.current_stream().wait_stream(side)
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recorded):
            y = layer(x).relu()
        x.copy_(B)
        recorded.replay()
        return y


def memory(d):
    """What PyTorch says of the memory that it has."""
    if not d(A).is_cuda:
        return torch.tensor([1 << 20, 0])
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    held = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    got = torch.cuda.memory_allocated() - before
    free, total = torch.cuda.mem_get_info()
    assert 0 < free < total and torch.cuda.memory_reserved() >= got and "Allocated memory" in torch.cuda.memory_summary()
    del held
    return torch.tensor([got, torch.cuda.memory_allocated() - before])


def loader(d):
    """Batches that forked workers make and another thread pins."""
    if not d(A).is_cuda:
        return A[:36].sum(1)
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(A[:36]), batch_size=9, num_workers=2, pin_memory=True)
    return torch.cat([batch.cuda(non_blocking=True).sum(1) for (batch,) in batches])


# The operations to compute on a device. d moves a tensor to it.
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
    "products": products(torch.float32),
    "products, double": products(torch.float64),
    "products, half": products(torch.float16),
    "products, bfloat16": products(torch.bfloat16),
    "products, complex": lambda d: torch.view_as_real(torch.complex(d(A), d(B)) @ torch.complex(d(B), d(A)).mH),
    "linear": lambda d: F.linear(d(A), d(B), d(A)[:, 0]),
    "linear, gradients": gradients,
    "transformer": lambda d: transformer(d(A).device),
    "streams": streams,
    "graph of a layer": graph,
    "memory statistics": memory,
    "data loader": loader,
    "gradient": lambda d: torch.autograd.grad((t := d(A).requires_grad_()).sigmoid().sum(), t)[0],
    "Adam": lambda d: adam(d(A).device),
    "pinned memory": lambda d: A.pin_memory().to(d(A).device, non_blocking=True) + 1 if d(A).is_cuda else A + 1,
}


# The relative and absolute tolerances compared with the CPU's results: sums are
# computed in another order, and a training continues from them.
TOLERANCE = {
    "products": (1e-4, 1e-4),
    "products, half": (1e-2, 1e-1),
    "products, bfloat16": (1e-1, 1e-1),
    "products, complex": (1e-4, 1e-4),
    "linear, gradients": (1e-4, 1e-2),
    "transformer": (1e-2, 1e-2),
}


def judge(name):
    """What is wrong with an operation on the GPU; empty: nothing."""
    operation, (rtol, atol) = OPERATIONS[name], TOLERANCE.get(name, (1e-4, 1e-5))
    want = operation(lambda t: t.clone())
    got = operation(lambda t: t.cuda()).cpu()
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype} {tuple(got.shape)}, want {want.dtype} {tuple(want.shape)}"
    if not torch.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True):
        return f"differs by {(got - want).abs().max().item():.3g}"
    return ""


def main():
    wrong = 0
    chosen = sys.argv[1:] or OPERATIONS
    print(f"{len(chosen)} operations on {torch.cuda.get_device_name()}, {torch.cuda.get_device_capability()}", flush=True)
    for name in chosen:
        start = time.monotonic()
        try:
            why = judge(name)
        except (RuntimeError, AssertionError) as e:
            why = (str(e) or repr(e)).splitlines()[0]
        wrong += why != ""
        print(f"{'right' if not why else 'WRONG'}  {time.monotonic() - start:6.2f} s  {name}  {why}", flush=True)
    print(f"{wrong} of {len(chosen)} operations are wrong")
    sys.exit(wrong > 0)


main()
