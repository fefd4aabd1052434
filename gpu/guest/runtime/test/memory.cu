// Boxes of three dimensions, shared memory beyond the default limit, attributes of pointers, and
// memory that both sides share, if the driver supports it.
#include <vector>

#include "check.h"

__global__ void slices(cudaPitchedPtr p, int w, int h, int d)
{
	int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;

	if (x < w && y < h && z < d)
		((int *)((char *)p.ptr + (z * p.ysize + y) * p.pitch))[x] += z * 100 + y * 10 + x;
}

__global__ void reverse(int *v, int n)
{
	extern __shared__ int line[];

	for (int i = threadIdx.x; i < n; i += blockDim.x)
		line[i] = v[i];
	__syncthreads();
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		v[i] = line[n - 1 - i];
}

__global__ void increment(int *v, int n)
{
	if (threadIdx.x < n)
		v[threadIdx.x]++;
}

static void boxes()
{
	const int w = 9, h = 5, d = 4;
	std::vector<int> host(w * h * d), got(w * h * d);
	cudaPitchedPtr p;
	cudaMemcpy3DParms copy = {};

	for (int i = 0; i < w * h * d; i++)
		host[i] = i;
	CHECK(cudaMalloc3D(&p, make_cudaExtent(w * sizeof(int), h, d)));
	CHECK(cudaMemset3D(p, 0xff, make_cudaExtent(w * sizeof(int), h, d)));
	copy.srcPtr = make_cudaPitchedPtr(host.data(), w * sizeof(int), w, h);
	copy.dstPtr = p;
	copy.extent = make_cudaExtent(w * sizeof(int), h, d);
	copy.kind = cudaMemcpyHostToDevice;
	CHECK(cudaMemcpy3D(&copy));
	slices<<<d, dim3(16, 8)>>>(p, w, h, d);
	copy.srcPtr = p;
	copy.dstPtr = make_cudaPitchedPtr(got.data(), w * sizeof(int), w, h);
	copy.kind = cudaMemcpyDeviceToHost;
	CHECK(cudaMemcpy3D(&copy));
	for (int i = 0; i < w * h * d; i++)
		ASSERT(got[i] == host[i] + i / (w * h) * 100 + i / w % h * 10 + i % w);
	// An inner box: two rows of two slices, from a position in the middle.
	copy.srcPos = make_cudaPos(3 * sizeof(int), 2, 1);
	copy.dstPos = make_cudaPos(0, 0, 0);
	copy.extent = make_cudaExtent(4 * sizeof(int), 2, 2);
	CHECK(cudaMemcpy3DAsync(&copy, nullptr));
	CHECK(cudaDeviceSynchronize());
	ASSERT(got[0] == host[w * h + 2 * w + 3] + 123 && got[w + 3] == host[w * h + 3 * w + 6] + 136);
	WANT(cudaMemcpy3D(nullptr), cudaErrorInvalidValue);
	WANT(cudaGetLastError(), cudaErrorInvalidValue);
}

static void dynamic_shared()
{
	int limit, device, n;
	std::vector<int> v;
	int *dev;

	CHECK(cudaGetDevice(&device));
	CHECK(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
	n = limit / (int)sizeof(int);
	v.resize(n);
	for (int i = 0; i < n; i++)
		v[i] = i;
	CHECK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, limit));
	CHECK(cudaMalloc(&dev, n * sizeof(int)));
	CHECK(cudaMemcpy(dev, v.data(), n * sizeof(int), cudaMemcpyHostToDevice));
	reverse<<<1, 256, limit>>>(dev, n);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(v.data(), dev, n * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		ASSERT(v[i] == n - 1 - i);
}

static void pointers()
{
	struct cudaPointerAttributes a;
	int here, *dev, *pinned;
	size_t free_bytes, total;

	CHECK(cudaMalloc(&dev, 100));
	CHECK(cudaMallocHost(&pinned, 100));
	CHECK(cudaPointerGetAttributes(&a, dev + 1));
	ASSERT(a.type == cudaMemoryTypeDevice && a.device == 0 && a.devicePointer == dev + 1);
	CHECK(cudaPointerGetAttributes(&a, pinned));
	ASSERT(a.type == cudaMemoryTypeHost && a.hostPointer == pinned);
	CHECK(cudaPointerGetAttributes(&a, &here));
	ASSERT(a.type == cudaMemoryTypeUnregistered && a.devicePointer == nullptr);
	CHECK(cudaMemGetInfo(&free_bytes, &total));
	ASSERT(free_bytes > 0 && free_bytes < total);
	CHECK(cudaFree(nullptr));
	CHECK(cudaFreeHost(nullptr));
	WANT(cudaFree(&here), cudaErrorInvalidValue);
	WANT(cudaMalloc(&dev, (size_t)1 << 50), cudaErrorMemoryAllocation);
	CHECK(cudaMalloc(&dev, 0));
	ASSERT(dev == nullptr);
}

// Managed and mapped memory either work or return the documented error.
static void both_sides()
{
	int *managed, *mapped, *view;
	cudaError_t err = cudaMallocManaged(&managed, 64 * sizeof(int));

	if (err == cudaSuccess) {
		for (int i = 0; i < 64; i++)
			managed[i] = i;
		increment<<<1, 64>>>(managed, 64);
		CHECK(cudaDeviceSynchronize());
		for (int i = 0; i < 64; i++)
			ASSERT(managed[i] == i + 1);
		CHECK(cudaFree(managed));
	} else {
		ASSERT(err == cudaErrorNotSupported);
	}
	err = cudaHostAlloc(&mapped, 64 * sizeof(int), cudaHostAllocMapped);
	if (err == cudaSuccess && (err = cudaHostGetDevicePointer(&view, mapped, 0)) == cudaSuccess) {
		for (int i = 0; i < 64; i++)
			mapped[i] = 2 * i;
		increment<<<1, 64>>>(view, 64);
		CHECK(cudaDeviceSynchronize());
		for (int i = 0; i < 64; i++)
			ASSERT(mapped[i] == 2 * i + 1);
	} else {
		ASSERT(err == cudaErrorNotSupported);
	}
}

int main()
{
	boxes();
	dynamic_shared();
	pointers();
	both_sides();
	puts("memory: OK");
}
