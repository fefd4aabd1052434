// A program with per-thread default streams: a blocked stream of one thread does not block
// another thread.
#include <atomic>
#include <thread>

#include "check.h"

#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM
#error "compile with -fgpu-default-stream=per-thread"
#endif

__global__ void set(int *p, int v) { *p = v; }

static std::atomic<bool> open_gate;

static void gate(void *)
{
	while (!open_gate)
		std::this_thread::yield();
}

static int run(int v)
{
	int *p, got = -1;

	CHECK(cudaMalloc(&p, sizeof got));
	set<<<1, 1>>>(p, v);
	CHECK(cudaMemcpy(&got, p, sizeof got, cudaMemcpyDeviceToHost));
	return got;
}

int main()
{
	int other = -1, *p, here = -1;
	std::thread held([] { // waits until main has finished its work
		CHECK(cudaLaunchHostFunc(nullptr, gate, nullptr));
		ASSERT(run(7) == 7);
	});

	ASSERT(run(5) == 5);
	CHECK(cudaMalloc(&p, sizeof *p));
	CHECK(cudaMemsetAsync(p, 1, sizeof *p, nullptr));
	CHECK(cudaMemcpyAsync(&here, p, sizeof here, cudaMemcpyDeviceToHost));
	CHECK(cudaStreamSynchronize(nullptr));
	ASSERT(here == 0x01010101);
	WANT(cudaStreamQuery(nullptr), cudaSuccess);
	open_gate = true;
	held.join();
	other = run(9);
	ASSERT(other == 9);
	puts("perthread: OK");
}
