/* Tests of memory and events that two processes share. The other process is a child, which is
 * created before this process uses the library. */
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "api.h"

#undef cuIpcOpenMemHandle /* the first version of the function is tested too */

enum { PEER = 1 /* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS */ };
enum { SHAREABLE = 1 << 20 }; /* a physical GPU does not share smaller allocations */

static int other = -1; /* a socket to the other process */
static pid_t child;

static void say(const void *what, size_t n)
{
	EXPECT(send(other, what, n, MSG_NOSIGNAL) == (ssize_t)n);
}

static void hear(void *what, size_t n)
{
	EXPECT(recv(other, what, n, MSG_WAITALL) == (ssize_t)n);
}

/* Waits until the other process calls it too. */
static void meet(void)
{
	char c = 'm';

	say(&c, 1);
	hear(&c, 1);
	EXPECT(c == 'm');
}

static void apart(void (*run)(void))
{
	pid_t parent = getpid();
	int ends[2];

	EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	child = fork();
	EXPECT(child >= 0);
	other = ends[child == 0];
	(void)close(ends[child != 0]);
	if (child == 0) {
		EXPECT(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0); /* so that it ends with this test */
		if (getppid() != parent)
			_exit(1);
		run();
		_exit(0);
	}
}

static void together(void)
{
	int status;

	EXPECT(waitpid(child, &status, 0) == child);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static CUipcMemHandle export(CUdeviceptr p)
{
	CUipcMemHandle h;

	CHECK(cuIpcGetMemHandle(&h, p));
	return h;
}

static CUdeviceptr opened(void)
{
	CUipcMemHandle h;
	CUdeviceptr p;

	hear(&h, sizeof h);
	CHECK(cuIpcOpenMemHandle_v2(&p, h, PEER));
	return p;
}

static bool all_are(CUdeviceptr p, size_t n, unsigned char value)
{
	unsigned char *b = malloc(n);
	bool are = true;

	CHECK(cuMemcpyDtoH(b, p, n));
	for (size_t i = 0; i < n; i++)
		are = are && b[i] == value;
	free(b);
	return are;
}

enum { SIZE = 3 * 1000 * 1000 + 1, ROUNDS = 20000 };

/* The other process reads what was written before and after it opened the memory, and writes
 * by a copy and by a kernel. */
static void borrow(void)
{
	CUfunction count = demo_start("count");
	unsigned int rounds = 10;
	CUdeviceptr base, p = opened(), again;
	CUipcMemHandle h;
	size_t size;
	unsigned char legacy = 1;
	void *params[] = {&p, &rounds};

	EXPECT(all_are(p, SIZE, 7));
	CHECK(cuMemGetAddressRange(&base, &size, p + SIZE - 1));
	EXPECT(base == p && size == SIZE);
	CHECK(cuPointerGetAttribute(&legacy, 10, p));
	EXPECT(legacy == 0); /* memory of another process cannot be shared again */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&h, p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(p, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(p + 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(p + SIZE - 1, 0, 2));
	meet();
	meet(); /* it has written 9 */
	EXPECT(all_are(p, SIZE, 9));
	CHECK(cuMemsetD8(p, 0, SIZE));
	CHECK(cuLaunchKernel(count, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	CHECK(cuCtxSynchronize());
	meet();
	hear(&h, sizeof h); /* open it a second time, which is counted */
	CHECK(cuIpcOpenMemHandle_v2(&again, h, PEER));
	EXPECT(again == p);
	CHECK(cuIpcCloseMemHandle(p));
	CHECK(cuMemsetD8(p, 1, SIZE));
	CHECK(cuCtxSynchronize());
	CHECK(cuIpcCloseMemHandle(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(p, 1, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(p));
	meet();
	EXPECT(opened() != 0); /* the process ends while the memory is open */
	meet();
}

static void ipc_memory(void)
{
	CUipcMemHandle h, same;
	CUdeviceptr p;
	unsigned int got = 0;

	apart(borrow);
	(void)demo_start("vecadd");
	CHECK(cuMemAlloc(&p, SIZE));
	CHECK(cuMemsetD8(p, 7, SIZE));
	CHECK(cuCtxSynchronize()); /* streams of the other process do not wait for it */
	h = export(p);
	same = export(p + SIZE / 2);
	EXPECT(memcmp(&h, &same, sizeof h) == 0);
	say(&h, sizeof h);
	meet();
	CHECK(cuMemsetD8(p, 9, SIZE));
	CHECK(cuCtxSynchronize());
	meet();
	meet();
	CHECK(cuMemcpyDtoH(&got, p, sizeof got));
	EXPECT(got == 32 * 10);
	say(&h, sizeof h);
	meet();
	EXPECT(all_are(p, SIZE, 1));
	say(&h, sizeof h);
	meet();
	together();
	EXPECT(all_are(p, SIZE, 1));
	CHECK(cuMemFree(p));
}

/* Memory that cannot be shared, and invalid handles. */
static void refuse(void)
{
	CUipcMemHandle h;
	CUdeviceptr p;

	(void)demo_start("vecadd");
	hear(&h, sizeof h);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle_v2(&p, h, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle_v2(NULL, h, PEER));
	for (size_t i = 0; i < sizeof h; i += 5) { /* a guess */
		CUipcMemHandle guess = h;

		guess.reserved[i] ^= 1;
		GIVES(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenMemHandle_v2(&p, guess, PEER));
	}
	CHECK(cuIpcOpenMemHandle_v2(&p, h, PEER));
	CHECK(cuIpcCloseMemHandle(p));
	meet();
	meet(); /* it has freed it */
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenMemHandle_v2(&p, h, PEER));
}

static void ipc_refused(void)
{
	CUipcMemHandle h;
	CUdeviceptr p, q, pooled;
	size_t left, all;
	void *host;

	apart(refuse);
	(void)demo_start("vecadd");
	CHECK(cuMemAlloc(&p, SHAREABLE));
	CHECK(cuMemAllocAsync(&pooled, 100, NULL));
	CHECK(cuMemHostAlloc(&host, 100, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(NULL, p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&h, pooled));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&h, (CUdeviceptr)(uintptr_t)host));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&h, (CUdeviceptr)(uintptr_t)&h));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(p));
	h = export(p);
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&q, h, PEER));
	say(&h, sizeof h);
	meet();
	CHECK(cuMemFree(p));
	CHECK(cuMemGetInfo(&left, &all)); /* this asks gpud, which has received the message about the free before */
	meet();
	together();
}

