/* Pages of the program that are replaced by those of a region (replace.c). */
#ifndef BASALT_REPLACE_H
#define BASALT_REPLACE_H

#include "channel.h"

/* Pages of a region that are mapped at an address of the program, in addition to the region's
 * own address in the window. */
struct replaced {
	uint64_t address, size; /* whole pages */
	struct region region;
	uint64_t major, minor, inode, offset; /* the file that /proc/self/maps has at address, by which they are recognized */
	bool stack;                           /* the pages were of a thread's stack */
	unsigned int users;                   /* registered ranges whose device address is in the region */
};

/* Reports whether the program still has all of the pages at their address. */
bool pages_present(const struct replaced *r);
/* Reports whether the pages at an address can be replaced: all are writable memory that only
 * this process has, or belong to one of count others. */
bool pages_replaceable(uint64_t address, uint64_t size, const struct replaced *others, size_t count);
/* Replaces the pages at r's address by those of its region. Returns RES_NOT_SUPPORTED, and
 * changes nothing, if this kernel or the kind of memory does not allow it. */
int pages_replace(struct session *s, struct replaced *r);
/* Replaces them by pages of this process with the same contents. Writes of other threads in
 * the meantime can be lost if the kernel cannot protect these pages: it is meant for pages of
 * this thread's stack. */
int pages_restore(struct replaced *r);
/* In a forked child: gives it pages of its own in place of those that it shares with its
 * parent, if it still has them. */
void pages_copy(const struct replaced *r);

#endif
