/* blas [NAME…] runs all tests, or the named ones. */
#include "test.h"

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
#define T(name) {#name, test_##name},
	BLAS_TEST_NAMES(T)
#undef T
};

static bool chosen(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc == 1;
}

int main(int argc, char **argv)
{
	int ran = 0;
	CUdevice device;
	CUcontext context;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuCtxCreate(&context, 0, device));
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		if (chosen(tests[i].name, argc, argv)) {
			tests[i].run();
			CHECK(cuCtxSynchronize());
			ran++;
		}
	if (ran != (argc == 1 ? (int)(sizeof tests / sizeof *tests) : argc - 1))
		FAIL("%d of the %d named tests exist, want all", ran, argc - 1);
	puts("blas: OK");
	return 0;
}
