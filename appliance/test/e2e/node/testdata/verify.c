// Writes to a block device for a while, and then checks that every acknowledged write is still
// there.
//
//	verify DEVICE SECONDS STOP
//
// It writes until the time has passed, or the file STOP exists.
//
// Each block contains its own number and the number of the write, from which the rest of it is
// derived. Blocks are written in a random order, bypassing the page cache, and the device is
// flushed after each batch; only flushed writes are checked. The program prints one line of
// JSON and exits with 0 only if no block is wrong.

#define _GNU_SOURCE // O_DIRECT
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 16 << 10, BLOCKS = 2048, BATCH = 8, WORDS = BLOCK / 8 };

static uint64_t flushed[BLOCKS]; // by block: the number of its last flushed write

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static uint64_t next(uint64_t *x) // xorshift64*
{
	*x ^= *x >> 12;
	*x ^= *x << 25;
	*x ^= *x >> 27;
	return *x * 0x2545F4914F6CDD1D;
}

static void fill(uint64_t *b, uint64_t at, uint64_t n)
{
	uint64_t seed = at * 1000003 + n;
	b[0] = at;
	b[1] = n;
	for (int i = 2; i < WORDS; i++)
		b[i] = next(&seed);
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: verify DEVICE SECONDS STOP\n");
		return 2;
	}
	int fd = open(argv[1], O_RDWR | O_DIRECT);
	uint64_t *b, *want;
	if (fd < 0 || posix_memalign((void **)&b, 4096, BLOCK) || posix_memalign((void **)&want, 4096, BLOCK)) {
		perror(argv[1]);
		return 2;
	}
	uint64_t dice = 88172645463325252, n = 1;
	double longest = 0, end = now() + atof(argv[2]);
	while (now() < end && access(argv[3], F_OK)) {
		double began = now();
		uint64_t at[BATCH];
		for (int i = 0; i < BATCH; i++) {
			at[i] = next(&dice) % BLOCKS;
			fill(b, at[i], n + i);
			if (pwrite(fd, b, BLOCK, at[i] * BLOCK) != BLOCK) {
				perror("write");
				return 1;
			}
		}
		if (fsync(fd)) {
			perror("flush");
			return 1;
		}
		for (int i = 0; i < BATCH; i++)
			flushed[at[i]] = n + i;
		n += BATCH;
		if (now() - began > longest)
			longest = now() - began;
	}
	int read = 0, wrong = 0;
	for (uint64_t at = 0; at < BLOCKS; at++) {
		if (!flushed[at])
			continue;
		if (pread(fd, b, BLOCK, at * BLOCK) != BLOCK) {
			perror("read");
			return 1;
		}
		fill(want, at, flushed[at]);
		read++;
		wrong += memcmp(b, want, BLOCK) != 0;
	}
	printf("{\"writes\": %llu, \"read\": %d, \"wrong\": %d, \"longestMs\": %.0f}\n", (unsigned long long)n - 1, read, wrong, longest * 1e3);
	return wrong || n == 1;
}
