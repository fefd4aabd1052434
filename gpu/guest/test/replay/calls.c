/* Calls of modules, functions, launches, streams, events and graphs. */
#include "replay.h"

static CUmodule modules[64];
static CUlibrary libraries[64];
static CUkernel kernel;
static CUstream streams[16];
static CUevent events[64];
static CUgraph graph;
static CUgraphExec exec;
static unsigned int module_count, library_count, stream_count, event_count;
static struct {
	CUfunction fill, add;
} functions;

/* A kernel's work, which is also done in this process. */
static struct work {
	struct buffer *to, *a, *b; /* a is NULL if the kernel fills to */
	unsigned int value;
} captured;
static bool capturing;

void module_found(CUmodule m)
{
	EXPECT(m && module_count < sizeof modules / sizeof *modules);
	modules[module_count++] = m;
}

CUmodule module_now(void)
{
	EXPECT(module_count > 0);
	return modules[module_count - 1];
}

void function_found(const char *name, CUfunction f)
{
	EXPECT(f);
	if (strcmp(name, "fill") == 0)
		functions.fill = f;
	if (strcmp(name, "add") == 0)
		functions.add = f;
}

/* Returns the first stream and the default stream alternately. They wait for each other. */
CUstream stream_now(void)
{
	static unsigned int turn;

	return stream_count && turn++ % 2 == 0 ? streams[0] : NULL;
}

static CUresult get_address(void)
{
	return lookup_request();
}

/* Loads PTX or, with "fatbin", a fatbin without a wrapper, as cuFFT does. */
static CUresult load(void)
{
	CUmodule m = NULL;
	CUresult r = CALL(cuModuleLoadData, &m, strcmp(step.how, "fatbin") == 0 ? image_fatbin() : kernels);

	module_found(m);
	return r;
}

static CUlinkState linker;
static void *linked;

static CUresult link_create(void)
{
	return CALL(cuLinkCreate_v2, 0, NULL, NULL, &linker);
}

static CUresult link_add(void)
{
	return CALL(cuLinkAddData_v2, linker, CU_JIT_INPUT_PTX, (void *)(uintptr_t)kernels, strlen(kernels) + 1, "kernels", 0, NULL, NULL);
}

/* The image belongs to the linker, which is destroyed before the image is loaded. */
static CUresult link_complete(void)
{
	size_t size = 0;
	void *image = NULL;
	CUresult r = CALL(cuLinkComplete, linker, &image, &size);

	EXPECT(image && size && (linked = malloc(size)));
	memcpy(linked, image, size);
	return r;
}

static CUresult link_destroy(void)
{
	return CALL(cuLinkDestroy, linker);
}

static CUresult load_linked(void)
{
	CUmodule m = NULL;
	CUresult r = CALL(cuModuleLoadDataEx, &m, linked, 0, NULL, NULL);

	module_found(m);
	return r;
}

static CUresult unload(void)
{
	EXPECT(module_count > 0);
	return CALL(cuModuleUnload, modules[--module_count]);
}

static CUresult library_load(void)
{
	EXPECT(library_count < sizeof libraries / sizeof *libraries);
	CUresult r = CALL(cuLibraryLoadData, &libraries[library_count], image_wrapper(), NULL, NULL, 0, NULL, NULL, 0);

	EXPECT(libraries[library_count++]);
	return r;
}

static CUresult library_module(void)
{
	CUmodule m = NULL;

	EXPECT(library_count > 0);
	CUresult r = CALL(cuLibraryGetModule, &m, libraries[step.nth % library_count]);

	module_found(m);
	return r;
}

static CUresult library_kernel(void)
{
	EXPECT(library_count > 0);
	CUresult r = CALL(cuLibraryGetKernel, &kernel, libraries[step.nth % library_count], step.nth % 2 ? "fill" : "add");

	EXPECT(kernel);
	return r;
}

static CUresult library_unload(void)
{
	EXPECT(library_count > 0);
	return CALL(cuLibraryUnload, libraries[--library_count]);
}

static CUresult function(void)
{
	const char *name = step.nth % 2 ? "fill" : "add";
	CUfunction f = NULL;
	CUresult r = CALL(cuModuleGetFunction, &f, module_now(), name);

	function_found(name, f);
	return r;
}

