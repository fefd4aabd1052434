/* Tests of what kernels print: it appears on the program's stdout, and failed assertions on its
 * stderr, in order with the program's own output. */
#include <sys/wait.h>

#include "api.h"

/* tell(n)   prints "line N"
 * word(s)   prints a string and a number, without a newline
 * flood(n)  prints n lines
 * refuse()  fails an assertion */
static const char ptx[] = ".version 6.4\n.target sm_50\n.address_size 64\n"
	".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
	".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);\n"
	".global .align 1 .b8 line[9] = {108, 105, 110, 101, 32, 37, 117, 10, 0};\n"
	".global .align 1 .b8 words[11] = {60, 37, 115, 62, 32, 37, 46, 50, 102, 59, 0};\n"
	".global .align 1 .b8 file[5] = {97, 46, 99, 117, 0};\n"
	".global .align 1 .b8 check[6] = {110, 32, 60, 32, 51, 0};\n"
	".visible .entry tell(.param .u32 n)\n{\n"
	".local .align 4 .b8 args[4];\n.reg .b32 %r;\n.reg .b64 %f, %a;\n"
	"ld.param.u32 %r, [n];\nst.local.u32 [args], %r;\n"
	"mov.u64 %f, line;\ncvta.global.u64 %f, %f;\nmov.u64 %a, args;\ncvta.local.u64 %a, %a;\n"
	"{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %f; st.param.b64 [a], %a; call.uni (r), vprintf, (f, a); }\n"
	"ret;\n}\n"
	".visible .entry word(.param .u64 s)\n{\n"
	".local .align 8 .b8 args[16];\n.reg .b64 %s, %f, %a;\n"
	"ld.param.u64 %s, [s];\nst.local.u64 [args], %s;\nst.local.f64 [args+8], 0d3FF8000000000000;\n"
	"mov.u64 %f, words;\ncvta.global.u64 %f, %f;\nmov.u64 %a, args;\ncvta.local.u64 %a, %a;\n"
	"{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %f; st.param.b64 [a], %a; call.uni (r), vprintf, (f, a); }\n"
	"ret;\n}\n"
	".visible .entry flood(.param .u32 n)\n{\n"
	".local .align 4 .b8 args[4];\n.reg .b32 %i, %n;\n.reg .b64 %f, %a;\n.reg .pred %p;\n"
	"ld.param.u32 %n, [n];\nmov.u32 %i, 0;\n"
	"mov.u64 %f, line;\ncvta.global.u64 %f, %f;\nmov.u64 %a, args;\ncvta.local.u64 %a, %a;\n"
	"more:\nst.local.u32 [args], %i;\n"
	"{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %f; st.param.b64 [a], %a; call.uni (r), vprintf, (f, a); }\n"
	"add.u32 %i, %i, 1;\nsetp.lt.u32 %p, %i, %n;\n@%p bra more;\nret;\n}\n"
	".visible .entry refuse()\n{\n"
	".reg .b64 %m, %f, %s;\n.reg .b32 %l;\n"
	"mov.u64 %m, check;\ncvta.global.u64 %m, %m;\nmov.u64 %f, file;\ncvta.global.u64 %f, %f;\nmov.u32 %l, 42;\nmov.u64 %s, 1;\n"
	"{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;\n"
	"st.param.b64 [m], %m; st.param.b64 [f], %f; st.param.b32 [l], %l; st.param.b64 [n], %f; st.param.b64 [s], %s;\n"
	"call.uni __assertfail, (m, f, l, n, s); }\n"
	"ret;\n}\n";

static CUmodule load(void)
{
	CUcontext c;
	CUmodule m;

	CHECK(cuInit(0));
	CHECK(cuCtxCreate(&c, 0, 0));
	CHECK(cuModuleLoadData(&m, ptx));
	return m;
}

static CUfunction function(CUmodule m, const char *name)
{
	CUfunction f;

	CHECK(cuModuleGetFunction(&f, m, name));
	return f;
}

static void launch(CUfunction f, CUstream s, unsigned int n)
{
	void *params[] = {&n};

	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
}

/* A stream of the program that is written to a file for a while. */
struct redirected {
	FILE *stream, *file;
	int saved;
};

static void redirect(struct redirected *r, FILE *stream)
{
	*r = (struct redirected){stream, tmpfile(), dup(fileno(stream))};
	EXPECT(r->file && r->saved >= 0);
	fflush(stream);
	EXPECT(dup2(fileno(r->file), fileno(stream)) == fileno(stream));
}

