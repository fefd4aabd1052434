/* Host memory that the program registers (registered.c), in a process that forks. */
#ifndef BASALT_REGISTERED_H
#define BASALT_REGISTERED_H

/* Before fork, and after it in the parent: no page is being replaced in the meantime. */
void registered_fork_begin(void);
void registered_fork_end(void);
/* In a forked child: gives it pages of its own in place of replaced ones. */
void registered_abandon(void);

#endif