/* Returns a function or, if there is one, in every second call a kernel of a library. */
static CUfunction any_function(void)
{
	CUfunction f = kernel && step.nth % 2 ? (CUfunction)(void *)kernel : functions.add;

	EXPECT(f || kernel);
	return f ? f : (CUfunction)(void *)kernel;
}

enum { MAX_THREADS_PER_BLOCK = 0, MAX_DYNAMIC_SHARED = 8, CARVEOUT = 9 };

static CUresult function_attribute(void)
{
	CUfunction_attribute a = (CUfunction_attribute)(step.nth % 10);
	int value = -77;
	CUresult r = CALL(cuFuncGetAttribute, &value, a, any_function());

	if (value == -77 || (a == MAX_THREADS_PER_BLOCK && value < 256))
		wrong("attribute %d is %d", a, value);
	return r;
}

static CUresult set_function_attribute(void)
{
	CUfunction_attribute a = step.nth % 2 ? CARVEOUT : MAX_DYNAMIC_SHARED;
	int value = (int)(step.nth % 50), got = -77;
	CUfunction f = any_function();
	CUresult r = CALL(cuFuncSetAttribute, f, a, value);

	ASIDE(cuFuncGetAttribute, &got, a, f);
	EXPECT(got == value);
	return r;
}

static CUresult occupancy(void)
{
	int blocks = 0;
	CUresult r = CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, any_function(), 128, 0);

	EXPECT(blocks > 0);
	return r;
}

static CUresult occupancy_flags(void)
{
	int blocks = 0;
	CUresult r = CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &blocks, any_function(), 128, 0, 0);

	EXPECT(blocks > 0);
	return r;
}

/* Chooses the next work: the addition of two buffers whose content is known, or, every other
 * time and as long as there are no two, filling a buffer. */
static struct work choose(void)
{
	unsigned int n = buffers_of(DEVICE);

	if (strcmp(step.how, "managed") == 0)
		return (struct work){.to = buffer_of(MANAGED, 0), .value = 1000};
	if (functions.fill && (step.nth % 2 || buffers_known() < 2))
		return (struct work){.to = buffer_of(DEVICE, step.nth), .value = 1000 * step.nth};
	return (struct work){.to = buffer_of(DEVICE, n - 1), .a = buffer_known(0), .b = buffer_known(1)};
}

static void work_here(const struct work *w)
{
	for (unsigned int i = 0; i < WORDS; i++)
		w->to->words[i] = w->a ? w->a->words[i] + w->b->words[i] : w->value + i;
	written(w->to);
}

static CUresult launch(void)
{
	struct work w = choose();
	unsigned int n = WORDS, blocks = (WORDS + 255) / 256;
	CUdeviceptr a = w.a ? w.a->at : 0, b = w.b ? w.b->at : 0;
	void *add[] = {&a, &b, &w.to->at, &n}, *fill[] = {&w.to->at, &w.value, &n};
	CUfunction f = w.a ? functions.add : functions.fill;
	CUstream s = capturing ? streams[0] : stream_now();

	EXPECT(f);
	if (capturing)
		captured = w;
	else
		work_here(&w);
	return CALL(cuLaunchKernel, f, blocks, 1, 1, 256, 1, 1, 0, s, w.a ? add : fill, NULL);
}

/* Launches one block, because a soft GPU cannot run more at a time. */
static CUresult launch_cooperative(void)
{
	struct buffer *b = last_written();
	unsigned int value = 77, n = 256;
	void *fill[] = {&b->at, &value, &n};

	EXPECT(functions.fill);
	for (unsigned int i = 0; i < n; i++)
		b->words[i] = value + i;
	return CALL(cuLaunchCooperativeKernel, functions.fill, 1, 1, 1, 256, 1, 1, 0, stream_now(), fill);
}

static CUresult stream_create(void)
{
	EXPECT(stream_count < sizeof streams / sizeof *streams);
	CUresult r = CALL(cuStreamCreate, &streams[stream_count], 0);

	EXPECT(streams[stream_count++]);
	return r;
}

