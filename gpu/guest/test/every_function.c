/* Calls every function of the table with zeros and with invalid arguments. Each call returns,
 * and the library continues to work. */
#define BASALT_CUDA_IMPLEMENTATION
#include "every_function.h"

static uint64_t scratch_bytes[1 << 13] __attribute__((aligned(64)));
static CUdeviceptr device_bytes;

void *scratch(void)
{
	return scratch_bytes;
}

CUdeviceptr good_address(void)
{
	return device_bytes;
}

/* Reports whether a function accepts handles of objects that do not exist. */
static bool takes_anything(const char *name)
{
	static const char *const names[] = {"cuMemFree_v2", "cuCtxGetDevice_v2", "cuCtxSynchronize_v2"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* Reports whether a refused function has returned another error than the table's. */
static bool not_refused(const char *name, CUresult result)
{
	for (const struct refusal *r = refusals; r->name; r++)
		if (strcmp(r->name, name) == 0 && r->result != result) {
			fprintf(stderr, "%s gives %d, want %d, because the table has it as refused\n", name, result, r->result);
			return true;
		}
	return false;
}

static void still_works(CUcontext context, const char *after)
{
	unsigned int back = 0;
	CUdeviceptr p;
	CUgraph g;

	(void)cuStreamEndCapture(CU_STREAM_PER_THREAD, &g); /* end a capture that the call has begun */
	if (cuCtxSetCurrent(context) != 0 || cuMemAlloc_v2(&p, 4) != 0 || cuMemsetD32_v2(p, 0xfeed, 1) != 0 ||
	    cuMemcpyDtoH_v2(&back, p, 4) != 0 || cuMemFree_v2(p) != 0 || back != 0xfeed) {
		fprintf(stderr, "the library does not work after %s, want that it does\n", after);
		exit(1);
	}
}

static void every_function(void)
{
	CUcontext context;
	int wrong = 0;

	CHECK(cuInit(0));
	CHECK(cuCtxCreate_v2(&context, 0, 0));
	for (const struct bad_call *c = bad_calls; c->name; c++) {
		memset(scratch_bytes, 0, sizeof scratch_bytes);
		CHECK(cuCtxSetCurrent(context));
		CUresult r = c->call();

		if (c->handles && r == 0 && !takes_anything(c->name)) {
			fprintf(stderr, "%s succeeds with an invalid handle, want an error\n", c->name);
			wrong = 1;
		}
		wrong |= not_refused(c->name, r);
		still_works(context, c->name);
	}
	EXPECT(!wrong);
	CHECK(cuCtxDestroy_v2(context));
}

/* Structs, unions and arrays: valid ones reach the worker, and those that the table refuses are
 * refused. The results of devices with and without code for a function are both correct. */
static void exact_calls_of_structs(void)
{
	CUcontext context;
	int wrong = 0, calls = 0;

	CHECK(cuInit(0));
	CHECK(cuCtxCreate_v2(&context, 0, 0));
	CHECK(cuMemAlloc_v2(&device_bytes, 1024));
	for (const struct exact_call *c = exact_calls; c->name; c++, calls++) {
		CUresult r = c->call();
		/* A device with tensor maps checks their sizes, which are invalid here. */
		bool looked = r == CUDA_ERROR_INVALID_VALUE && strncmp(c->name, "cuTensorMap", strlen("cuTensorMap")) == 0;

		if (r != c->want && r != c->without && !looked) {
			fprintf(stderr, "%s gives %d, want %d or %d\n", c->name, r, c->want, c->without);
			wrong = 1;
		}
	}
	EXPECT(!wrong && calls > 0);
	still_works(context, "calls with structs");
	CHECK(cuCtxDestroy_v2(context));
}

const struct test every_function_tests[] = {{"every_function", every_function}, {"structs", exact_calls_of_structs}, {NULL, NULL}};
