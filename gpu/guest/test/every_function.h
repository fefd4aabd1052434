/* For the generated list of calls with bad arguments. */
#ifndef BASALT_TEST_EVERY_FUNCTION_H
#define BASALT_TEST_EVERY_FUNCTION_H

#include "api.h"

/* One call of a function: handles says whether it was given one of an object,
 * or a device, that is not there. */
struct bad_call {
	const char *name;
	CUresult (*call)(void);
	bool handles;
};
extern const struct bad_call bad_calls[]; /* the last has no name */

/* One call of a function that takes structs or arrays: what it gives, and what on
 * a device that has no code for it. */
struct exact_call {
	const char *name;
	CUresult (*call)(void);
	CUresult want, without;
};
extern const struct exact_call exact_calls[]; /* the last has no name */

/* What a function answers, whatever it is given, that a vGPU does not have. */
struct refusal {
	const char *name;
	CUresult result;
};
extern const struct refusal refusals[]; /* the last has no name */

/* What is no handle, no device and no known value of an enumeration. */
#define RUBBISH 0x5eed5eedu
/* Sizes stay within the scratch memory, which a pointer leads to. */
#define FEW 7u
/* Zeroed memory of the program for a pointer to lead to. */
void *scratch(void);
/* A kibibyte of the device's memory. */
CUdeviceptr good_address(void);

#endif
