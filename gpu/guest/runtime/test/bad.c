/* Calls every function of the API with zeros and with invalid arguments. Each returns an error
 * that has a name, or succeeds, and the program continues to work. */
#include <stdbool.h>
#include <string.h>

#include "cuda_runtime_api.h"

#include "check.h"

/* Calls functions by their own names. */
#undef cudaGetDeviceProperties
#undef cudaStreamGetCaptureInfo

#define FEW 3
#define RUBBISH 0x7000000000123457ull

/* Returns memory that a call may overwrite. */
static void *scratch(void)
{
	static char room[4096];

	memset(room, 0, sizeof room);
	return room;
}

static void nowhere(void)
{
}

#define BAD(name, refused, nothing, rubbish) \
	static cudaError_t nothing_##name(void) { return nothing; } \
	static cudaError_t rubbish_##name(void) { return rubbish; }
#include "bad_calls.h"
#undef BAD

static const struct call {
	const char *name;
	bool refused;
	cudaError_t (*nothing)(void), (*rubbish)(void);
} calls[] = {
#define BAD(name, refused, nothing, rubbish) {#name, refused, nothing_##name, rubbish_##name},
#include "bad_calls.h"
#undef BAD
};

static int wrong;
static bool verbose; /* with an argument, prints each call before it is made */

static void call(const struct call *c, const char *with, cudaError_t (*f)(void))
{
	cudaError_t err;

	if (verbose)
		fprintf(stderr, "%s with %s\n", c->name, with);
	err = f();
	if (c->refused ? err != cudaErrorNotSupported : err == cudaErrorUnknown || strcmp(cudaGetErrorName(err), "unrecognized error code") == 0) {
		fprintf(stderr, "%s with %s gives %s (%d), want %s\n", c->name, with, cudaGetErrorName(err), (int)err,
			c->refused ? "cudaErrorNotSupported" : "success or a known error");
		wrong++;
	}
}

int main(int argc, char **argv)
{
	int sent = 42, got = 0;
	void *p;

	(void)argv;
	verbose = argc > 1;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		call(&calls[i], "nothing", calls[i].nothing);
		call(&calls[i], "rubbish", calls[i].rubbish);
	}
	CHECK(cudaSetDevice(0));
	CHECK(cudaDeviceReset()); /* the thread's stream may be capturing */
	(void)cudaGetLastError();
	CHECK(cudaMalloc(&p, sizeof sent));
	CHECK(cudaMemcpy(p, &sent, sizeof sent, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(&got, p, sizeof got, cudaMemcpyDeviceToHost));
	ASSERT(got == sent && wrong == 0);
	printf("bad: %d: OK\n", CUDART_MAJOR);
	return 0;
}
