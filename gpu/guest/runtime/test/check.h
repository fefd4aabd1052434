/* Macros of the test programs. A failed check prints its line and ends the program. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(call) \
	do { \
		cudaError_t check_err = (call); \
		if (check_err != cudaSuccess) { \
			fprintf(stderr, "%s:%d: %s: %s (%d), want success\n", __FILE__, __LINE__, #call, cudaGetErrorString(check_err), (int)check_err); \
			exit(1); \
		} \
	} while (0)
#define WANT(call, code) \
	do { \
		cudaError_t want_err = (call); \
		if (want_err != (code)) { \
			fprintf(stderr, "%s:%d: %s: %s, want %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(want_err), cudaGetErrorName(code)); \
			exit(1); \
		} \
	} while (0)
#define ASSERT(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #what); \
			exit(1); \
		} \
	} while (0)

/* Returns the next number of a generator that is the same on every machine. */
static inline unsigned int next_random(unsigned int *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

#endif