/* Memory is counted once, as long as one of the processes has it. */
static void hold(void)
{
	CUdeviceptr p;

	meet();
	(void)demo_start("vecadd");
	meet();
	p = opened();
	meet();
	meet(); /* it has freed it */
	EXPECT(all_are(p, SIZE, 5));
	CHECK(cuMemsetD8(p, 6, SIZE));
	CHECK(cuCtxSynchronize());
	meet();
	CHECK(cuIpcCloseMemHandle(p));
	meet();
	p = opened();
	meet();
	meet(); /* its context is destroyed */
	EXPECT(all_are(p, SIZE, 8));
	meet();
}

static void ipc_counts_once(void)
{
	enum { COUNTED = (SIZE + 511) & ~511 };
	CUcontext context;
	CUipcMemHandle h;
	CUdeviceptr p;
	size_t before;

	apart(hold);
	(void)start_alone("vecadd");
	meet();
	meet(); /* it has loaded its module */
	CHECK(cuMemAlloc(&p, SIZE));
	CHECK(cuMemsetD8(p, 5, SIZE));
	before = free_bytes();
	h = export(p);
	EXPECT(free_bytes() == before);
	say(&h, sizeof h);
	meet();
	EXPECT(free_bytes() == before);
	CHECK(cuMemFree(p));
	EXPECT(free_bytes() == before);
	CHECK(cuMemAlloc(&p, SIZE)); /* other memory */
	EXPECT(free_bytes() == before - COUNTED);
	CHECK(cuMemFree(p));
	meet();
	meet();
	meet();
	EXPECT(free_bytes() == before + COUNTED);
	CHECK(cuCtxCreate(&context, 0, 0));
	CHECK(cuMemAlloc(&p, SIZE));
	CHECK(cuMemsetD8(p, 8, SIZE));
	CHECK(cuCtxSynchronize());
	h = export(p);
	say(&h, sizeof h);
	meet();
	CHECK(cuCtxDestroy(context));
	EXPECT(free_bytes() == before);
	meet();
	meet();
	together();
	for (int i = 0; i < 1000 && free_bytes() < before + COUNTED; i++)
		usleep(10000);
	EXPECT(free_bytes() >= before + COUNTED);
}

