// Repeatedly loads and unloads a shared object with kernels, and uses the runtime in a child of
// fork and in exit handlers.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

__global__ void set(int *p, int v) { *p = v; }

static int run_set(int v)
{
	int *dev, got = -1;

	CHECK(cudaMalloc(&dev, sizeof got));
	set<<<1, 1>>>(dev, v);
	CHECK(cudaMemcpy(&got, dev, sizeof got, cudaMemcpyDeviceToHost));
	CHECK(cudaFree(dev));
	return got;
}

static void at_exit()
{
	int *dev;

	// The handler was registered before main used the GPU, so it may run before or after the
	// program's kernels are unregistered. In both cases nothing may crash.
	if (cudaMalloc(&dev, 4) == cudaSuccess)
		(void)cudaFree(dev);
	puts("at exit");
}

struct global {
	~global() { (void)cudaDeviceSynchronize(); }
} global_object;

int main(int argc, char **argv)
{
	int status;
	pid_t child;

	ASSERT(argc == 2);
	atexit(at_exit);
	for (int i = 0; i < 3; i++) {
		void *library = dlopen(argv[1], RTLD_NOW);
		int (*run)();

		if (!library)
			fprintf(stderr, "%s\n", dlerror());
		ASSERT(library);
		run = (int (*)())dlsym(library, "plugin_run");
		ASSERT(run() == 101 && run() == 102); // the variable is initialized each time
		ASSERT(run_set(i) == i);
		ASSERT(dlclose(library) == 0);
	}
	if ((child = fork()) == 0) {
		ASSERT(run_set(1234) == 1234);
		_exit(0);
	}
	ASSERT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	ASSERT(run_set(5) == 5);
	CHECK(cudaDeviceReset());
	ASSERT(run_set(6) == 6);
	puts("loader: OK");
}
