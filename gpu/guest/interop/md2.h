/* MD2 (RFC 1319) and HMAC (RFC 2104) over it. */
#ifndef BASALT_INTEROP_MD2_H
#define BASALT_INTEROP_MD2_H

#include <stddef.h>

#define MD2_SIZE 16 /* bytes of a digest, of a block and of our key */

struct md2 {
	unsigned char state[48], checksum[16], block[16];
	size_t filled; /* bytes of block */
};

void md2_begin(struct md2 *m);
void md2_add(struct md2 *m, const void *data, size_t size);
void md2_end(struct md2 *m, unsigned char digest[MD2_SIZE]);

/* The key is a whole block long. */
void hmac_md2_begin(struct md2 *m, const unsigned char key[MD2_SIZE]);
void hmac_md2_end(struct md2 *m, const unsigned char key[MD2_SIZE], unsigned char mac[MD2_SIZE]);

#endif
