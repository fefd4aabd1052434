/* Determines the size of images that the program passes without it, and checks the beginning
 * of images. */
#include <string.h>

#include "state.h"

#define WRAPPER_MAGIC 0x466243b1u
#define FATBIN_MAGIC 0xba55ed50u

/* The header of a fatbin in a program. Version 2 is written by nvcc's linker of device code:
 * data is the linked code, for the architectures that the program was built for, and parts
 * points to the fatbins that it was linked from, terminated by NULL. */
struct wrapper {
	uint32_t magic, version;
	const void *data;
	const void *const *parts;
};
struct fatbin {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size; /* after the header */
};

/* Returns the size of an image that cuLinkComplete has created (link.c). */
static size_t link_size(const uint8_t *p)
{
	uint64_t size;

	memcpy(&size, p + 8, sizeof size);
	return size > BSLT_MAX_MODULE_IMAGE ? 0 : (size_t)size;
}

/* Returns the end of the section headers or of the program headers, whichever is later: cubins
 * have both at the end. */
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

static size_t fatbin_size(const void *p)
{
	struct fatbin f;

	memcpy(&f, p, sizeof f);
	return f.magic != FATBIN_MAGIC || f.size > BSLT_MAX_MODULE_IMAGE ? 0 : f.header_size + (size_t)f.size;
}

/* Creates an image of the linked code and its parts. The device links the parts again if the
 * linked code has none for it. */
static size_t parts_image(const struct wrapper *w, const void **image, void **made)
{
	size_t size;
	struct link *l = link_begin();
	int err = l ? 0 : CUDA_ERROR_OUT_OF_MEMORY;

	if (err == 0 && w->data && (size = fatbin_size(w->data)) > sizeof(struct fatbin))
		err = link_add(l, BSLT_LINK_LINKED, w->data, size, "linked");
	for (size_t i = 0; err == 0 && w->parts[i]; i++)
		err = (size = fatbin_size(w->parts[i])) ? link_add(l, CU_JIT_INPUT_FATBINARY, w->parts[i], size, NULL)
							: CUDA_ERROR_INVALID_IMAGE;
	size = err ? 0 : link_end(l, made);
	object_put(l);
	*image = *made;
	return size;
}

size_t image_size(const void **image, void **made)
{
	const uint8_t *p = *image;
	struct wrapper w;
	uint32_t magic;

	*made = NULL;
	/* One byte at a time, because PTX may be as short as one NUL. */
	for (int i = 0; i < 4; i++)
		if (p[i] == 0 && i < 3)
			return (size_t)i;
	memcpy(&magic, p, 4);
	if (magic == WRAPPER_MAGIC) {
		memcpy(&w, p, sizeof w);
		if (w.version == 2 && w.parts && w.parts[0])
			return parts_image(&w, image, made);
		if (!w.data)
			return 0;
		*image = p = w.data;
		memcpy(&magic, p, 4);
	}
	if (magic == FATBIN_MAGIC)
		return fatbin_size(p);
	if (magic == BSLT_LINK_MAGIC)
		return link_size(p);
	if (memcmp(p, "\177ELF", 4) == 0)
		return elf_size(p);
	return strlen((const char *)p);
}

/* Returns the position after white space and comments, which may be the end. */
static size_t skip_comments(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n) {
		if (strchr(" \t\r\n\f\v", p[i]) && p[i]) {
			i++;
		} else if (i + 1 < n && p[i] == '/' && p[i + 1] == '/') {
			while (i < n && p[i] != '\n')
				i++;
		} else if (i + 1 < n && p[i] == '/' && p[i + 1] == '*') {
			for (i += 2; i + 1 < n && (p[i] != '*' || p[i + 1] != '/'); i++)
				;
			i = i + 2 < n ? i + 2 : n;
		} else {
			break;
		}
	}
	return i;
}

/* Reports whether an image is PTX, which begins with .version (PTX ISA, "PTX Module Directives: .version"). */
static bool is_ptx(const char *p, size_t n)
{
	static const char first[] = ".version";
	size_t i = skip_comments(p, n);

	return n - i > sizeof first - 1 && memcmp(p + i, first, sizeof first - 1) == 0;
}

#define ELF_HEADER 64u
#define EM_CUDA 190u

int image_check(const void *image, size_t size)
{
	const uint8_t *p = image;
	struct fatbin f;
	uint16_t machine;
	uint32_t magic = 0;
	bool good;

	if (size >= sizeof magic)
		memcpy(&magic, p, sizeof magic);
	if (magic == FATBIN_MAGIC) {
		good = size >= sizeof f;
		if (good) {
			memcpy(&f, p, sizeof f);
			good = f.header_size >= sizeof f && f.size > 0 && f.size <= size - sizeof f;
		}
	} else if (magic == BSLT_LINK_MAGIC) {
		good = true; /* cuLinkComplete has created it */
	} else if (magic && memcmp(p, "\177ELF", 4) == 0) {
		good = size >= ELF_HEADER;
		if (good) {
			memcpy(&machine, p + 18, sizeof machine);
			good = p[4] == 2 && p[5] == 1 && machine == EM_CUDA; /* 64 bits, little endian */
		}
	} else {
		good = is_ptx(image, size);
	}
	return good ? 0 : CUDA_ERROR_INVALID_IMAGE;
}
