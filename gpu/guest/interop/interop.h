/* libbasalt-interop.so.1 answers the question by which NVIDIA's runtime library
 * asks a driver whether it is NVIDIA's. libcuda.so.1 loads it where the operator
 * has turned interop on (docs/vendor-interop.md), and nothing else uses it:
 * another library of this name and with this function can take its place. */
#ifndef BASALT_INTEROP_H
#define BASALT_INTEROP_H

#define BASALT_INTEROP_FILE "libbasalt-interop.so.1"
#define BASALT_INTEROP_FUNCTION "basalt_interop_table"

/* The table that cuGetExportTable gives for the query; cudart_interface is the
 * one that it gives for the runtime's functions. NULL: there is none. */
typedef const void *basalt_interop_function(const void *cudart_interface);

#endif
