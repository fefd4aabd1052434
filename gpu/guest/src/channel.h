/* The channel to the worker; gpu/abi/DESIGN.md describes how it works.
 *
 * Lock order: a lane's lock, session.ring_lock, session.chunk_lock. No other lock is taken
 * while one of them is held, and none while a lane's drained_lock is held. */
#ifndef BASALT_CHANNEL_H
#define BASALT_CHANNEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basalt_abi.h"

/* Results that the channel itself returns (CUresult). */
enum {
	RES_SUCCESS = 0,
	RES_INVALID_VALUE = 1,
	RES_OUT_OF_MEMORY = 2,
	RES_UNAVAILABLE = 46,
	RES_NO_DEVICE = 100,
	RES_OPERATING_SYSTEM = 304,
	RES_NOT_READY = 600,
	RES_NOT_SUPPORTED = 801,
	RES_DRIVER_MISMATCH = 803,
	RES_UNKNOWN = 999,
};

/* A shared region, as it is mapped in this process. */
struct region {
	uint8_t *base;
	uint64_t size;
	uint32_t number;
	uint32_t handle; /* (a): GEM handle; (b): memfd until it is announced */
	bool placed;     /* at an address of the window's host part */
};

/* A range of addresses, with its size in bytes. The layout is that of region 0's header. */
struct window {
	uint64_t base, size;
};
_Static_assert(sizeof(struct window) == BSLT_WINDOW_ENTRY_SIZE, "window");

/* The commands of a stream that are not done yet (lane.c). */
#define LANES 1024u /* a power of two */
struct lane {
	_Alignas(64) _Atomic uint32_t put; /* units enqueued since the beginning */
	pthread_mutex_t lock;              /* guards marked and the lane's slot */
	bool marked;                       /* a mark was enqueued with its slot */
	pthread_mutex_t drained_lock;      /* guards the next two */
	uint64_t drained_stream;           /* the last stream that stream_drained recorded in this lane */
	uint64_t drained_at;
};

struct session;

/* The operations that differ between carriers (a) and (b). Functions that return int return
 * a CUresult. */
struct carrier_ops {
	const char *name;
	/* Allocates and maps shared pages at an address of the host part, or anywhere if it
	 * is 0. Does not announce them. */
	int (*region_make)(struct session *s, uint64_t size, uint64_t address, struct region *r);
	/* Maps the pages of an announced region at another address too, in place of what is
	 * mapped there. */
	int (*region_again)(struct session *s, const struct region *r, uint64_t address);
	/* Announces a region to the worker. Returns when the worker reads the announcement
	 * before any later command. */
	int (*region_announce)(struct session *s, struct region *r);
	/* Unmaps a region, and tells the worker if it was announced. */
	void (*region_drop)(struct session *s, struct region *r, bool announced);
	int (*hello)(struct session *s, const uint8_t body[BSLT_HELLO_SIZE]);
	/* Waits for the answer to hello and to region 0. */
	int (*ready)(struct session *s);
	void (*kick)(struct session *s);
	/* Waits until the slot's state word may have changed, at most millis. */
	void (*block)(struct session *s, _Atomic uint32_t *state, int millis);
	/* Reports whether the other end is known to have ended. */
	bool (*gone)(struct session *s);
	/* Closes descriptors; also called in a forked child. */
	void (*close)(struct session *s);
};

struct session {
	const struct carrier_ops *ops;
	int fd;
	int wake_fd; /* (b): the worker's eventfd, or -1 if it has sent none */
	struct region region0;
	struct window window;   /* of device addresses; zero if the session allocates none */
	struct window host;     /* the part of it that this process allocates; zero if the worker is too old */
	uint64_t default_arena; /* bytes, if BASALT_ARENA is not set */
	uint64_t max_region;    /* bytes of one region, or 0 for no limit */

	/* A private copy of the layout, which the worker cannot change. */
	uint64_t ring, ring_mask, slots, chunk_state, arena, chunk_size;
	uint32_t slot_count, chunk_count;

	struct lane *lanes; /* LANES of them; each has its own slot, behind the slot_count that slot_take allocates */

	pthread_mutex_t ring_lock; /* guards head, and changes of the next two */
	uint64_t head;
	_Atomic uint64_t work; /* commands that were enqueued and not waited for (work_count) */
	_Atomic uint64_t staged; /* the same for staged copies to the device (staged_count) */

	_Atomic bool stream_attributes; /* the program has set attributes of a stream */

	_Atomic uint64_t slot_free[BSLT_MAX_SLOTS / 64]; /* set bit: free */
	_Atomic uint32_t looks; /* how often a waiter polls its slot before it yields (wait.c) */