/* A process that shares its memory is killed, and the other continues. Then the other one is
 * killed. */
static void die(void)
{
	CUipcMemHandle h;
	CUdeviceptr p;

	meet();
	(void)demo_start("vecadd");
	CHECK(cuMemAlloc(&p, SIZE));
	CHECK(cuMemsetD8(p, 3, SIZE));
	CHECK(cuCtxSynchronize());
	h = export(p);
	say(&h, sizeof h);
	(void)opened();
	meet();
	(void)pause();
}

static void ipc_killed(void)
{
	CUipcMemHandle h, mine;
	CUdeviceptr p, q;
	CUcontext context;
	size_t size = SIZE, total, free;
	int status;

	apart(die);
	CHECK(cuInit(0));
	CHECK(cuCtxCreate(&context, 0, 0));
	alone();
	meet();
	hear(&h, sizeof h);
	CHECK(cuIpcOpenMemHandle(&p, h, PEER));
	CHECK(cuMemAlloc(&q, SIZE));
	CHECK(cuMemsetD8(q, 4, SIZE));
	mine = export(q);
	say(&mine, sizeof mine);
	meet();
	EXPECT(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
	EXPECT(all_are(p, SIZE, 3));
	EXPECT(all_are(q, SIZE, 4));
	do { /* wait until its module is unloaded */
		CHECK(cuMemGetInfo(&free, &total));
	} while (total - free > 2 * ((size + 511) & ~(size_t)511));
	EXPECT(total - free == 2 * ((size + 511) & ~(size_t)511));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenMemHandle_v2(&q, (CUipcMemHandle){{1}}, PEER));
	CHECK(cuIpcCloseMemHandle(p));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenMemHandle_v2(&p, h, PEER));
	CHECK(cuMemFree(q));
	CHECK(cuMemGetInfo(&free, &total));
	EXPECT(free == total);
}

/* Memory is shared while a kernel writes to it. */
static void watch(void)
{
	unsigned int got;
	CUdeviceptr p;

	(void)demo_start("vecadd");
	p = opened();
	meet(); /* the kernel has ended */
	CHECK(cuMemcpyDtoH(&got, p, sizeof got));
	EXPECT(got == 256u * ROUNDS);
}

static void ipc_while_it_runs(void)
{
	CUfunction count;
	unsigned int rounds = ROUNDS;
	CUdeviceptr p;
	CUipcMemHandle h;
	void *params[] = {&p, &rounds};

	apart(watch);
	count = demo_start("count");
	CHECK(cuMemAlloc(&p, SHAREABLE));
	CHECK(cuMemsetD32(p, 0, 1));
	CHECK(cuLaunchKernel(count, 1, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
	h = export(p);
	say(&h, sizeof h);
	CHECK(cuCtxSynchronize());
	meet();
	together();
}

/* Streams and threads of one process wait for records of the other. */
static void wait_for_it(void)
{
	CUfunction count = demo_start("count");
	unsigned int rounds = ROUNDS, got = 0;
	CUdeviceptr p = opened();
	CUipcEventHandle h;
	CUstream s;
	CUevent e;
	void *params[] = {&p, &rounds};
	float ms;

	hear(&h, sizeof h);
	CHECK(cuIpcOpenEventHandle(&e, h));
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamWaitEvent(s, e, 0));
	CHECK(cuMemcpyDtoHAsync(&got, p, sizeof got, s));
	CHECK(cuStreamSynchronize(s));
	EXPECT(got == 256u * ROUNDS);
	CHECK(cuEventQuery(e));
	CHECK(cuEventSynchronize(e));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, e, e));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&h, e));
	for (int i = 1; i <= 20; i++) { /* each in turn */
		CHECK(cuLaunchKernel(count, 1, 1, 1, 32, 1, 1, 0, s, params, NULL));
		CHECK(cuEventRecord(e, s));
		meet();
		meet();
		CHECK(cuStreamWaitEvent(s, e, 0));
	}
	CHECK(cuStreamSynchronize(s));
	CHECK(cuMemcpyDtoH(&got, p, sizeof got));
	EXPECT(got == 256u * ROUNDS + 2 * 20 * 32u * ROUNDS);
	CHECK(cuEventDestroy(e));
	CHECK(cuIpcCloseMemHandle(p));
}

