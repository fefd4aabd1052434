#ifndef BASALT_PROC_H
#define BASALT_PROC_H

/* One answer of cuGetProcAddress. The table, made by gen/ from functions.txt,
 * is sorted by name, then form, then version. */
struct proc {
	const char *name;
	unsigned char per_thread; /* the form for flag 2 */
	unsigned short version;   /* from this CUDA version on, in tens */
	void (*function)(void);   /* null: not implemented */
};
extern const struct proc procs[];
extern const unsigned int proc_count;

#endif