	pthread_mutex_t chunk_lock; /* guards the allocation of chunks */
	_Atomic bool crowded;       /* a wait for chunks failed, and none became free since */

	pthread_mutex_t region_lock; /* guards the next six */
	struct window taken[BSLT_MAX_REGIONS]; /* allocated places in the host part, by address */
	uint32_t taken_count;
	uint64_t place_next; /* where the next search for a place begins */
	uint32_t region_last;
	uint8_t region_used[BSLT_MAX_REGIONS];
	uint64_t region_free_at[BSLT_MAX_REGIONS]; /* the number is reusable when the tail has reached this position */

	_Atomic int dead; /* 0, or the CUresult that every call returns */
};

/* session.c. Opens a session with the carrier that BASALT_GPU selects. With memory it has a
 * window for device addresses. On failure, why contains the reason. */
int session_open(struct session **out, bool memory, char why[BSLT_ERROR_TEXT_SIZE]);
void session_close(struct session *s);
/* Writes to stderr why there is no session: always with BASALT_VERBOSE, and once in a process
 * without it if library and host have incompatible versions. */
void session_report_failure(int err, const char why[BSLT_ERROR_TEXT_SIZE]);
/* In a forked child: forgets the parent's session without touching it. */
void session_abandon(struct session *s);

/* alive.c. Returns 0, or the error with which the session has ended. */
int session_check(struct session *s);
void session_die(struct session *s, int result);
/* A waiter's last observation of the worker's heartbeat; initially zero. */
struct heartbeat {
	uint64_t beat, since; /* count; time in nanoseconds, 0: not read yet */
};
/* Calls session_check, and ends the session if the heartbeat has not changed for
 * BSLT_HEARTBEAT_DEAD_MILLIS. Every loop that waits for the worker calls it. */
int heartbeat_check(struct session *s, struct heartbeat *p);
uint64_t now_nanos(void);
/* Sleeps a little longer each time; *step starts at 0. */
void backoff(unsigned *step);
/* Tells the processor that this thread is spinning. */
static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#define PAGE 4096ull
static inline uint64_t page_up(uint64_t n)
{
	return (n + PAGE - 1) & ~(PAGE - 1);
}

/* region.c */
int session_region(struct session *s, uint64_t size, struct region *r);
void session_region_free(struct session *s, struct region *r);
/* Allocates a region that has the same address in this process and on the device. Returns
 * RES_NOT_SUPPORTED if there are no such addresses, and other errors if these pages cannot be
 * mapped there. */
int session_host_region(struct session *s, uint64_t size, struct region *r);
/* Lets the device use such a region again, and waits until no work can use it. */
int session_host_region_map(struct session *s, const struct region *r);
void session_host_region_unmap(struct session *s, const struct region *r);
/* Waits until no work can use the region, and frees it. */
void session_host_region_free(struct session *s, struct region *r);

/* place.c. Initializes the allocator of the host part, when the window has been chosen. */
void places_open(struct session *s);
/* Allocates an address for size bytes. Returns 0 if there is none. */
uint64_t place_take(struct session *s, uint64_t size);
void place_give(struct session *s, uint64_t address);
/* Returns a file of shared pages that can be sealed, or -1 and errno. */
int pages_file(const char *name);
/* Maps shared pages of fd at an address of place_take, or anywhere if it is 0. */
int pages_map(struct region *r, uint64_t address, int fd, uint64_t offset);
/* Unmaps them. A place remains reserved. */
void pages_unmap(struct region *r);

static inline uint8_t *at(const struct session *s, uint64_t off)
{
	return s->region0.base + off;
}
static inline _Atomic uint32_t *word32(const struct session *s, uint64_t off)
{
	return (_Atomic uint32_t *)(void *)at(s, off);
}
static inline _Atomic uint64_t *word64(const struct session *s, uint64_t off)
{
	return (_Atomic uint64_t *)(void *)at(s, off);
}

/* Returns the minor version of the protocol that the worker supports. */
static inline uint32_t worker_minor(const struct session *s)
{
	return atomic_load_explicit(word32(s, BSLT_OFF_WORKER_MINOR), memory_order_relaxed);
}

/* window.c. Reserves the windows that this session can offer, the best first. A base of 0
 * ends the list. */