static CUresult stream_destroy(void)
{
	EXPECT(stream_count > 0);
	return CALL(cuStreamDestroy_v2, streams[--stream_count]);
}

/* Synchronizes the stream of the oldest copy that was not waited for, or any stream. */
static CUresult stream_synchronize(void)
{
	CUstream s = NULL;

	if (!copies_waiting(&s) && stream_count)
		s = streams[step.nth % stream_count];
	CUresult r = CALL(cuStreamSynchronize, s);

	if (r == 0)
		copies_done(s, false);
	return r;
}

static CUresult stream_capturing(void)
{
	CUstreamCaptureStatus status = 77;
	CUresult r = CALL(cuStreamIsCapturing, stream_now(), &status);

	EXPECT(status == CU_STREAM_CAPTURE_STATUS_NONE);
	return r;
}

static CUresult event_create(void)
{
	EXPECT(event_count < sizeof events / sizeof *events);
	CUresult r = CALL(cuEventCreate, &events[event_count], 0);

	EXPECT(events[event_count++]);
	return r;
}

static CUresult event_destroy(void)
{
	EXPECT(event_count > 0);
	return CALL(cuEventDestroy_v2, events[--event_count]);
}

static CUresult event_record(void)
{
	EXPECT(event_count > 0);
	return CALL(cuEventRecord, events[step.nth % event_count], NULL);
}

static CUresult event_synchronize(void)
{
	EXPECT(event_count > 0);
	return CALL(cuEventSynchronize, events[event_count - 1]);
}

static CUresult event_elapsed(void)
{
	float ms = -1;

	EXPECT(event_count > 1);
	CUresult r = CALL(cuEventElapsedTime, &ms, events[0], events[event_count - 1]);

	EXPECT(ms >= 0);
	return r;
}

static CUresult capture_begin(void)
{
	EXPECT(stream_count > 0);
	capturing = true;
	return CALL(cuStreamBeginCapture_v2, streams[0], CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static CUresult capture_end(void)
{
	CUresult r = CALL(cuStreamEndCapture, streams[0], &graph);

	EXPECT(capturing && graph);
	capturing = false;
	return r;
}

static CUresult graph_instantiate(void)
{
	CUresult r = CALL(cuGraphInstantiateWithFlags, &exec, graph, 0);

	EXPECT(exec);
	return r;
}

static CUresult graph_launch(void)
{
	EXPECT(captured.to);
	work_here(&captured);
	return CALL(cuGraphLaunch, exec, streams[0]);
}

const struct call other_calls[] = {
	{"cuGetProcAddress", get_address}, {"cuModuleLoadData", load}, {"cuLinkCreate_v2", link_create}, {"cuLinkAddData_v2", link_add},
	{"cuLinkComplete", link_complete}, {"cuLinkDestroy", link_destroy}, {"cuModuleLoadDataEx", load_linked}, {"cuModuleUnload", unload},
	{"cuLibraryLoadData", library_load}, {"cuLibraryGetModule", library_module}, {"cuLibraryGetKernel", library_kernel},
	{"cuLibraryUnload", library_unload}, {"cuModuleGetFunction", function}, {"cuFuncGetAttribute", function_attribute},
	{"cuFuncSetAttribute", set_function_attribute}, {"cuOccupancyMaxActiveBlocksPerMultiprocessor", occupancy},
	{"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", occupancy_flags}, {"cuLaunchKernel", launch},
	{"cuLaunchCooperativeKernel", launch_cooperative}, {"cuStreamCreate", stream_create}, {"cuStreamDestroy_v2", stream_destroy},
	{"cuStreamSynchronize", stream_synchronize}, {"cuStreamIsCapturing", stream_capturing}, {"cuEventCreate", event_create},
	{"cuEventDestroy_v2", event_destroy}, {"cuEventRecord", event_record}, {"cuEventSynchronize", event_synchronize},
	{"cuEventElapsedTime", event_elapsed}, {"cuStreamBeginCapture_v2", capture_begin}, {"cuStreamEndCapture", capture_end},
	{"cuGraphInstantiateWithFlags", graph_instantiate}, {"cuGraphLaunch", graph_launch}, {NULL, NULL},
};
