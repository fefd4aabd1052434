/* Tests of the export tables, in the way in which NVIDIA's runtime library uses them. */
#include "api.h"

typedef void (*slot)(void);

/* Finds a table by the text form of its ID. */
static const slot *table(const char *text)
{
	const void *found;
	CUuuid id;

	for (int i = 0, at = 0; i < 16; i++, at += 2) {
		unsigned int byte;

		if (text[at] == '-')
			at++;
		EXPECT(sscanf(text + at, "%2x", &byte) == 1);
		id.bytes[i] = (char)byte;
	}
	return cuGetExportTable(&found, &id) == 0 ? found : NULL;
}

#define INTERFACE "6bd5fb6c-5bf4-e74a-8987-d93912fd9df9"
#define HOOKS "a094798c-2e74-2e74-93f2-0800200c0a66"
#define TLS "42d85a81-23f6-cb47-8298-f6e78a3aecdc"
#define STORAGE "c693336e-1121-df11-a8c3-68f355d89593"
#define CHECKS "263e8860-7cd2-6143-92f6-bbd5006dfa7e"
#define CONTEXT "21318c60-9714-3248-8ca6-41ff7324c8f2"
#define AUTHENTICITY "d4082055-bde6-704b-8d34-ba123c66e1f2"

static void export_tables(void)
{
	const slot *t = table(INTERFACE), *hooks = table(HOOKS), *tls = table(TLS), *checks = table(CHECKS);
	CUcontext primary, current;
	CUmodule m;
	CUfunction f;
	void *room = NULL;
	size_t size = 0;
	CUlogIterator from;
	char text[1024];
	size_t length = sizeof text;

	EXPECT(t && hooks && tls && checks && table(STORAGE));
	EXPECT((size_t)t[0] == 13 * sizeof *t && (size_t)hooks[0] == 0x38 && (size_t)tls[0] == 0x18 && (size_t)checks[0] == 0x28);
	EXPECT(!table("00000000-0000-0000-0000-000000000000"));
	(void)demo_start("count");
	CHECK(((CUresult (*)(CUcontext *, CUdevice))t[2])(&primary, 0));
	EXPECT(primary);
	CHECK(((CUresult (*)(CUmodule *, const void *))t[1])(&m, kernels_ptx));
	CHECK(cuModuleGetFunction(&f, m, "count"));
	CHECK(cuModuleUnload(m));
	CHECK(cuLogsCurrent(&from, 0));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, ((CUresult (*)(void))t[3])());
	CHECK(cuLogsDumpToMemory(&from, text, &length, 0));
	EXPECT(strstr(text, "slot 3 of a table was called"));
	((void (*)(void **, size_t *))hooks[2])(&room, &size);
	EXPECT(room && size);
	memset(room, 1, size);
	CHECK(((CUresult (*)(CUcontext *))tls[2])(&current));
	EXPECT(current == primary || current);
	GIVES(0, ((CUresult (*)(CUcontext, unsigned int *, const void **))checks[2])(current, NULL, NULL));
	CHECK(cuDevicePrimaryCtxRelease(0));
}

