/* interop.c: the table of the vendor runtime's authenticity query, given the one
 * of the runtime's functions; NULL, once with an explanation, where it is off. */
#ifndef BASALT_SRC_INTEROP_H
#define BASALT_SRC_INTEROP_H

const void *interop_table(const void *cudart_interface);

#endif
