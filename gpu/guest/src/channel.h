/* The channel to the worker: gpu/abi/DESIGN.md tells how it works.
 *
 * Lock order: a lane's lock, session.ring_lock, session.chunk_lock. Nothing
 * else is taken under them, and nothing under a lane's drained_lock. */
#ifndef BASALT_CHANNEL_H
#define BASALT_CHANNEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basalt_abi.h"

/* Results that the channel itself gives (CUresult). */
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

/* A shared region as this process sees it. */
struct region {
	uint8_t *base;
	uint64_t size;
	uint32_t number;
	uint32_t handle; /* (a): GEM handle; (b): memfd until it is announced */
	bool placed;     /* at an address of the window's host part */
};

/* A range of addresses, in bytes; as in the header of region 0. */
struct window {
	uint64_t base, size;
};
_Static_assert(sizeof(struct window) == BSLT_WINDOW_ENTRY_SIZE, "window");

/* What one stream has under way (lane.c). */
#define LANES 1024u /* a power of two */
struct lane {
	_Alignas(64) _Atomic uint32_t put; /* units ever put */
	pthread_mutex_t lock;              /* guards marked and the lane's slot */
	bool marked;                       /* a mark has been put into its slot */
	pthread_mutex_t drained_lock;      /* guards the next two */
	uint64_t drained_stream;           /* what stream_drained was last told in this lane */
	uint64_t drained_at;
};

struct session;

/* What differs between carriers (a) and (b). Functions that return int return
 * a CUresult. */
struct carrier_ops {
	const char *name;
	/* Makes and maps shared pages, at an address of the host part or, 0,
	 * anywhere; does not announce them. */
	int (*region_make)(struct session *s, uint64_t size, uint64_t address, struct region *r);
	/* Tells the worker about a region; returns when the worker cannot miss it. */
	int (*region_announce)(struct session *s, struct region *r);
	/* Unmaps; tells the worker if it knew the region. */
	void (*region_drop)(struct session *s, struct region *r, bool announced);
	int (*hello)(struct session *s, const uint8_t body[BSLT_HELLO_SIZE]);
	/* Waits for the answer to hello and region 0. */
	int (*ready)(struct session *s);
	void (*kick)(struct session *s);
	/* Blocks until the slot's state word may have changed, at most millis. */
	void (*block)(struct session *s, _Atomic uint32_t *state, int millis);
	/* Whether the other end is known to be gone. */
	bool (*gone)(struct session *s);
	/* Closes descriptors; also called in a forked child. */
	void (*close)(struct session *s);
};

struct session {
	const struct carrier_ops *ops;
	int fd;
	int bell; /* (b): the worker's eventfd; -1: it has given none */
	struct region region0;
	struct window window;   /* of device addresses; zero: it allocates none */
	struct window host;     /* the part of it that this side gives out; zero: the worker is too old */
	uint64_t default_arena; /* bytes, when BASALT_ARENA does not say */
	uint64_t max_region;    /* bytes of one region, or 0 */

	/* Our own copy of the layout. */
	uint64_t ring, ring_mask, slots, chunk_state, arena, chunk_size;
	uint32_t slot_count, chunk_count;

	struct lane *lanes; /* LANES; each has a slot, behind the slot_count that slot_take gives */

	pthread_mutex_t ring_lock; /* guards head, and changes of the next two */
	uint64_t head;
	_Atomic uint64_t work; /* commands that were put and that nobody waited for (work_count) */
	_Atomic uint64_t staged; /* likewise, staged copies to the device (staged_count) */

	_Atomic bool stream_attributes; /* the program has given a stream some */

	_Atomic uint64_t slot_free[BSLT_MAX_SLOTS / 64]; /* set bit: free */
	_Atomic uint32_t looks; /* at a slot, between two times that a waiter makes way (wait.c) */

	pthread_mutex_t chunk_lock; /* guards taking chunks */
	_Atomic bool crowded;       /* somebody has waited for chunks in vain, and there were none since */

	pthread_mutex_t region_lock; /* guards the next six */
	struct window taken[BSLT_MAX_REGIONS]; /* places in the host part, by address */
	uint32_t taken_count;
	uint64_t place_next; /* where the search for a place begins */
	uint32_t region_last;
	uint8_t region_used[BSLT_MAX_REGIONS];
	uint64_t region_free_at[BSLT_MAX_REGIONS]; /* reusable when the tail is here */

	_Atomic int dead; /* 0, or the CUresult that every call returns */
};

/* session.c. Opens a session as BASALT_GPU says; memory: with a window for
 * device addresses. On failure why says what was wrong. */
int session_open(struct session **out, bool memory, char why[BSLT_ERROR_TEXT_SIZE]);
void session_close(struct session *s);
/* Writes why there is no session to stderr: with BASALT_VERBOSE, and in any case, once in
 * a process, where library and host are of versions that do not fit together. */
void session_tell(int err, const char why[BSLT_ERROR_TEXT_SIZE]);
/* In a forked child: forgets the parent's session without touching it. */
void session_abandon(struct session *s);

/* alive.c. 0, or the error that ends everything. */
int session_check(struct session *s);
void session_die(struct session *s, int result);
/* What a waiter has seen of the worker's heartbeat; zero at first. */
struct pulse {
	uint64_t beat, since; /* count; nanoseconds, 0: not looked yet */
};
/* session_check, and the session dies when the heartbeat has stood still for
 * BSLT_HEARTBEAT_DEAD_MILLIS. Every loop that waits for the worker asks it. */
