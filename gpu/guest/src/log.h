/* The error log of this process. */
#ifndef BASALT_LOG_H
#define BASALT_LOG_H

#include "state.h"

/* Adds one line. api is the function that the program has called, or NULL if that is not
 * known. It runs callbacks of the program, so the caller must not hold a lock that the API
 * needs. */
void log_message(int level, const char *api, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* In a forked child. */
void logs_abandon(void);

#endif
