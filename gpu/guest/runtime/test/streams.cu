// Concurrent work in several streams, events between them, and host functions.
#include <atomic>
#include <vector>

#include "check.h"

__global__ void scale(int *v, int n, int by)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		v[i] *= by;
}

__global__ void add(const int *a, const int *b, int *sum, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		sum[i] = a[i] + b[i];
}

static std::atomic<int> called;

static void host_function(void *data)
{
	called += *(int *)data;
}

static void callback(cudaStream_t, cudaError_t status, void *data)
{
	called += status == cudaSuccess ? *(int *)data : 1000;
}

int main()
{
	const int n = 10000, blocks = (n + 255) / 256;
	const size_t bytes = n * sizeof(int);
	cudaStream_t one, two, device_stream = nullptr;
	cudaEvent_t start, ready, end;
	int *host[2], *result, *dev[2], *sum, hundred = 100, ten = 10, least, greatest, priority;
	unsigned int flags;
	float ms = -1;

	CHECK(cudaStreamCreate(&one));
	CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	CHECK(cudaStreamCreateWithPriority(&two, cudaStreamNonBlocking, greatest));
	CHECK(cudaStreamGetPriority(two, &priority));
	CHECK(cudaStreamGetFlags(two, &flags));
	ASSERT(priority == greatest && flags == cudaStreamNonBlocking);
	CHECK(cudaEventCreate(&start));
	CHECK(cudaEventCreate(&end));
	CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
	CHECK(cudaMallocHost(&result, bytes));
	CHECK(cudaMalloc(&sum, bytes));
	CHECK(cudaEventRecord(start, one));
	for (int k = 0; k < 2; k++) {
		cudaStream_t s = k ? two : one;

		CHECK(cudaMallocHost(&host[k], bytes));
		CHECK(cudaMalloc(&dev[k], bytes));
		for (int i = 0; i < n; i++)
			host[k][i] = i + k;
		CHECK(cudaMemcpyAsync(dev[k], host[k], bytes, cudaMemcpyHostToDevice, s));
		scale<<<blocks, 256, 0, s>>>(dev[k], n, k + 2);
	}
	CHECK(cudaEventRecord(ready, two));
	CHECK(cudaStreamWaitEvent(one, ready, 0));
	add<<<blocks, 256, 0, one>>>(dev[0], dev[1], sum, n);
	CHECK(cudaMemcpyAsync(result, sum, bytes, cudaMemcpyDeviceToHost, one));
	CHECK(cudaLaunchHostFunc(one, host_function, &hundred));
	CHECK(cudaStreamAddCallback(one, callback, &ten, 0));
	CHECK(cudaEventRecord(end, one));
	CHECK(cudaStreamSynchronize(one));
	ASSERT(called == 110);
	CHECK(cudaStreamQuery(two));
	CHECK(cudaEventQuery(end));
	CHECK(cudaEventElapsedTime(&ms, start, end));
	ASSERT(ms >= 0);
	for (int i = 0; i < n; i++)
		ASSERT(result[i] == 2 * i + 3 * (i + 1));
	WANT(cudaEventElapsedTime(&ms, ready, end), cudaErrorInvalidResourceHandle);
	// The thread's own stream, by its handle and by the functions' per-thread forms.
	CHECK(cudaMemsetAsync(sum, 0, bytes, cudaStreamPerThread));
	CHECK(cudaMemcpyAsync_ptsz(result, sum, bytes, cudaMemcpyDeviceToHost, device_stream));
	CHECK(cudaStreamSynchronize_ptsz(nullptr));
	CHECK(cudaMemcpy_ptds(host[0], sum, bytes, cudaMemcpyDeviceToHost));
	ASSERT(result[n - 1] == 0 && host[0][n - 1] == 0);
	CHECK(cudaStreamDestroy(one));
	CHECK(cudaStreamDestroy(two));
	CHECK(cudaEventDestroy(start));
	CHECK(cudaFreeHost(result));
	puts("streams: OK");
}
