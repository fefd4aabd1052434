/* What the files of the benchmark share. */
#ifndef BASALT_BENCH_H
#define BASALT_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include "basalt_abi.h"
#include "demo.h"

/* Round trips of one sample. */
#define TRIPS 2000

/* What a launch of poke writes into the ring. */
struct launch_entry {
	struct bslt_entry header;
	struct bslt_launch launch;
	uint8_t params[16];
};

/* now returns the time in nanoseconds, of a clock that only goes forward. */
double now(void);

/* sample prints one: nanos for n operations. */
void sample(const char *name, long n, double nanos);

/* round_trip_baseline passes a word to and fro between two processes. */
void round_trip_baseline(const char *name);

/* copy_baseline copies size bytes n times with memcpy. */
void copy_baseline(const char *name, void *dst, const void *src, size_t size, int n);

/* path takes the samples of the path to a device that completes all at once,
 * with so many launches in the rows of sustained launches. */
void path(CUfunction f, unsigned int rounds, long launches);

#endif
