/* MD2 (RFC 1319) and HMAC (RFC 2104) over it. */
#ifndef BASALT_INTEROP_MD2_H
#define BASALT_INTEROP_MD2_H

#include <stddef.h>

#define MD2_SIZE 16 /* size in bytes of a digest, of a block and of our key */

struct md2 {
	unsigned char state[48], checksum[16], block[16];
	size_t filled; /* number of bytes in block */
};

void md2_begin(struct md2 *m);
void md2_add(struct md2 *m, const void *data, size_t size);
void md2_end(struct md2 *m, unsigned char digest[MD2_SIZE]);

/* The key has the length of a block. */
void hmac_md2_begin(struct md2 *m, const unsigned char key[MD2_SIZE]);
void hmac_md2_end(struct md2 *m, const unsigned char key[MD2_SIZE], unsigned char mac[MD2_SIZE]);

#endif
