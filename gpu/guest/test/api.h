/* Functions and macros that the tests of the library share. */
#ifndef BASALT_TEST_API_H
#define BASALT_TEST_API_H

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "demo.h"

#define EXPECT(c)                                                                                                      \
	do {                                                                                                           \
		if (!(c)) {                                                                                            \
			fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #c);                                        \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)
#define GIVES(want, call)                                                                                              \
	do {                                                                                                           \
		CUresult gives = (call);                                                                               \
		if (gives != (want)) {                                                                                 \
			fprintf(stderr, "%s:%d: %s gives %d, want %d\n", __FILE__, __LINE__, #call, gives, want);      \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

/* Returns the free bytes of the vGPU. */
static inline size_t free_bytes(void)
{
	size_t free, total;

	CHECK(cuMemGetInfo_v2(&free, &total));
	return free;
}

/* Waits until no other program has memory of the vGPU: the worker of the previous program may
 * still be freeing its memory, so that the free memory changes. It must be called with a
 * context, and before a module is loaded or anything is allocated. If a context itself needs
 * memory, as on a physical GPU, the memory is never all free, and the wait ends after 10 s. */
static inline void alone(void)
{
	size_t free, total;

	for (int i = 0; i < 1000; i++) {
		CHECK(cuMemGetInfo_v2(&free, &total));
		if (free == total)
			return;
		usleep(10000);
	}
}

/* Like demo_start, for a test that measures the free memory. */
static inline CUfunction start_alone(const char *name)
{
	CUcontext context;
	CUmodule module;
	CUfunction f;

	CHECK(cuInit(0));
	CHECK(cuCtxCreate(&context, 0, 0));
	alone();
	CHECK(cuModuleLoadData(&module, kernels_ptx));
	CHECK(cuModuleGetFunction(&f, module, name));
	return f;
}

/* The lists of tests, in work.c, clusters.c, robust.c, window.c, pool.c, kept.c, host.c, streams.c, values.c, graph.c, graph_memory.c, graph_condition.c, capture.c, export_table.c, every_function.c, good.c, good_graph.c, library.c, managed.c, link.c, kernels.c, printf.c, texture.c, batch.c, peer.c, mapping.c, ipc.c, reference.c, coredump.c, green.c */
struct test {
	const char *name;
	void (*run)(void);
};
extern const struct test work_tests[], cluster_tests[], robust_tests[], window_tests[], pool_tests[], kept_tests[], host_tests[], stream_tests[], value_tests[], graph_tests[], graph_memory_tests[], graph_condition_tests[], capture_tests[],
	export_table_tests[], every_function_tests[], good_tests[], good_graph_tests[], library_tests[], managed_tests[], link_tests[], kernel_tests[], printf_tests[], texture_tests[], batch_tests[], peer_tests[], mapping_tests[], ipc_tests[], reference_tests[], coredump_tests[], green_tests[]; /* the last element of each has no name */

#endif