/* Ends it; the file can be read from its beginning. */
static void restore(struct redirected *r)
{
	fflush(r->stream);
	EXPECT(dup2(r->saved, fileno(r->stream)) == fileno(r->stream));
	close(r->saved);
	rewind(r->file);
}

/* Ends it, and expects what was written. */
static void expect_written(struct redirected *r, const char *want)
{
	char got[4096];

	restore(r);
	got[fread(got, 1, sizeof got - 1, r->file)] = 0;
	fclose(r->file);
	if (strcmp(got, want) != 0) {
		fprintf(stderr, "written: \"%s\", want \"%s\"\n", got, want);
		exit(1);
	}
}

/* What kernels print appears when the program waits for them, between what the program prints
 * itself: also lines in parts. */
static void printf_order(void)
{
	static const char text[] = "some text";
	CUmodule m = load();
	CUfunction tell = function(m, "tell"), word = function(m, "word");
	struct redirected out;
	unsigned int n = 0;
	CUstream s;
	CUevent e;
	CUdeviceptr p;
	void *params[] = {&p};

	CHECK(cuMemAlloc(&p, sizeof text));
	CHECK(cuMemcpyHtoD(p, text, sizeof text));
	CHECK(cuCtxSynchronize()); // the copy may return before its end, and the stream does not wait for it
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&e, 0));
	redirect(&out, stdout);
	printf("before: ");
	CHECK(cuLaunchKernel(word, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
	CHECK(cuStreamSynchronize(s));
	printf(" after\n");
	launch(tell, s, 1);
	CHECK(cuEventRecord(e, s));
	CHECK(cuEventSynchronize(e));
	printf("event\n");
	launch(tell, NULL, 2);
	launch(tell, NULL, 3);
	CHECK(cuMemcpyDtoH(&n, p, sizeof n));
	printf("copy\n");
	launch(tell, s, 4);
	CHECK(cuCtxSynchronize());
	printf("context\n");
	CHECK(cuLaunchKernel(word, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
	CHECK(cuCtxSynchronize());
	expect_written(&out, "before: <some text> 1.50; after\nline 1\nevent\nline 2\nline 3\ncopy\nline 4\ncontext\n<some text> 1.50;");
}

/* Each of two contexts prints its lines when the program waits for it. */
static void printf_contexts(void)
{
	CUfunction first = function(load(), "tell"), second = function(load(), "tell");
	struct redirected out;
	CUcontext c;

	redirect(&out, stdout);
	launch(second, NULL, 2);
	CHECK(cuCtxSynchronize());
	printf("second\n");
	CHECK(cuCtxPopCurrent(&c));
	launch(first, NULL, 1);
	CHECK(cuCtxSynchronize());
	printf("first\n");
	CHECK(cuCtxPushCurrent(c));
	launch(second, NULL, 3);
	CHECK(cuCtxDestroy(c));
	expect_written(&out, "line 2\nsecond\nline 1\nfirst\nline 3\n");
}

/* A kernel that prints more than the buffer holds loses the oldest lines. */
static void printf_flood(void)
{
	enum { PRINTF_FIFO_SIZE = 1, LIMIT = 64 << 10, LINES_OF_FLOOD = 100000 };
	CUfunction flood = function(load(), "flood");
	unsigned int n, last = 0, lines = 0;
	struct redirected out;
	size_t all = 0;
	char line[64];

	CHECK(cuCtxSetLimit(PRINTF_FIFO_SIZE, LIMIT));
	redirect(&out, stdout);
	launch(flood, NULL, LINES_OF_FLOOD);
	CHECK(cuCtxSynchronize());
	restore(&out);
	while (fgets(line, sizeof line, out.file)) {
		all += strlen(line);
		EXPECT(strncmp(line, "line ", 5) == 0 && line[strlen(line) - 1] == '\n');
		line[strcspn(line, "\n")] = 0;
		n = line[5] == '0' ? 0 : number(line + 5, 0);
		EXPECT(lines == 0 || n == last + 1);
		last = n;
		lines++;
	}
	EXPECT(last == LINES_OF_FLOOD - 1 && lines > 100 && all <= LIMIT);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(PRINTF_FIFO_SIZE, 2 * LIMIT));
}

/* What was printed before a failed assertion, and the assertion, appear when the program learns
 * of it. */
static void printf_assert(void)
{
	CUmodule m = load();
	struct redirected out, err;

	redirect(&out, stdout);
	redirect(&err, stderr);
	launch(function(m, "tell"), NULL, 1);
	CHECK(cuLaunchKernel(function(m, "refuse"), 1, 1, 1, 2, 1, 1, 0, NULL, NULL, NULL));
	GIVES(CUDA_ERROR_ASSERT, cuCtxSynchronize());
	expect_written(&err, "a.cu:42: a.cu: block: [0,0,0], thread: [0,0,0] Assertion `n < 3` failed.\n"
			     "a.cu:42: a.cu: block: [0,0,0], thread: [1,0,0] Assertion `n < 3` failed.\n");
	expect_written(&out, "line 1\n");
}

/* A child's kernels print to the child's stdout. */
static void printf_forks(void)
{
	CUfunction tell = function(load(), "tell");
	struct redirected out;
	int status;
	pid_t child;

	redirect(&out, stdout);
	launch(tell, NULL, 1);
	CHECK(cuCtxSynchronize());
	launch(tell, NULL, 3); /* appears in this process later, not in the child */
	fflush(stdout);
	if ((child = fork()) == 0) {
		launch(function(load(), "tell"), NULL, 2);
		CHECK(cuCtxSynchronize());
		fflush(stdout);
		_exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	CHECK(cuCtxSynchronize());
	expect_written(&out, "line 1\nline 2\nline 3\n");
}

/* Prints lines from a number that the Go test gives, and waits for some. */
static void printf_lines(void)
{
	unsigned int first = number(getenv("PRINTF_FIRST"), 1);
	CUfunction tell = function(load(), "tell");

	for (unsigned int i = first; i < first + 200; i++) {
		launch(tell, NULL, i);
		if (i % 7 == 0)
			CHECK(cuCtxSynchronize());
	}
	CHECK(cuCtxSynchronize());
}

/* The Go test kills the worker when it reads "ready": what was printed before is not lost. */
static void printf_killed(void)
{
	CUfunction tell = function(load(), "tell");
	char line[8];

	launch(tell, NULL, 1);
	CHECK(cuCtxSynchronize());
	launch(tell, NULL, 2);
	puts("ready");
	fflush(stdout);
	EXPECT(fgets(line, sizeof line, stdin) != NULL);
	GIVES(CUDA_ERROR_DEVICE_UNAVAILABLE, cuCtxSynchronize());
	puts("end");
}

#define TELLERS 6u
#define LINES 200u

static CUcontext shared_context;
static CUfunction tell;

static void *teller(void *arg)
{
	unsigned int first = (unsigned int)(uintptr_t)arg * LINES;
	CUstream stream;

	CHECK(cuCtxPushCurrent(shared_context));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned int i = first; i < first + LINES; i++) {
		launch(tell, stream, i);
		if (i % 3 == 0)
			CHECK(cuStreamSynchronize(stream));
	}
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuStreamDestroy(stream));
	return NULL;
}

/* The lines that kernels of several threads print appear completely and exactly once. */
static void printf_threads(void)
{
	pthread_t threads[TELLERS];
	bool seen[TELLERS * LINES] = {false};
	unsigned int n, lines = 0;
	struct redirected out;
	char line[64];

	tell = function(load(), "tell");
	CHECK(cuCtxGetCurrent(&shared_context));
	redirect(&out, stdout);
	for (uintptr_t i = 0; i < TELLERS; i++)
		EXPECT(pthread_create(&threads[i], NULL, teller, (void *)i) == 0);
	for (unsigned int i = 0; i < TELLERS; i++)
		EXPECT(pthread_join(threads[i], NULL) == 0);
	CHECK(cuCtxDestroy(shared_context));
	restore(&out);
	while (fgets(line, sizeof line, out.file)) {
		EXPECT(strncmp(line, "line ", 5) == 0);
		line[strcspn(line, "\n")] = 0;
		n = line[5] == '0' ? 0 : number(line + 5, 0);
		EXPECT(n < TELLERS * LINES && !seen[n]);
		seen[n] = true;
		lines++;
	}
	EXPECT(lines == TELLERS * LINES);
}

const struct test printf_tests[] = {
	{"printf_order", printf_order}, {"printf_contexts", printf_contexts}, {"printf_flood", printf_flood}, {"printf_assert", printf_assert},
	{"printf_forks", printf_forks}, {"printf_lines", printf_lines}, {"printf_killed", printf_killed}, {"printf_threads", printf_threads}, {NULL, NULL},
};
