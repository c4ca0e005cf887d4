// Counts and sums by key: user and currency, price point, or sandbox user.
#ifndef TOTALS_H
#define TOTALS_H

#include <stddef.h>
#include <stdint.h>

// Dispositions whose money is counted, in the order of their columns.
#define MONEY_DISPOSITIONS                                                                                      \
  "settled,paid_not_delivered,delivered_not_paid,partly_delivered,refunded,refunded_still_delivered,in_flight," \
  "unconfirmed,void"
#define MONEY_COLUMNS 9

typedef struct {
  uint32_t key, key_length;
  int64_t orders, ordered;
  int64_t by_disposition[MONEY_COLUMNS];
} Line;

typedef struct {
  Line* lines;
  size_t count, capacity;
  char* keys;
  size_t key_bytes, key_capacity;
  uint32_t* slots;  // Line number plus one; 0 is free.
  size_t slot_count;
} Totals;

// The line with this key, created if it is missing. The pointer is valid until the next call.
Line* totals_line(Totals* totals, const char* key, size_t length);
// Sorts the lines by key; look-ups are invalid afterwards.
void totals_sort(Totals* totals);
void totals_free(Totals* totals);

#endif
