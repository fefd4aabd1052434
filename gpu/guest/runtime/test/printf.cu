// The output of kernels appears in the program's stdout at the calls that CUDA documents. A
// failed assert prints a line to its stderr and ends the context.
#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

// Capture redirects a standard stream to a file.
struct Capture {
	FILE *stream;
	int saved, file;
	char text[1 << 20];

	void begin(FILE *s)
	{
		char name[] = "/tmp/basalt-printf-XXXXXX";

		stream = s;
		fflush(s);
		ASSERT((saved = dup(fileno(s))) >= 0 && (file = mkstemp(name)) >= 0);
		unlink(name);
		ASSERT(dup2(file, fileno(s)) >= 0);
	}
	// Returns the output so far.
	const char *so_far()
	{
		fflush(stream);
		ssize_t n = pread(file, text, sizeof text - 1, 0);
		ASSERT(n >= 0);
		text[n] = 0;
		return text;
	}
	const char *end()
	{
		so_far();
		dup2(saved, fileno(stream));
		close(saved);
		close(file);
		return text;
	}
};
static Capture capture;

// Checks that the output of a launch appears at the given call, and not before it.
#define SHOWS(launch, want, ...) \
	do { \
		capture.begin(stdout); \
		launch; \
		CHECK(cudaGetLastError()); \
		bool early = *capture.so_far() != 0; \
		__VA_ARGS__; \
		capture.end(); \
		ASSERT(!early); \
		if (strcmp(capture.text, want) != 0) { \
			fprintf(stderr, "%s:%d: %s printed \"%s\", want \"%s\"\n", __FILE__, __LINE__, #launch, capture.text, want); \
			exit(1); \
		} \
	} while (0)

__global__ void say(int n) { printf("say %d\n", n); }
__global__ void quiet() {}
__global__ void lines(int n)
{
	for (int i = 0; i < n; i++)
		printf("line %07d\n", i);
}
__global__ void values(int i, long long l, double d, const char *s)
{
	printf("%d|%5u|%-8x|%#o|%c|%hd|%hhu|%+d\n", i, i, i, i, i, (short)i, (unsigned char)i, i);
	printf("%lld|%llx|%20llu|%-20lld|%.12lld\n", l, l, l, l, l);
	printf("%f|%e|%g|%G|%10.2f|%-10.1e|%#.3g|%a|%.0f\n", d, d, d, d, d, d, d, d, d);
	printf("%f|%g\n", (float)d, (float)d);
	printf("%s|%10s|%-10s|%.3s|%*d|%.*f|%%|%p\n", s, s, s, s, 7, i, 3, d, (void *)l);
}

static const char *expected(int i, long long l, double d, const char *s)
{
	static char t[8192];
	size_t n = 0;

	n += (size_t)snprintf(t + n, sizeof t - n, "%d|%5u|%-8x|%#o|%c|%hd|%hhu|%+d\n", i, i, i, i, i, (short)i, (unsigned char)i, i);
	n += (size_t)snprintf(t + n, sizeof t - n, "%lld|%llx|%20llu|%-20lld|%.12lld\n", l, l, l, l, l);
	n += (size_t)snprintf(t + n, sizeof t - n, "%f|%e|%g|%G|%10.2f|%-10.1e|%#.3g|%a|%.0f\n", d, d, d, d, d, d, d, d, d);
	n += (size_t)snprintf(t + n, sizeof t - n, "%f|%g\n", (float)d, (float)d);
	n += (size_t)snprintf(t + n, sizeof t - n, "%s|%10s|%-10s|%.3s|%*d|%.*f|%%|%p\n", s, s, s, s, 7, i, 3, d, (void *)l);
	return t;
}

// Kernels format values as the host's C library does.
static void formats()
{
	unsigned int seed = 5;
	char *s;

	CHECK(cudaMalloc(&s, 16));
	CHECK(cudaMemcpy(s, "device", 7, cudaMemcpyHostToDevice));
	for (int round = 0; round < 200; round++) {
		int i = (int)(next_random(&seed) << 8 ^ next_random(&seed));
		long long l = (long long)i << 32 ^ next_random(&seed);
		double d = ((double)i / 3) * __builtin_powi(10.0, (int)(next_random(&seed) % 40) - 20);

		i = round < 20 ? 32 + round : i | 1; // %c of 0 would end the text
		i = (i & 0xff) == 0 ? i | 1 : i;
		l |= 1;
		SHOWS((values<<<1, 1>>>(i, l, d, s)), expected(i, l, d, "device"), CHECK(cudaDeviceSynchronize()));
	}
	CHECK(cudaFree(s));
}

static void host_function(void *) { printf("host\n"); }

// The calls at which output appears.
static void calls()
{
	cudaStream_t stream;
	cudaEvent_t event;
	int *dev, host;

	CHECK(cudaMalloc(&dev, 4));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaEventCreate(&event));
	SHOWS((say<<<1, 1>>>(1)), "say 1\n", CHECK(cudaDeviceSynchronize()));
	SHOWS((say<<<1, 1, 0, stream>>>(2)), "say 2\n", CHECK(cudaStreamSynchronize(stream)));
	SHOWS((say<<<1, 1, 0, stream>>>(3)), "say 3\n", CHECK(cudaEventRecord(event, stream)); CHECK(cudaEventSynchronize(event)));
	SHOWS((say<<<1, 1>>>(4)), "say 4\n", CHECK(cudaMemcpy(&host, dev, 4, cudaMemcpyDeviceToHost)));
	SHOWS((say<<<1, 1, 0, stream>>>(5)), "say 5\nhost\n", CHECK(cudaLaunchHostFunc(stream, host_function, nullptr)); CHECK(cudaStreamSynchronize(stream)));
	SHOWS((say<<<1, 1, 0, stream>>>(6)), "say 6\n", while (cudaStreamQuery(stream) == cudaErrorNotReady) (void)cudaGetLastError(); quiet<<<1, 1>>>());
	SHOWS((say<<<2, 1>>>(7)), "say 7\nsay 7\n", CHECK(cudaDeviceReset()));
}

