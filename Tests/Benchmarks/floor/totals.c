#include "totals.h"

#include <stdlib.h>
#include <string.h>

#include "stream.h"

static void* grown(void* memory, size_t size) {
  void* larger = realloc(memory, size);
  if (!larger) fail("memory", "there is none left");
  return larger;
}

static uint64_t hash(const char* bytes, size_t length) {
  // FNV-1a.
  uint64_t value = 0xcbf29ce484222325;
  for (size_t index = 0; index < length; index++) value = (value ^ (uint8_t)bytes[index]) * 0x100000001b3;
  return value ^ value >> 32;
}

static void grow_slots(Totals* totals) {
  totals->slot_count = totals->slot_count ? totals->slot_count * 2 : 1024;
  free(totals->slots);
  totals->slots = calloc(totals->slot_count, sizeof *totals->slots);
  if (!totals->slots) fail("memory", "there is none left");
  for (size_t index = 0; index < totals->count; index++) {
    Line* line = &totals->lines[index];
    size_t slot = hash(totals->keys + line->key, line->key_length) & (totals->slot_count - 1);
    while (totals->slots[slot]) slot = (slot + 1) & (totals->slot_count - 1);
    totals->slots[slot] = (uint32_t)index + 1;
  }
}

Line* totals_line(Totals* totals, const char* key, size_t length) {
  if (totals->count * 2 >= totals->slot_count) grow_slots(totals);
  size_t slot = hash(key, length) & (totals->slot_count - 1);
  for (; totals->slots[slot]; slot = (slot + 1) & (totals->slot_count - 1)) {
    Line* line = &totals->lines[totals->slots[slot] - 1];
    if (line->key_length == length && memcmp(totals->keys + line->key, key, length) == 0) return line;
  }
  if (totals->count == totals->capacity) {
    totals->capacity = totals->capacity ? totals->capacity * 2 : 512;
    totals->lines = grown(totals->lines, totals->capacity * sizeof *totals->lines);
  }
  if (totals->key_bytes + length > totals->key_capacity) {
    totals->key_capacity = (totals->key_bytes + length) * 2;
    totals->keys = grown(totals->keys, totals->key_capacity);
  }
  Line* line = &totals->lines[totals->count++];
  *line = (Line){.key = (uint32_t)totals->key_bytes, .key_length = (uint32_t)length};
  memcpy(totals->keys + totals->key_bytes, key, length);
  totals->key_bytes += length;
  totals->slots[slot] = (uint32_t)totals->count;
  return line;
}

static int compare_lines(const void* left, const void* right, void* keys) {
  const Line *one = left, *other = right;
  uint32_t common = one->key_length < other->key_length ? one->key_length : other->key_length;
  int order = memcmp((char*)keys + one->key, (char*)keys + other->key, common);
  return order ? order : (int)one->key_length - (int)other->key_length;
}

void totals_sort(Totals* totals) {
  free(totals->slots);
  totals->slots = NULL;
  totals->slot_count = 0;
  qsort_r(totals->lines, totals->count, sizeof *totals->lines, compare_lines, totals->keys);
}

void totals_free(Totals* totals) {
  free(totals->lines);
  free(totals->keys);
  free(totals->slots);
  memset(totals, 0, sizeof *totals);
}