static void ipc_events(void)
{
	CUfunction count;
	unsigned int rounds = ROUNDS, got;
	CUdeviceptr p;
	CUipcMemHandle memory;
	CUipcEventHandle h, wrong;
	CUevent e, f;
	void *params[] = {&p, &rounds};

	apart(wait_for_it);
	count = demo_start("count");
	GIVES(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&e, CU_EVENT_INTERPROCESS));
	CHECK(cuEventCreate(&f, CU_EVENT_DISABLE_TIMING));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&h, f));
	CHECK(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuIpcGetEventHandle(NULL, e));
	CHECK(cuMemAlloc(&p, SHAREABLE));
	CHECK(cuMemsetD32(p, 0, 1));
	memory = export(p);
	CHECK(cuLaunchKernel(count, 1, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
	CHECK(cuEventRecord(e, NULL)); /* before it is exported */
	CHECK(cuIpcGetEventHandle(&h, e));
	CHECK(cuIpcGetEventHandle(&wrong, e));
	EXPECT(memcmp(&h, &wrong, sizeof h) == 0);
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenEventHandle(&f, h));
	memcpy(&wrong, &memory, sizeof wrong);
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenEventHandle(&f, wrong));
	say(&memory, sizeof memory);
	say(&h, sizeof h);
	for (int i = 1; i <= 20; i++) {
		meet();
		CHECK(cuStreamWaitEvent(NULL, e, 0));
		CHECK(cuMemcpyDtoHAsync(&got, p, sizeof got, NULL));
		CHECK(cuLaunchKernel(count, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
		CHECK(cuEventRecord(e, NULL));
		meet();
		CHECK(cuEventSynchronize(e));
		EXPECT(got == 256u * ROUNDS + (2 * (unsigned int)i - 1) * 32u * ROUNDS);
	}
	together();
	CHECK(cuEventRecord(e, NULL));
	CHECK(cuEventSynchronize(e));
	CHECK(cuEventDestroy(e));
}

/* A wait for a record of a killed process ends. */
static void record_and_die(void)
{
	CUfunction count = demo_start("count");
	unsigned int rounds = 1u << 31;
	CUipcEventHandle h;
	CUdeviceptr p;
	CUevent e;
	void *params[] = {&p, &rounds};

	hear(&h, sizeof h);
	CHECK(cuIpcOpenEventHandle(&e, h));
	CHECK(cuMemAlloc(&p, SHAREABLE));
	CHECK(cuLaunchKernel(count, 1, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
	CHECK(cuEventRecord(e, NULL));
	meet();
	(void)pause();
}

static void ipc_event_killed(void)
{
	CUipcEventHandle h;
	CUevent e;
	int status;

	apart(record_and_die);
	(void)demo_start("count");
	CHECK(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	CHECK(cuIpcGetEventHandle(&h, e));
	say(&h, sizeof h);
	meet();
	GIVES(CUDA_ERROR_NOT_READY, cuEventQuery(e));
	CHECK(cuStreamWaitEvent(NULL, e, 0));
	EXPECT(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
	CHECK(cuEventSynchronize(e));
	CHECK(cuStreamSynchronize(NULL));
	CHECK(cuEventQuery(e));
}

/* Sends a descriptor to the other process. */
static void send_descriptor(int fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	char c = 'd';
	struct iovec one = {&c, 1};
	struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};

	*CMSG_FIRSTHDR(&m) = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof fd);
	EXPECT(sendmsg(other, &m, 0) == 1);
}

static int get_descriptor(void)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	char c;
	struct iovec one = {&c, 1};
	struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
	int fd;

	EXPECT(recvmsg(other, &m, 0) == 1 && CMSG_FIRSTHDR(&m));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	return fd;
}

enum { GRANULE = 2 << 20, DESCRIPTOR = 1 /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */ };

static void show(CUdeviceptr p, size_t size, CUmemGenericAllocationHandle h)
{
	static const CUmemAccessDesc all = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, 3};

	CHECK(cuMemMap(p, size, 0, h, 0));
	CHECK(cuMemSetAccess(p, size, &all, 1));
}

/* Mapped memory of the other process: its pieces at two places. */
static void map_theirs(void)
{
	CUmemGenericAllocationHandle h, same;
	CUmemAllocationProp prop;
	CUdeviceptr p;
	int fd;

	meet();
	(void)demo_start("poke");
	meet();
	fd = get_descriptor();
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemImportFromShareableHandle(&h, (void *)(intptr_t)other, DESCRIPTOR));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemImportFromShareableHandle(&h, (void *)(intptr_t)-1, DESCRIPTOR));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd, 2));
	CHECK(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd, DESCRIPTOR));
	CHECK(cuMemImportFromShareableHandle(&same, (void *)(intptr_t)fd, DESCRIPTOR));
	(void)close(fd);
	CHECK(cuMemGetAllocationPropertiesFromHandle(&prop, h));
	EXPECT(prop.requestedHandleTypes == DESCRIPTOR);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, h, DESCRIPTOR, 0));
	CHECK(cuMemAddressReserve(&p, 5 * GRANULE, 0, 0, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(p, 3 * GRANULE, 0, h, 0));
	show(p, 2 * GRANULE, h);
	show(p + 3 * GRANULE, 2 * GRANULE, same);
	EXPECT(all_are(p, 2 * GRANULE, 7) && all_are(p + 3 * GRANULE, GRANULE, 7));
	CHECK(cuMemsetD8(p, 8, 2 * GRANULE));
	CHECK(cuCtxSynchronize());
	meet();
	meet(); /* it has released all */
	EXPECT(all_are(p + 3 * GRANULE, GRANULE, 8));
	CHECK(cuMemUnmap(p, 2 * GRANULE));
	CHECK(cuMemRelease(h));
	EXPECT(all_are(p + 3 * GRANULE, GRANULE, 8));
	CHECK(cuMemUnmap(p + 3 * GRANULE, 2 * GRANULE));
	CHECK(cuMemRelease(same));
	meet();
}

