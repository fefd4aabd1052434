/* Tests of the settings of core dumps. */
#include <stdlib.h>

#include "api.h"

static bool yes(bool global, int attrib)
{
	size_t size = sizeof(bool);
	bool value = true;

	CHECK(global ? cuCoredumpGetAttributeGlobal(attrib, &value, &size) : cuCoredumpGetAttribute(attrib, &value, &size));
	return value;
}

static CUresult say(bool global, int attrib, bool value)
{
	size_t size = sizeof value;

	return global ? cuCoredumpSetAttributeGlobal(attrib, &value, &size) : cuCoredumpSetAttribute(attrib, &value, &size);
}

static void expect_text(bool global, int attrib, const char *want)
{
	char got[1024] = "";
	size_t size = sizeof got;

	CHECK(global ? cuCoredumpGetAttributeGlobal(attrib, got, &size) : cuCoredumpGetAttribute(attrib, got, &size));
	if (strcmp(got, want) != 0)
		fprintf(stderr, "attribute %d is %s, want %s\n", attrib, got, want);
	EXPECT(strcmp(got, want) == 0);
}

/* Settings apply to the program or to one context, and none enables dumps. */
static void coredump_settings(void)
{
	char file[1024], host[256] = "", wrong[1100];
	CUcontext a, b, popped;
	size_t size = 77;
	int flags = -1;

	CHECK(cuInit(0));
	unsetenv("CUDA_COREDUMP_FILE");
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCoredumpGetAttribute(CU_COREDUMP_FILE, NULL, &size));
	CHECK(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, NULL, &size));
	EXPECT(size == 1024);
	CHECK(cuCoredumpSetAttributeGlobal(CU_COREDUMP_TRIGGER_HOST, NULL, &size));
	EXPECT(size == sizeof(bool));
	CHECK(cuCtxCreate(&a, 0, 0));
	CHECK(cuCtxCreate(&b, 0, 0));
	EXPECT(!yes(true, CU_COREDUMP_ENABLE_ON_EXCEPTION) && yes(true, CU_COREDUMP_TRIGGER_HOST) && !yes(true, CU_COREDUMP_LIGHTWEIGHT) &&
	       !yes(true, CU_COREDUMP_ENABLE_USER_TRIGGER) && yes(false, CU_COREDUMP_TRIGGER_HOST));
	EXPECT(gethostname(host, sizeof host - 1) == 0);
	snprintf(file, sizeof file, "core.cuda.%s.%d", host, (int)getpid());
	expect_text(true, CU_COREDUMP_FILE, file);
	snprintf(file, sizeof file, "corepipe.cuda.%s.%d", host, (int)getpid());
	expect_text(false, CU_COREDUMP_PIPE, file);

	CHECK(say(true, CU_COREDUMP_LIGHTWEIGHT, true)); /* a context has the program's setting … */
	EXPECT(yes(false, CU_COREDUMP_LIGHTWEIGHT));
	CHECK(say(false, CU_COREDUMP_LIGHTWEIGHT, false)); /* … until its own is set */
	EXPECT(!yes(false, CU_COREDUMP_LIGHTWEIGHT) && yes(true, CU_COREDUMP_LIGHTWEIGHT));
	size = 6;
	CHECK(cuCoredumpSetAttribute(CU_COREDUMP_FILE, "/tmp/b", &size));
	expect_text(false, CU_COREDUMP_FILE, "/tmp/b");
	CHECK(say(false, CU_COREDUMP_TRIGGER_HOST, false));
	CHECK(cuCtxPopCurrent(&popped));
	EXPECT(popped == b && yes(false, CU_COREDUMP_LIGHTWEIGHT) && yes(false, CU_COREDUMP_TRIGGER_HOST));
	size = 7;
	CHECK(cuCoredumpSetAttributeGlobal(CU_COREDUMP_FILE, "/tmp/all", &size)); /* only size bytes of it */
	expect_text(false, CU_COREDUMP_FILE, "/tmp/al");
	CHECK(cuCoredumpSetAttributeGlobal(CU_COREDUMP_PIPE, "pipe", &(size_t){5}));
	expect_text(false, CU_COREDUMP_PIPE, "pipe");
	size = sizeof flags;
	CHECK(cuCoredumpGetAttribute(CU_COREDUMP_GENERATION_FLAGS, &flags, &size));
	EXPECT(flags == CU_COREDUMP_DEFAULT_FLAGS);
	flags = CU_COREDUMP_LIGHTWEIGHT_FLAGS | CU_COREDUMP_SKIP_ABORT;
	CHECK(cuCoredumpSetAttribute(CU_COREDUMP_GENERATION_FLAGS, &flags, &size));
	flags = 0;
	CHECK(cuCoredumpGetAttribute(CU_COREDUMP_GENERATION_FLAGS, &flags, &size));
	EXPECT(flags == (CU_COREDUMP_LIGHTWEIGHT_FLAGS | CU_COREDUMP_SKIP_ABORT));

	CHECK(say(false, CU_COREDUMP_ENABLE_ON_EXCEPTION, false));
	GIVES(CUDA_ERROR_NOT_PERMITTED, say(false, CU_COREDUMP_ENABLE_ON_EXCEPTION, true));
	GIVES(CUDA_ERROR_NOT_PERMITTED, say(true, CU_COREDUMP_ENABLE_ON_EXCEPTION, true));
	GIVES(CUDA_ERROR_NOT_PERMITTED, say(true, CU_COREDUMP_ENABLE_USER_TRIGGER, true));
	GIVES(CUDA_ERROR_NOT_PERMITTED, say(false, CU_COREDUMP_ENABLE_USER_TRIGGER, false)); /* not allowed for contexts */
	GIVES(CUDA_ERROR_NOT_PERMITTED, cuCoredumpSetAttribute(CU_COREDUMP_PIPE, "pipe", &(size_t){5}));
	EXPECT(!yes(false, CU_COREDUMP_ENABLE_ON_EXCEPTION));

	GIVES(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute(0, file, &size));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute(8, file, &size));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute(CU_COREDUMP_FILE, file, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute(CU_COREDUMP_FILE, file, &(size_t){7})); /* the NUL does not fit */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute(CU_COREDUMP_GENERATION_FLAGS, file, &(size_t){3}));
	memset(wrong, 'x', sizeof wrong);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuCoredumpSetAttribute(CU_COREDUMP_FILE, wrong, &(size_t){sizeof wrong}));
	flags = 1 << 20;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuCoredumpSetAttribute(CU_COREDUMP_GENERATION_FLAGS, &flags, &size));

	EXPECT(setenv("CUDA_COREDUMP_FILE", "/tmp/environment", 1) == 0); /* which has precedence */
	expect_text(false, CU_COREDUMP_FILE, "/tmp/environment");
	GIVES(CUDA_ERROR_NOT_PERMITTED, cuCoredumpSetAttribute(CU_COREDUMP_FILE, "/tmp/b", &(size_t){6}));
}

const struct test coredump_tests[] = {{"coredump_settings", coredump_settings}, {0}};
