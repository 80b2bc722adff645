/*
 * The program in the README's pictures: develops photographs, in two threads. What its functions do is real and of no use; what
 * they draw is what the emulated machine is told in /proc/simhw: some are slow and cheap, others short and hungry.
 *
 *     cc -O2 -g -static -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread -o photos photos.c -lm
 *     ./photos 40
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIDE 96
#define PIXELS (SIDE * SIDE)
#define OWN __attribute__((noinline)) static

struct photo {
	uint8_t packed[PIXELS];
	float light[PIXELS];
	float scratch[PIXELS];
	uint32_t histogram[256];
	uint64_t bits;
};

static int machine = -1;

/* From here on the calling thread draws as this kind of code does. Elsewhere than in the emulated machine nothing happens. */
static void draws(const char *kind)
{
	if (machine >= 0 && pwrite(machine, kind, strlen(kind), 0) < 0)
		machine = -1;
}

OWN void parse_header(struct photo *photo, uint32_t seed)
{
	draws("stress");
	for (int i = 0; i < PIXELS; i++) {
		seed = seed * 1664525 + 1013904223;
		photo->packed[i] = (seed >> 24) & (i / SIDE + 63);
	}
}

OWN void unpack_runs(struct photo *photo)
{
	draws("l2");
	for (int round = 0; round < 3; round++)
		for (int i = 1; i < PIXELS; i++)
			photo->packed[i] ^= photo->packed[i - 1] >> (photo->packed[i] & 7);
	for (int i = 0; i < PIXELS; i++)
		photo->light[i] = photo->packed[i] / 255.0f;
}

OWN void load(struct photo *photo, uint32_t seed)
{
	parse_header(photo, seed);
	unpack_runs(photo);
}

OWN void blur_rows(const float *from, float *to)
{
	for (int y = 0; y < SIDE; y++)
		for (int x = 0; x < SIDE; x++) {
			float sum = 0;
			for (int k = -6; k <= 6; k++)
				sum += from[y * SIDE + ((x + k + SIDE) % SIDE)];
			to[y * SIDE + x] = sum / 13;
		}
}

OWN void blur_columns(const float *from, float *to)
{
	for (int y = 0; y < SIDE; y++)
		for (int x = 0; x < SIDE; x++) {
			float sum = 0;
			for (int k = -6; k <= 6; k++)
				sum += from[((y + k + SIDE) % SIDE) * SIDE + x];
			to[y * SIDE + x] = sum / 13;
		}
}

OWN void blur(struct photo *photo)
{
	draws("asm");
	blur_rows(photo->light, photo->scratch);
	draws("mem");
	blur_columns(photo->scratch, photo->light);
}

OWN void tone_map(struct photo *photo)
{
	draws("l1");
	for (int i = 0; i < PIXELS; i++)
		photo->light[i] = powf(photo->light[i] + 0.01f, 0.45f);
}

OWN void develop(struct photo *photo)
{
	blur(photo);
	tone_map(photo);
}

OWN void transform_blocks(struct photo *photo)
{
	draws("l3");
	for (int block = 0; block < PIXELS / 64; block++)
		for (int u = 0; u < 64; u++) {
			float sum = 0;
			for (int i = 0; i < 64; i++)
				sum += photo->light[block * 64 + i] * (float)((i * (2 * u + 1)) % 32 - 16);
			photo->scratch[block * 64 + u] = sum;
		}
}

OWN void count_symbols(struct photo *photo)
{
	draws("l1");
	for (int i = 0; i < PIXELS; i++)
		photo->histogram[(uint8_t)photo->scratch[i]]++;
}

OWN void write_bits(struct photo *photo)
{
	draws("stress");
	for (int i = 0; i < PIXELS; i++)
		photo->bits = photo->bits * 31 + photo->histogram[i & 255];
}

OWN void save(struct photo *photo)
{
	transform_blocks(photo);
	count_symbols(photo);
	write_bits(photo);
}

static long photos = 20;

static void *worker(void *number)
{
	struct photo *photo = calloc(1, sizeof(*photo));
	char name[16];

	if (!photo)
		abort();
	snprintf(name, sizeof(name), "worker-%ld", (long)number);
	pthread_setname_np(pthread_self(), name);
	for (long i = 0; i < photos; i++) {
		load(photo, (uint32_t)i);
		develop(photo);
		save(photo);
	}
	printf("%s: %lx\n", name, (unsigned long)photo->bits);
	free(photo);
	return NULL;
}

int main(int count, char **words)
{
	pthread_t threads[2];

	if (count > 1)
		photos = atol(words[1]);
	machine = open("/proc/simhw", O_WRONLY);
	for (long i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, worker, (void *)i))
			abort();
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
