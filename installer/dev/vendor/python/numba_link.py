"""What the driver links: PTX and libcudadevrt; constants, and exceptions of kernels."""

import numpy as np
from numba import cuda, types

TABLE = np.arange(16, dtype=np.int32) * 3


@cuda.jit
def constants(out):
    table = cuda.const.array_like(TABLE)
    out[cuda.threadIdx.x] = table[cuda.threadIdx.x]


out = np.zeros(16, np.int32)
constants[1, 16](out)
np.testing.assert_array_equal(out, TABLE)


# A grid that synchronizes needs libcudadevrt, of whose functions a soft GPU has its own.
def waves(x):
    grid = cuda.cg.this_grid()
    i = cuda.grid(1)
    for _ in range(4):
        left = x[i - 1]
        grid.sync()
        x[i] += left
        grid.sync()


x = np.ones(256, np.int32)
want = x.copy()
for _ in range(4):
    want = want + np.roll(want, 1)
cuda.jit("void(int32[:])")(waves)[8, 32](x)
np.testing.assert_array_equal(x, want)

PTX = """
.version 6.0
.target sm_50
.address_size 64
.visible .func (.param .b32 status) plus5(.param .b64 result, .param .b32 x)
{
    .reg .b32 %r<3>;
    .reg .b64 %a;
    ld.param.b64 %a, [result];
    ld.param.b32 %r0, [x];
    add.s32 %r1, %r0, 5;
    st.b32 [%a], %r1;
    mov.b32 %r2, 0;
    st.param.b32 [status], %r2;
    ret;
}
"""
with open("/tmp/plus5.ptx", "w", encoding="ascii") as f:
    f.write(PTX)
plus5 = cuda.declare_device("plus5", types.int32(types.int32))


@cuda.jit(link=["/tmp/plus5.ptx"])
def add(x):
    x[cuda.threadIdx.x] = plus5(x[cuda.threadIdx.x])


x = np.zeros(32, np.int32)
add[1, 32](x)
assert (x == 5).all()


@cuda.jit(debug=True, opt=False)
def refuses(x):
    if x[0] > 0:
        raise ValueError("positive")


refuses[1, 1](np.zeros(1))
try:
    refuses[1, 1](np.ones(1))
    raise SystemExit("a kernel's exception was lost")
except ValueError:
    pass
