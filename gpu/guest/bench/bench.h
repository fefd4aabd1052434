/* Declarations that the files of the benchmark share. */
#ifndef BASALT_BENCH_H
#define BASALT_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include "basalt_abi.h"
#include "demo.h"

/* Number of round trips of one sample. */
#define TRIPS 2000

/* The entry that a launch of poke writes into the ring. */
struct launch_entry {
	struct bslt_entry header;
	struct bslt_launch launch;
	uint8_t params[16];
};

/* now returns the time of a monotonic clock in nanoseconds. */
double now(void);

/* sample prints a sample: the duration of n operations in nanoseconds. */
void sample(const char *name, long n, double nanos);

/* round_trip_baseline passes a word back and forth between two processes. */
void round_trip_baseline(const char *name);

/* copy_baseline copies size bytes n times with memcpy. */
void copy_baseline(const char *name, void *dst, const void *src, size_t size, int n);

/* path measures the path to a device that completes everything at once. launches is the number of
 * launches in the rows of sustained launches. */
void path(CUfunction f, unsigned int rounds, long launches);

#endif
