/* The error log of this process. */
#ifndef BASALT_LOG_H
#define BASALT_LOG_H

#include "state.h"

/* Adds one line; api: the function that the program has called, NULL where that is
 * not known. Callbacks of the program run: hold no lock that the API needs. */
void log_message(int level, const char *api, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* In a forked child. */
void logs_abandon(void);

#endif
