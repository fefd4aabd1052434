/* interop.c: returns the table of the authenticity query of the vendor's runtime, given the
 * table of the runtime's functions. If interop is off, it returns NULL, and prints an
 * explanation the first time. */
#ifndef BASALT_SRC_INTEROP_H
#define BASALT_SRC_INTEROP_H

const void *interop_table(const void *cudart_interface);

#endif
