/* The two queries of the worker that libcuda and libnvidia-ml share. */
#ifndef BASALT_QUERY_H
#define BASALT_QUERY_H

#include "channel.h"
#include "reply.h"

/* Both return a CUresult. The caller frees the result. */
int query_device(struct session *s, struct device_info *out);
int query_status(struct session *s, struct vgpu_status *out);

/* Returns a private copy of the first n bytes of a piece, or NULL if there is no memory. */
uint8_t *private_copy(const struct piece *p, uint64_t n);

#endif
