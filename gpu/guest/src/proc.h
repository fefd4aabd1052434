#ifndef BASALT_PROC_H
#define BASALT_PROC_H

/* One answer of cuGetProcAddress. gpu/cudaapi/gen generates the table from functions.txt. It
 * is sorted by name, then form, then version. */
struct proc {
	const char *name;
	unsigned char per_thread; /* the form for flag 2 */
	unsigned short version;   /* the first CUDA version that has it, divided by ten */
	void (*function)(void);   /* null: not implemented */
};
extern const struct proc procs[];
extern const unsigned int proc_count;

#endif