int pulse_check(struct session *s, struct pulse *p);
uint64_t now_nanos(void);
/* Sleeps a little longer each time; *step starts at 0. */
void backoff(unsigned *step);
/* Tells the processor that this thread only looks. */
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
/* A region at one address here and for the device's work. RES_NOT_SUPPORTED: no
 * address can be had; others: these pages cannot be mapped there. */
int session_host_region(struct session *s, uint64_t size, struct region *r);
/* Waits until no work can use it. */
void session_host_region_free(struct session *s, struct region *r);

/* place.c. Learns the host part, once the window is chosen. */
void places_open(struct session *s);
/* An address for size bytes; 0: none is left. */
uint64_t place_take(struct session *s, uint64_t size);
void place_give(struct session *s, uint64_t address);
/* A file of shared pages that can be sealed, or -1 and errno. */
int pages_file(const char *name);
/* Maps shared pages of fd, at an address that was taken or, 0, anywhere. */
int pages_map(struct region *r, uint64_t address, int fd, uint64_t offset);
/* Takes them away. A place stays reserved. */
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

/* The minor version of the contract that the worker knows. */
static inline uint32_t worker_minor(const struct session *s)
{
	return atomic_load_explicit(word32(s, BSLT_OFF_WORKER_MINOR), memory_order_relaxed);
}

/* window.c. Reserves the windows that this session can offer, the best first;
 * a base of 0 ends the list. */
int windows_reserve(struct window offers[BSLT_MAX_WINDOWS], char why[BSLT_ERROR_TEXT_SIZE]);
/* Writes them into the header, before region 0 is announced. */
void windows_offer(struct session *s, const struct window offers[BSLT_MAX_WINDOWS]);
/* Keeps the one that the worker has chosen and gives the others back. */
int window_accept(struct session *s, const struct window offers[BSLT_MAX_WINDOWS], char why[BSLT_ERROR_TEXT_SIZE]);
/* Gives all back: there is no session. */
void windows_release(const struct window offers[BSLT_MAX_WINDOWS]);
void window_close(struct session *s);
/* Reserves the pages that hold these addresses, unless something is there. */
bool pages_reserve(uint64_t address, uint64_t size);

/* ring.c. Puts one command; args are the fixed arguments. */
int ring_put(struct session *s, uint16_t op, uint16_t flags, uint32_t slot, const void *args, uint32_t args_len,
	     const void *inl, uint32_t inl_len);
/* ring.c. How many commands have been put for which nobody waits and whose end a
 * program can see: launches, not staged copies to the device. While the number is
 * what it was before a drain of a stream or a context was put, and that drain has
 * been answered, nothing that the program can see is under way there. */
uint64_t work_count(struct session *s);
/* How many staged copies, which are not work in that sense, were put so far. */
uint64_t staged_count(struct session *s);
/* lane.c. All that was in the stream when work_count was at is done. */
void stream_drained(struct session *s, uint64_t stream, uint64_t at);
/* Whether nothing that the program can see is under way in the stream. */
bool stream_quiet(struct session *s, uint64_t stream);
/* lane.c. ring_put for a command whose turn is the stream's: waits while that
 * has too much under way. Everything that is put into a stream comes this way. */
int stream_put(struct session *s, uint64_t stream, uint16_t op, uint16_t flags, uint32_t slot, const void *args,
	       uint32_t args_len, const void *inl, uint32_t inl_len);
/* The waiting alone, for a caller that will hold a lock or something scarce.
 * units: 1 for a command that ring_put puts then; arena_units for a piece of the
 * arena, so that the copies in one stream leave others half of it. */
int stream_enter(struct session *s, uint64_t stream, uint32_t units);
uint32_t arena_units(const struct session *s, uint64_t len);
int lanes_make(struct session *s);

/* ring.c: where an entry of length bytes goes: bytes of NOP before it (0: none). */
uint64_t ring_padding(uint64_t head, uint64_t ring_size, uint64_t length);

/* wait.c */
struct answer {
	int result;
	uint64_t value0, value1;
};
int slot_take(struct session *s, uint32_t *slot);
void slot_give(struct session *s, uint32_t slot);
/* Waits for the slot, which stays taken. A dead session is an answer too. */
struct answer slot_await(struct session *s, uint32_t slot);
/* Waits for the slot and gives it back. */
struct answer slot_wait(struct session *s, uint32_t slot);
/* Puts a command and waits for its answer. */
struct answer call(struct session *s, uint16_t op, const void *args, uint32_t args_len);

/* arena.c. A contiguous piece of a shared region. */
struct piece {
	struct region region; /* a region of its own if region.number != 0 */
	uint8_t *bytes;
	uint64_t off, len;
	uint32_t number; /* region number */
};
/* Up to want bytes of the arena, at least one chunk. RES_NOT_READY: there are none
 * soon, because they are those of streams that do not go on. */
int arena_take(struct session *s, uint64_t want, struct piece *p);
/* The same without waiting; false: there is none now. */
bool arena_try(struct session *s, uint64_t want, struct piece *p);
void arena_free(struct session *s, const struct piece *p);
/* Exactly len bytes, in the arena or in a region of their own. Waits for no stream. */
int piece_get(struct session *s, uint64_t len, struct piece *p);
/* The same, but in the arena perhaps fewer, at least one chunk. */
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
