#include "query.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_TRY (64u << 10)

uint8_t *private_copy(const struct piece *p, uint64_t n)
{
	uint8_t *b;

	if (n > p->len)
		n = p->len;
	if ((b = malloc(n ? n : 1)) != NULL)
		memcpy(b, p->bytes, n);
	return b;
}

/* Requests a record by the command op, and repeats it with a larger buffer if necessary. */
static int record(struct session *s, uint16_t op, uint8_t **bytes, uint64_t *len)
{
	uint64_t size = FIRST_TRY;

	for (int attempt = 0;; attempt++) {
		struct bslt_device_info a = {0};
		struct piece p;
		struct answer r;
		int err = piece_get(s, size, &p);

		if (err)
			return err;
		a.out_off = p.off;
		a.out_len = p.len;
		a.out_region = p.number;
		r = call(s, op, &a, sizeof a);
		if (r.result == 0) {
			*bytes = private_copy(&p, r.value0);
			*len = r.value0 < p.len ? r.value0 : p.len;
		}
		piece_put(s, &p);
		if (r.result == 0)
			return *bytes ? 0 : RES_OUT_OF_MEMORY;
		if (r.result != RES_INVALID_VALUE || r.value0 <= size || attempt == 3)
			return r.result;
		size = r.value0 * 2; /* it may grow in the meantime */
	}
}

_Static_assert(sizeof(struct bslt_vgpu_status) == sizeof(struct bslt_device_info), "both are one Buf");

int query_device(struct session *s, struct device_info *out)
{
	uint8_t *b = NULL;
	uint64_t n = 0;
	int err = record(s, BSLT_OP_DEVICE_INFO, &b, &n);

	if (err == 0 && decode_device_info(b, n, out) != 0)
		err = RES_UNKNOWN;
	free(b);
	return err;
}

int query_status(struct session *s, struct vgpu_status *out)
{
	uint8_t *b = NULL;
	uint64_t n = 0;
	int err = record(s, BSLT_OP_VGPU_STATUS, &b, &n);

	if (err == 0 && decode_vgpu_status(b, n, out) != 0)
		err = RES_UNKNOWN;
	free(b);
	return err;
}
