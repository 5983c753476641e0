// Quicksort and heapsort of numbers from a generator, for the benchmarks.
#include <stdint.h>

enum { count = 20000 };
static uint32_t numbers[count];

static void fill(uint32_t x) {
  for (int i = 0; i < count; i++) numbers[i] = x = x * 1664525 + 1013904223;
}

static void swap(uint32_t *a, uint32_t *b) {
  uint32_t t = *a;
  *a = *b;
  *b = t;
}

static void quicksort(uint32_t *v, int low, int high) {
  while (low < high) {
    uint32_t pivot = v[(low + high) / 2];
    int i = low, j = high;
    while (i <= j) {
      while (v[i] < pivot) i++;
      while (v[j] > pivot) j--;
      if (i <= j) swap(&v[i++], &v[j--]);
    }
    quicksort(v, low, j);
    low = i;
  }
}

static void sift(uint32_t *v, int root, int size) {
  for (int child; (child = 2 * root + 1) < size; root = child) {
    if (child + 1 < size && v[child] < v[child + 1]) child++;
    if (v[root] >= v[child]) return;
    swap(&v[root], &v[child]);
  }
}

static void heapsort(uint32_t *v, int size) {
  for (int i = size / 2 - 1; i >= 0; i--) sift(v, i, size);
  while (size > 1) {
    swap(&v[0], &v[--size]);
    sift(v, 0, size);
  }
}

__attribute__((export_name("run"))) uint32_t run(uint32_t seed) {
  fill(seed);
  quicksort(numbers, 0, count - 1);
  uint32_t middle = numbers[count / 2];
  fill(seed);
  heapsort(numbers, count);
  return middle == numbers[count / 2] ? middle : 0;
}
