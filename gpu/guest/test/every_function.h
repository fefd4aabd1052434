/* Declarations for the generated list of calls with invalid arguments. */
#ifndef BASALT_TEST_EVERY_FUNCTION_H
#define BASALT_TEST_EVERY_FUNCTION_H

#include "api.h"

/* One call of a function. handles is true if an argument is the handle of an object, or a
 * device, that does not exist. */
struct bad_call {
	const char *name;
	CUresult (*call)(void);
	bool handles;
};
extern const struct bad_call bad_calls[]; /* the last has no name */

/* One call of a function with structs or arrays: its result, and its result on a device that
 * has no code for it. */
struct exact_call {
	const char *name;
	CUresult (*call)(void);
	CUresult want, without;
};
extern const struct exact_call exact_calls[]; /* the last has no name */

/* The error of a function that vGPUs do not support, for all arguments. */
struct refusal {
	const char *name;
	CUresult result;
};
extern const struct refusal refusals[]; /* the last has no name */

/* A value that is not a valid handle, device, or value of an enumeration. */
#define RUBBISH 0x5eed5eedu
/* A size that is within the scratch memory, which pointers lead to. */
#define FEW 7u
/* Returns zeroed memory of the program. */
void *scratch(void);
/* Returns the address of one KiB of device memory. */
CUdeviceptr good_address(void);

#endif
