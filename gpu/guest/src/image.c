/* How long an image is whose length the program did not give. */
#include <string.h>

#include "state.h"

#define WRAPPER_MAGIC 0x466243b1u
#define FATBIN_MAGIC 0xba55ed50u

struct wrapper {
	uint32_t magic, version;
	const void *data;
	const void *unused;
};
struct fatbin {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size; /* after the header */
};

/* What cuLinkComplete has made of several objects (link.c). */
static size_t link_size(const uint8_t *p)
{
	uint64_t size;

	memcpy(&size, p + 8, sizeof size);
	return size > BSLT_MAX_MODULE_IMAGE ? 0 : (size_t)size;
}

/* The end of the section headers, and of the program headers, whichever is
 * last: cubins have both at the end. */
static size_t elf_size(const uint8_t *p)
{
	uint64_t phoff, shoff, ends[2];
	uint16_t sizes[4]; /* phentsize, phnum, shentsize, shnum */

	if (p[4] != 2) /* ELFCLASS64 */
		return 0;
	memcpy(&phoff, p + 32, 8);
	memcpy(&shoff, p + 40, 8);
	memcpy(sizes, p + 54, 8);
	ends[0] = phoff + (uint64_t)sizes[0] * sizes[1];
	ends[1] = shoff + (uint64_t)sizes[2] * sizes[3];
	if (phoff > BSLT_MAX_MODULE_IMAGE || shoff > BSLT_MAX_MODULE_IMAGE)
		return 0;
	return ends[0] > ends[1] ? ends[0] : ends[1];
}

size_t image_size(const void **image)
{
	const uint8_t *p = *image;
	struct wrapper w;
	struct fatbin f;
	uint32_t magic;

	/* A byte at a time: PTX may be as short as one NUL. */
	for (int i = 0; i < 4; i++)
		if (p[i] == 0 && i < 3)
			return (size_t)i;
	memcpy(&magic, p, 4);
	if (magic == WRAPPER_MAGIC) {
		memcpy(&w, p, sizeof w);
		if (!w.data)
			return 0;
		*image = p = w.data;
		memcpy(&magic, p, 4);
	}
	if (magic == FATBIN_MAGIC) {
		memcpy(&f, p, sizeof f);
		return f.size > BSLT_MAX_MODULE_IMAGE ? 0 : f.header_size + (size_t)f.size;
	}
	if (magic == BSLT_LINK_MAGIC)
		return link_size(p);
	if (memcmp(p, "\177ELF", 4) == 0)
		return elf_size(p);
	return strlen((const char *)p);
}
