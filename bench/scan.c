/*
 * The yardstick: a native float32 flat scan with top 10, one thread. gcc -O3 -march=native -ffast-math scan.c -o scan
 * Reads commands from stdin and answers each with one line, so that a bench can take turns with it:
 *   scan FILE ROWS DIMENSION QUERIES   once, as arguments; FILE holds f32[ROWS + QUERIES][DIMENSION]
 *   > QUERY METRIC                     METRIC 0 dot, 1 l2, 2 l1
 *   < MILLISECONDS ROW ROW ... ROW     the ten best rows, best first
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define K 10
#define UNROLL 64

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static float dot(const float *x, const float *q, long d) {
  float a[UNROLL] = {0}, s = 0;
  long j = 0;
  for (; j + UNROLL <= d; j += UNROLL)
    for (int u = 0; u < UNROLL; u++) a[u] += x[j + u] * q[j + u];
  for (; j < d; j++) s += x[j] * q[j];
  for (int u = 0; u < UNROLL; u++) s += a[u];
  return s;
}

static float l2(const float *x, const float *q, long d) {
  float a[UNROLL] = {0}, s = 0;
  long j = 0;
  for (; j + UNROLL <= d; j += UNROLL)
    for (int u = 0; u < UNROLL; u++) {
      float z = x[j + u] - q[j + u];
      a[u] += z * z;
    }
  for (; j < d; j++) s += (x[j] - q[j]) * (x[j] - q[j]);
  for (int u = 0; u < UNROLL; u++) s += a[u];
  return -s;
}

static float l1(const float *x, const float *q, long d) {
  float a[UNROLL] = {0}, s = 0;
  long j = 0;
  for (; j + UNROLL <= d; j += UNROLL)
    for (int u = 0; u < UNROLL; u++) a[u] += __builtin_fabsf(x[j + u] - q[j + u]);
  for (; j < d; j++) s += __builtin_fabsf(x[j] - q[j]);
  for (int u = 0; u < UNROLL; u++) s += a[u];
  return -s;
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  long n = atol(argv[2]), d = atol(argv[3]), queries = atol(argv[4]), query;
  size_t count = (size_t)(n + queries) * d;
  float *data = aligned_alloc(64, (count * 4 + 63) / 64 * 64);
  FILE *file = fopen(argv[1], "rb");
  if (!data || !file || fread(data, 4, count, file) != count) return 1;
  int metric;
  while (scanf("%ld %d", &query, &metric) == 2) {
    const float *q = data + (n + query) * d;
    float score[K];
    long row[K];
    for (int i = 0; i < K; i++) score[i] = -3e38f, row[i] = -1;
    double start = now();
    for (long i = 0; i < n; i++) {
      const float *x = data + i * d;
      float s = metric == 0 ? dot(x, q, d) : metric == 1 ? l2(x, q, d) : l1(x, q, d);
      if (s > score[K - 1]) {
        int w = K - 1;
        for (; w > 0 && score[w - 1] < s; w--) score[w] = score[w - 1], row[w] = row[w - 1];
        score[w] = s, row[w] = i;
      }
    }
    printf("%.4f", now() - start);
    for (int i = 0; i < K; i++) printf(" %ld", row[i]);
    printf("\n");
    fflush(stdout);
  }
  return 0;
}