static void ipc_mapped(void)
{
	static const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = DESCRIPTOR, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	static const CUmemAllocationProp own = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle h, private;
	CUdeviceptr p;
	size_t before;
	int fd;

	apart(map_theirs);
	(void)start_alone("poke");
	meet();
	meet(); /* it has loaded its module */
	CHECK(cuMemCreate(&h, 2 * GRANULE, &prop, 0));
	CHECK(cuMemCreate(&private, GRANULE, &own, 0));
	CHECK(cuMemAddressReserve(&p, 5 * GRANULE, 0, 0, 0));
	show(p, 2 * GRANULE, h);
	show(p + 2 * GRANULE, 2 * GRANULE, h);
	CHECK(cuMemsetD8(p, 7, 2 * GRANULE));
	CHECK(cuCtxSynchronize());
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, private, DESCRIPTOR, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, h, 2, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(NULL, h, DESCRIPTOR, 0));
	CHECK(cuMemRelease(private));
	before = free_bytes();
	CHECK(cuMemExportToShareableHandle(&fd, h, DESCRIPTOR, 0));
	EXPECT(free_bytes() == before);
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemImportFromShareableHandle(&private, (void *)(intptr_t)fd, DESCRIPTOR)); /* its own memory */
	send_descriptor(fd);
	(void)close(fd);
	meet();
	EXPECT(all_are(p, 4 * GRANULE, 8)); /* at both of its places */
	CHECK(cuMemUnmap(p, 4 * GRANULE));
	show(p + GRANULE, 2 * GRANULE, h); /* a new handle */
	EXPECT(all_are(p + GRANULE, 2 * GRANULE, 8));
	CHECK(cuMemUnmap(p + GRANULE, 2 * GRANULE));
	CHECK(cuMemRelease(h));
	meet();
	meet();
	together();
}