/* cuBLAS looks up the stream of a handle, and its identity. */
static void tools_streams(void)
{
	const slot *t = table(CONTEXT);
	CUresult (*identity)(CUcontext, CUstream, unsigned long long *) = (CUresult (*)(CUcontext, CUstream, unsigned long long *))t[39];
	CUresult (*behind)(CUcontext, CUstream, CUstream *, int) = (CUresult (*)(CUcontext, CUstream, CUstream *, int))t[51];
	unsigned long long legacy, own, id;
	CUstream s, inner;
	CUcontext c;

	EXPECT((size_t)t[0] == 86 * sizeof *t);
	CHECK(cuInit(0));
	CHECK(cuCtxCreate(&c, 0, 0));
	CHECK(cuStreamCreate(&s, 0));
	CHECK(behind(c, NULL, &inner, 0));
	CHECK(identity(c, inner, &legacy));
	CHECK(behind(c, CU_STREAM_LEGACY, &inner, 1));
	CHECK(identity(c, inner, &id));
	EXPECT(id == legacy);
	CHECK(behind(c, NULL, &inner, 1));
	CHECK(identity(c, inner, &own));
	EXPECT(own != legacy);
	CHECK(behind(c, s, &inner, 0));
	CHECK(identity(c, inner, &id));
	EXPECT(inner == s && id != legacy && id != own);
	GIVES(CUDA_ERROR_INVALID_VALUE, behind(c, s, NULL, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, identity(c, NULL, &id));
	CHECK(cuStreamDestroy(s));
	EXPECT(behind(c, s, &inner, 0) != 0 && behind(c, (CUstream)-1, &inner, 0) != 0);
}

static CUcontext told_context;
static void *told_key, *told_value;
static int told;

static void gone(CUcontext ctx, void *key, void *value)
{
	told_context = ctx;
	told_key = key;
	told_value = value;
	told++;
}

static void context_storage(void)
{
	const slot *t = table(STORAGE);
	CUresult (*put)(CUcontext, void *, void *, void (*)(CUcontext, void *, void *)) =
		(CUresult (*)(CUcontext, void *, void *, void (*)(CUcontext, void *, void *)))t[0];
	CUresult (*delete)(CUcontext, void *) = (CUresult (*)(CUcontext, void *))t[1];
	CUresult (*get)(void **, CUcontext, void *) = (CUresult (*)(void **, CUcontext, void *))t[2];
	CUcontext c;
	void *v = NULL;
	int a, b, x;

	CHECK(cuInit(0));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, put(NULL, &a, &x, NULL)); /* no context is current */
	CHECK(cuCtxCreate(&c, 0, 0));
	GIVES(CUDA_ERROR_INVALID_HANDLE, get(&v, NULL, &a));
	CHECK(put(NULL, &a, &x, gone));
	CHECK(put(c, &b, &b, NULL));
	CHECK(get(&v, (CUcontext)-1, &a));
	EXPECT(v == &x);
	CHECK(put(c, &a, &a, gone)); /* the same key again gets the new value */
	CHECK(get(&v, c, &a));
	EXPECT(v == &a);
	CHECK(delete(c, &b));
	GIVES(CUDA_ERROR_INVALID_HANDLE, delete(c, &b));
	GIVES(CUDA_ERROR_INVALID_HANDLE, get(&v, c, &b));
	EXPECT(told == 0);
	CHECK(cuCtxDestroy(c));
	EXPECT(told == 1 && told_context == c && told_key == &a && told_value == &a);
	GIVES(CUDA_ERROR_INVALID_CONTEXT, get(&v, c, &a));
}

static void interop_off(void)
{
	EXPECT(!table(AUTHENTICITY)); /* even before there is a session */
	CHECK(cuInit(0));
	EXPECT(!table(AUTHENTICITY) && !table(AUTHENTICITY));
}

static void *ask(void *result)
{
	const slot *t = table(AUTHENTICITY);

	CHECK(((CUresult (*)(unsigned int, unsigned long long, void *))t[1])(12042, 1, result));
	return NULL;
}

/* Whether the answers are correct can only be tested with the vendor's runtime (make
 * test-vendor). */
static void interop_on(void)
{
	unsigned char a[16], b[16], other[16];
	CUresult (*answer)(unsigned int, unsigned long long, void *);
	const slot *t;
	pthread_t thread;

	EXPECT(!table(AUTHENTICITY)); /* it is not known yet whether interop is on */
	CHECK(cuInit(0));
	EXPECT((t = table(AUTHENTICITY)) && table(AUTHENTICITY) == t && (size_t)t[0] == 3 * sizeof *t);
	answer = (CUresult (*)(unsigned int, unsigned long long, void *))t[1];
	GIVES(CUDA_ERROR_INVALID_VALUE, answer(12040, 1, NULL));
	CHECK(((CUresult (*)(int))t[2])(1));
	CHECK(answer(12040, 1, a));
	CHECK(answer(11080, 2, b));
	EXPECT(memcmp(a, b, sizeof a) == 0);
	CHECK(answer(12042, 1, a));
	CHECK(answer(12042, 1, b));
	EXPECT(memcmp(a, b, sizeof a) == 0);
	CHECK(answer(12042, 2, b));
	EXPECT(memcmp(a, b, sizeof a) != 0);
	CHECK(answer(12052, 1, b));
	EXPECT(memcmp(a, b, sizeof a) != 0);
	EXPECT(pthread_create(&thread, NULL, ask, other) == 0 && pthread_join(thread, NULL) == 0);
	EXPECT(memcmp(a, other, sizeof a) != 0);
}

/* The host's operator decides whether interop is on; the test reads it from INTEROP. */
static void interop(void)
{
	if (getenv("INTEROP"))
		interop_on();
	else
		interop_off();
}

const struct test export_table_tests[] = {{"interop", interop}, {"tools_streams", tools_streams}, {"export_tables", export_tables}, {"context_storage", context_storage}, {NULL, NULL}};
