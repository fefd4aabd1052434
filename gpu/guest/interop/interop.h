/* libbasalt-interop.so.1 answers the query by which NVIDIA's runtime library checks that a driver
 * is NVIDIA's. libcuda.so.1 loads it if the operator has enabled interop (docs/vendor-interop.md),
 * and nothing else uses it. Another library with this name and this function can replace it. */
#ifndef BASALT_INTEROP_H
#define BASALT_INTEROP_H

#define BASALT_INTEROP_FILE "libbasalt-interop.so.1"
#define BASALT_INTEROP_FUNCTION "basalt_interop_table"

/* Returns the table that cuGetExportTable returns for the query, or NULL if there is none.
 * cudart_interface is the table that it returns for the runtime's functions. */
typedef const void *basalt_interop_function(const void *cudart_interface);

#endif