/* External memory that another process has exported: two buffers of it, and invalid ones. */
static void import_theirs(void)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC d = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .size = 2 * GRANULE};
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC all = {.size = 2 * GRANULE}, some = {.offset = GRANULE + 256, .size = 512}, beyond = {.offset = GRANULE, .size = GRANULE + 1};
	CUexternalMemory e, none;
	CUdeviceptr p, q;

	meet();
	(void)demo_start("poke");
	meet();
	d.handle.fd = other;
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuImportExternalMemory(&none, &d)); /* a socket */
	d.handle.fd = -1;
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuImportExternalMemory(&none, &d));
	d.handle.fd = get_descriptor();
	d.flags = 2;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuImportExternalMemory(&none, &d));
	d.flags = CUDA_EXTERNAL_MEMORY_DEDICATED;
	d.type = 4; /* a handle type of Direct3D */
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuImportExternalMemory(&none, &d));
	d.type = 99;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuImportExternalMemory(&none, &d));
	d.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
	CHECK(cuImportExternalMemory(&e, &d));
	EXPECT(close(d.handle.fd) != 0); /* the library has closed it */
	CHECK(cuExternalMemoryGetMappedBuffer(&p, e, &all));
	CHECK(cuExternalMemoryGetMappedBuffer(&q, e, &some));
	EXPECT(all_are(p, 2 * GRANULE, 7) && all_are(q, 512, 7));
	CHECK(cuMemsetD8(q, 9, 512));
	EXPECT(all_are(p + GRANULE + 256, 512, 9) && all_are(p + GRANULE, 256, 7));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuExternalMemoryGetMappedBuffer(&q, e, &beyond));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuExternalMemoryGetMappedBuffer(&q, e, &(CUDA_EXTERNAL_MEMORY_BUFFER_DESC){.size = 1, .flags = 1}));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuExternalMemoryGetMappedBuffer(&q, (CUexternalMemory)(uintptr_t)p, &all));
	CHECK(cuDestroyExternalMemory(e));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuDestroyExternalMemory(e));
	CHECK(cuMemFree(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(q + 1));
	EXPECT(all_are(q, 512, 9)); /* a buffer keeps the memory */
	CHECK(cuMemFree(q));
	meet();
}

static void ipc_external(void)
{
	static const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = DESCRIPTOR, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle h;
	CUdeviceptr p;
	int fd;

	apart(import_theirs);
	(void)demo_start("poke");
	meet();
	meet();
	CHECK(cuMemCreate(&h, 2 * GRANULE, &prop, 0));
	CHECK(cuMemAddressReserve(&p, 2 * GRANULE, 0, 0, 0));
	show(p, 2 * GRANULE, h);
	CHECK(cuMemsetD8(p, 7, 2 * GRANULE));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemExportToShareableHandle(&fd, h, DESCRIPTOR, 0));
	send_descriptor(fd);
	(void)close(fd);
	meet();
	EXPECT(all_are(p + GRANULE + 256, 512, 9));
	together();
}

static unsigned long long pool_used(CUmemoryPool pool)
{
	unsigned long long used;

	CHECK(cuMemPoolGetAttribute(pool, 7 /* USED_MEM_CURRENT */, &used));
	return used;
}

