/* The export tables. The one by which the runtime checks that the driver is NVIDIA's is requested
 * like the others, and must be refused. */
#include "replay.h"

typedef void (*slot)(void);

static struct table {
	const char *name, *id;
	const slot *slots;
} tables[] = {
	{"CUDART_INTERFACE", "6bd5fb6c-5bf4-e74a-8987-d93912fd9df9", NULL},
	{"TOOLS_RT_CB_HOOKS", "a094798c-2e74-2e74-93f2-0800200c0a66", NULL},
	{"TOOLS_TLS", "42d85a81-23f6-cb47-8298-f6e78a3aecdc", NULL},
	{"CTX_LOCAL_STORAGE", "c693336e-1121-df11-a8c3-68f355d89593", NULL},
	{"CONTEXT_CHECKS", "263e8860-7cd2-6143-92f6-bbd5006dfa7e", NULL},
	{"TOOLS_CONTEXT", "21318c60-9714-3248-8ca6-41ff7324c8f2", NULL},
	{"TOOLS_MODULE", "6e163fbe-b958-444d-835c-e182aff1991e", NULL},
	{"INTEGRITY_CHECK", "d4082055-bde6-704b-8d34-ba123c66e1f2", NULL},
};

static bool refused(const struct table *t)
{
	return strcmp(t->name, "INTEGRITY_CHECK") == 0;
}

static struct table *table_of(const char *name)
{
	size_t length = strcspn(name, "[");

	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		if (strncmp(tables[i].name, name, length) == 0 && !tables[i].name[length])
			return &tables[i];
	wrong("no table is called %s", name);
}

static CUresult export_table(void)
{
	struct table *t = table_of(step.how);
	const void *slots = NULL;
	CUuuid id;

	for (int i = 0, at = 0; i < 16; i++, at += 2) {
		unsigned int byte;

		at += t->id[at] == '-';
		EXPECT(sscanf(t->id + at, "%2x", &byte) == 1);
		id.bytes[i] = (char)byte;
	}
	CUresult r = CALL(cuGetExportTable, &slots, &id);

	if (refused(t))
		step.want = CUDA_ERROR_NOT_FOUND;
	EXPECT(refused(t) == !slots && (!t->slots || t->slots == slots));
	t->slots = slots;
	return r;
}

/* Returns the function in this step's table and slot. */
static slot function(void)
{
	const struct table *t = table_of(step.name);

	if (!t->slots)
		wrong("this table has not been asked for");
	return t->slots[atoi(strchr(step.name, '[') + 1)];
}

static CUresult retain(void)
{
	CUcontext c = NULL;
	CUresult r = ((CUresult(*)(CUcontext *, CUdevice))function())(&c, 0);

	primary_retained(c);
	return r;
}

static CUresult room(void)
{
	void *buffer = NULL;
	size_t size = 0;

	((void (*)(void **, size_t *))function())(&buffer, &size);
	EXPECT(buffer && size);
	return 0;
}

static CUresult check(void)
{
	unsigned int flags = 77;
	const void *why = &why;
	CUresult r = ((CUresult(*)(CUcontext, unsigned int *, const void **))function())(context_primary(), &flags, &why);

	EXPECT(flags == 0 && !why);
	return r;
}

static CUresult check_none(void)
{
	return (CUresult)((unsigned int (*)(void))function())();
}

/* The table must have been refused, so that the runtime cannot call it. */
static CUresult proof(void)
{
	EXPECT(!table_of(step.name)->slots);
	return 0;
}

static void *stored;
static char key;

static CUresult storage_put(void)
{
	stored = &stored;
	return ((CUresult(*)(CUcontext, void *, void *, void *))function())(context_primary(), &key, stored, NULL);
}

static CUresult storage_delete(void)
{
	if (!stored)
		step.want = CUDA_ERROR_INVALID_HANDLE;
	stored = NULL;
	return ((CUresult(*)(CUcontext, void *))function())(context_primary(), &key);
}

static CUresult storage_get(void)
{
	void *value = NULL;
	CUresult r = ((CUresult(*)(void **, CUcontext, void *))function())(&value, context_primary(), &key);

	if (!stored)
		step.want = CUDA_ERROR_INVALID_HANDLE;
	EXPECT(value == stored);
	return r;
}

static CUresult tools_current(void)
{
	CUcontext c = NULL;
	CUresult r = ((CUresult(*)(CUcontext *))function())(&c);

	EXPECT(c == context_now());
	return r;
}

static CUresult tools_context(void)
{
	unsigned long long id = 0, same = 0;
	CUresult r = ((CUresult(*)(CUcontext, unsigned long long *))function())(context_now(), &id);

	ASIDE(cuCtxGetId, context_now(), &same);
	EXPECT(id == same);
	return r;
}

static void tell(void *told, CUfunction f)
{
	const char *name = NULL;

	ASIDE(cuFuncGetName, &name, f);
	function_found(name, f);
	++*(int *)told;
}

static CUresult tools_module(void)
{
	int told = 0;
	int (*each)(CUcontext, CUmodule, void (*)(void *, CUfunction), void *) =
		(int (*)(CUcontext, CUmodule, void (*)(void *, CUfunction), void *))function();

	EXPECT(each(context_now(), module_now(), tell, &told) == 1);
	EXPECT(told == 2); /* the number of kernels in the image */
	return 0;
}

const struct call table_calls[] = {
	{"cuGetExportTable", export_table}, {"CUDART_INTERFACE[2]", retain}, {"TOOLS_RT_CB_HOOKS[2]", room}, {"TOOLS_RT_CB_HOOKS[6]", room},
	{"CONTEXT_CHECKS[2]", check}, {"CONTEXT_CHECKS[3]", check_none}, {"INTEGRITY_CHECK[1]", proof},
	{"CTX_LOCAL_STORAGE[0]", storage_put}, {"CTX_LOCAL_STORAGE[1]", storage_delete}, {"CTX_LOCAL_STORAGE[2]", storage_get},
	{"TOOLS_TLS[2]", tools_current}, {"TOOLS_CONTEXT[4]", tools_context}, {"TOOLS_MODULE[7]", tools_module}, {NULL, NULL},
};
