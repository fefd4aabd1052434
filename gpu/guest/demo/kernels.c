/* The demo's kernels. make ptx compiles this file to demo/kernels.ptx. */
#define KERNEL __attribute__((nvptx_kernel))
#define SHARED __attribute__((address_space(3)))
#define GLOBAL __attribute__((address_space(1)))

static unsigned int tid_x(void) { return __nvvm_read_ptx_sreg_tid_x(); }
static unsigned int tid_y(void) { return __nvvm_read_ptx_sreg_tid_y(); }
static unsigned int ctaid_x(void) { return __nvvm_read_ptx_sreg_ctaid_x(); }
static unsigned int ctaid_y(void) { return __nvvm_read_ptx_sreg_ctaid_y(); }

KERNEL void vecadd(const float *a, const float *b, float *c, unsigned int n)
{
	unsigned int i = ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + tid_x();

	if (i < n)
		c[i] = a[i] + b[i];
}

#define TILE 16

SHARED float tile_a[TILE][TILE];
SHARED float tile_b[TILE][TILE];

/* Computes C = A * B for n by n matrices, by tiles of 16 by 16 in shared memory. */
KERNEL void matmul(const float *a, const float *b, float *c, unsigned int n)
{
	unsigned int x = tid_x(), y = tid_y();
	unsigned int row = ctaid_y() * TILE + y, column = ctaid_x() * TILE + x;
	float sum = 0;

	for (unsigned int t = 0; t < n; t += TILE) {
		tile_a[y][x] = row < n && t + x < n ? a[row * n + t + x] : 0;
		tile_b[y][x] = column < n && t + y < n ? b[(t + y) * n + column] : 0;
		__syncthreads();
		for (unsigned int k = 0; k < TILE; k++)
			sum += tile_a[y][k] * tile_b[k][x];
		__syncthreads();
	}
	if (row < n && column < n)
		c[row * n + column] = sum;
}

/* For tests: writes a value to an address. */
KERNEL void poke(unsigned int *p, unsigned int value)
{
	*p = value;
}

/* For tests: every thread increments one counter rounds times. */
KERNEL void count(unsigned int *p, unsigned int rounds)
{
	for (unsigned int i = 0; i < rounds; i++)
		__nvvm_atom_add_gen_i((int *)p, 1);
}

GLOBAL unsigned int table[4] = {1, 2, 3, 4};

KERNEL void sum_table(unsigned int *out)
{
	*out = table[0] + table[1] + table[2] + table[3];
}