/* Memory of a pool of the other process. */
static void import_pool(void)
{
	CUmemPoolPtrExportData data[2], bad;
	CUmemoryPool pool, of;
	CUdeviceptr p, q, none;
	CUstream s;
	CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
	CUmemAccess_flags access;
	int fd;

	meet();
	(void)demo_start("poke");
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	meet();
	fd = get_descriptor();
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)other, DESCRIPTOR, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, 2, 0));
	CHECK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, DESCRIPTOR, 0));
	(void)close(fd);
	CHECK(cuMemPoolGetAccess(&access, pool, &device));
	EXPECT(access == 3);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&none, 4096, pool, s));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, pool, DESCRIPTOR, 0));
	hear(data, sizeof data);
	CHECK(cuMemPoolImportPointer(&p, pool, &data[0]));
	CHECK(cuMemPoolImportPointer(&q, pool, &data[1]));
	EXPECT(pool_used(pool) == 3 * SHAREABLE);
	EXPECT(all_are(p, SHAREABLE, 7) && all_are(q, SHAREABLE, 7));
	CHECK(cuPointerGetAttribute(&of, 17 /* MEMPOOL_HANDLE */, q));
	EXPECT(of == pool);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&bad, p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(p));
	memset(&bad, 0, sizeof bad);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&none, pool, &bad));
	CHECK(cuDeviceGetDefaultMemPool(&of, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&none, of, &data[0]));
	CHECK(cuMemsetD8Async(p, 8, SHAREABLE, s));
	CHECK(cuMemFreeAsync(p, s)); /* in the order of the stream */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(p, s));
	meet();
	meet(); /* it has freed all */
	EXPECT(all_are(q, SHAREABLE, 9));
	CHECK(cuMemFree(q - SHAREABLE));
	EXPECT(pool_used(pool) == 0);
	CHECK(cuMemPoolDestroy(pool));
	meet();
}

static void ipc_pool(void)
{
	CUmemPoolProps props = {.allocType = 1, .handleTypes = DESCRIPTOR, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemPoolPtrExportData data[2];
	CUmemoryPool pool, standard;
	CUdeviceptr p, q, private;
	CUstream s;
	size_t before;
	int fd, types;

	apart(import_pool);
	(void)start_alone("poke");
	meet();
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuDeviceGetAttribute(&types, 119 /* MEMPOOL_SUPPORTED_HANDLE_TYPES */, 0));
	EXPECT(types == DESCRIPTOR);
	CHECK(cuMemPoolCreate(&pool, &props));
	CHECK(cuDeviceGetDefaultMemPool(&standard, 0));
	before = free_bytes();
	CHECK(cuMemAllocFromPoolAsync(&p, SHAREABLE, pool, s));
	CHECK(cuMemAllocFromPoolAsync(&q, 2 * SHAREABLE, pool, s));
	CHECK(cuMemAllocAsync(&private, SHAREABLE, s));
	CHECK(cuMemsetD8Async(p, 7, SHAREABLE, s));
	CHECK(cuMemsetD8Async(q, 7, 2 * SHAREABLE, s));
	CHECK(cuStreamSynchronize(s));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, standard, DESCRIPTOR, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, pool, 2, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(NULL, pool, DESCRIPTOR, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&data[0], private));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(NULL, p));
	CHECK(cuMemPoolExportToShareableHandle(&fd, pool, DESCRIPTOR, 0));
	CHECK(cuMemPoolExportPointer(&data[0], p));
	CHECK(cuMemPoolExportPointer(&data[1], q + SHAREABLE)); /* any pointer in an allocation */
	meet(); /* it has loaded its module */
	send_descriptor(fd);
	(void)close(fd);
	say(data, sizeof data);
	meet();
	EXPECT(all_are(p, SHAREABLE, 8) && all_are(q, 2 * SHAREABLE, 7));
	CHECK(cuMemsetD8Async(q, 9, 2 * SHAREABLE, s));
	CHECK(cuMemFreeAsync(p, s));
	CHECK(cuMemFreeAsync(q, s));
	CHECK(cuMemFreeAsync(private, s));
	CHECK(cuStreamSynchronize(s));
	CHECK(cuMemPoolDestroy(pool));
	meet();
	meet();
	together();
	for (int i = 0; i < 1000 && free_bytes() != before; i++) /* its worker may still be ending */
		usleep(10000);
	EXPECT(free_bytes() == before);
}

const struct test ipc_tests[] = {
	{"ipc_memory", ipc_memory},
	{"ipc_refused", ipc_refused},
	{"ipc_counts_once", ipc_counts_once},
	{"ipc_killed", ipc_killed},
	{"ipc_while_it_runs", ipc_while_it_runs},
	{"ipc_events", ipc_events},
	{"ipc_event_killed", ipc_event_killed},
	{"ipc_mapped", ipc_mapped},
	{"ipc_external", ipc_external},
	{"ipc_pool", ipc_pool},
	{NULL, NULL},
};