int windows_reserve(struct window offers[BSLT_MAX_WINDOWS], char why[BSLT_ERROR_TEXT_SIZE]);
/* Writes them into the header, before region 0 is announced. */
void windows_offer(struct session *s, const struct window offers[BSLT_MAX_WINDOWS]);
/* Keeps the window that the worker has chosen, and releases the others. */
int window_accept(struct session *s, const struct window offers[BSLT_MAX_WINDOWS], char why[BSLT_ERROR_TEXT_SIZE]);
/* Releases all windows, because there is no session. */
void windows_release(const struct window offers[BSLT_MAX_WINDOWS]);
void window_close(struct session *s);
/* Reserves the pages of these addresses. Returns false if something is mapped there. */
bool pages_reserve(uint64_t address, uint64_t size);
/* Reverts pages_reserve, for whole pages. */
void pages_release(uint64_t address, uint64_t size);

/* ring.c. Enqueues one command; args are its fixed arguments. */
int ring_put(struct session *s, uint16_t op, uint16_t flags, uint32_t slot, const void *args, uint32_t args_len,
	     const void *inl, uint32_t inl_len);
/* ring.c. Returns the number of enqueued commands that nobody waits for and whose completion
 * a program can observe: launches, but not staged copies to the device. If the number has not
 * changed since before a drain of a stream or context was enqueued, and the drain has been
 * answered, no work that the program can observe is running there. */
uint64_t work_count(struct session *s);
/* Returns the number of staged copies, which work_count does not count. */
uint64_t staged_count(struct session *s);
/* lane.c. Records that everything that was in the stream when work_count was at is done. */
void stream_drained(struct session *s, uint64_t stream, uint64_t at);
/* Reports whether no work that the program can observe is running in the stream. */
bool stream_quiet(struct session *s, uint64_t stream);
/* lane.c. Like ring_put, for a command that is ordered by a stream: waits while the stream has
 * too many commands that are not done. All commands of streams are enqueued by it. */
int stream_put(struct session *s, uint64_t stream, uint16_t op, uint16_t flags, uint32_t slot, const void *args,
	       uint32_t args_len, const void *inl, uint32_t inl_len);
/* Only waits as stream_put does, for callers that will hold a lock or a scarce resource.
 * units is 1 for a command that the caller then enqueues by ring_put, and arena_units for a
 * piece of the arena, so that the copies of one stream leave half of it to others. */
int stream_enter(struct session *s, uint64_t stream, uint32_t units);
uint32_t arena_units(const struct session *s, uint64_t len);
int lanes_make(struct session *s);

/* ring.c. Returns the bytes of padding (NOP) before an entry of length bytes, or 0. */
uint64_t ring_padding(uint64_t head, uint64_t ring_size, uint64_t length);

/* wait.c */
struct answer {
	int result;
	uint64_t value0, value1;
};
int slot_take(struct session *s, uint32_t *slot);
void slot_give(struct session *s, uint32_t slot);
/* Waits for the slot's answer, and does not free the slot. If the session ends, the answer is
 * its error. */
struct answer slot_await(struct session *s, uint32_t slot);
/* Waits for the slot's answer, and frees the slot. */
struct answer slot_wait(struct session *s, uint32_t slot);
/* Enqueues a command and waits for its answer. */
struct answer call(struct session *s, uint16_t op, const void *args, uint32_t args_len);

/* arena.c. A contiguous piece of a shared region. */
struct piece {
	struct region region; /* a region of its own if region.number != 0 */
	uint8_t *bytes;
	uint64_t off, len;
	uint32_t number; /* region number */
};
/* Allocates up to want bytes of the arena, at least one chunk. Returns RES_NOT_READY if none
 * becomes free soon, because blocked streams hold them. */
int arena_take(struct session *s, uint64_t want, struct piece *p);
/* The same without waiting. Returns false if no chunk is free. */
bool arena_try(struct session *s, uint64_t want, struct piece *p);
void arena_free(struct session *s, const struct piece *p);
/* Allocates exactly len bytes, in the arena or in a region of their own. Does not wait for
 * streams. */
int piece_get(struct session *s, uint64_t len, struct piece *p);
/* The same, but it may allocate fewer bytes in the arena, at least one chunk. */
int piece_get_some(struct session *s, uint64_t want, struct piece *p);
void piece_put(struct session *s, struct piece *p);

extern const struct carrier_ops carrier_unix, carrier_virtio;
int carrier_unix_open(struct session *s, const char *path, char why[BSLT_ERROR_TEXT_SIZE]);
int carrier_virtio_open(struct session *s, char why[BSLT_ERROR_TEXT_SIZE]);

/* The header of a carrier message. */
struct message {
	uint32_t magic;
	uint16_t type, flags;
	uint32_t length, argument;
};
_Static_assert(sizeof(struct message) == BSLT_CARRIER_HEADER_SIZE, "message");

#endif
