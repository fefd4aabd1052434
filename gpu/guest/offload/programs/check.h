/* Macros of the programs. Each program compares its results with the host's, and checks that it
 * ran on the device. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond)                                                                      \
	do {                                                                             \
		if (!(cond)) {                                                           \
			fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #cond); \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

static inline int close_to(double a, double b)
{
	double d = a > b ? a - b : b - a, m = b < 0 ? -b : b;

	return d <= 1e-5 * (m > 1 ? m : 1);
}

#endif