// If the buffer is full, the oldest lines are lost.
static void fifo()
{
	size_t size = 0;

	CHECK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 100000));
	CHECK(cudaDeviceGetLimit(&size, cudaLimitPrintfFifoSize));
	ASSERT(size >= 100000 && size < 200000);
	capture.begin(stdout);
	lines<<<1, 1>>>(50000);
	CHECK(cudaDeviceSynchronize());
	capture.end();
	size_t n = strlen(capture.text);
	ASSERT(n > 10000 && n <= size && n % 13 == 0 && strcmp(capture.text + n - 13, "line 0049999\n") == 0);
	WANT(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1 << 20), cudaErrorInvalidValue);
	CHECK(cudaDeviceReset());
}

__global__ void check(int n) { assert(threadIdx.x + 1 < n && "too few"); }

static void asserts()
{
	int line = 0;
	char *text;

	capture.begin(stderr);
	check<<<1, 4>>>(5);
	cudaError_t well = cudaDeviceSynchronize();
	bool silent = *capture.so_far() == 0;
	check<<<1, 4>>>(3);
	cudaError_t first = cudaDeviceSynchronize(), then = cudaDeviceSynchronize();
	capture.end();
	ASSERT(well == cudaSuccess && silent);
	ASSERT(first == cudaErrorAssert && then == cudaErrorAssert && cudaGetLastError() == cudaErrorAssert);
	text = capture.text;
	for (const char *at = text; (at = strstr(at, "printf.cu:")) != nullptr; at++)
		line++;
	if (line != 2 || !strstr(text, "block: [0,0,0], thread: [2,0,0] Assertion `threadIdx.x + 1 < n && \"too few\"` failed.\n")) {
		fprintf(stderr, "failed assertions printed %d lines, want 2, one of them for thread [2,0,0]:\n%s", line, text);
		exit(1);
	}
}

int main()
{
	formats();
	calls();
	fifo();
	asserts();
	puts("printf: OK");
}
