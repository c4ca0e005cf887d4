#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "stream.h"

static void add_to(Totals* totals, const char* key, size_t length, int64_t amount, Disposition disposition) {
  Line* line = totals_line(totals, key, length);
  line->orders++;
  line->ordered += amount;
  if (disposition < MONEY_DISPOSITIONS) line->by_disposition[disposition] += amount;
}

void count_order(Report* report, const Audit* audit) {
  const Order* order = &audit->order;
  report->orders_read++;
  report->by_disposition[audit->disposition]++;
  if (audit->disposition == BAD_ROW) return;
  char key[2 * NAME + 16];
  size_t length;
  if (audit->own && audit->own->environment[0] == 'S') {
    length = (size_t)sprintf(key, "%s%c%s%c%s", order->user_id, 0, order->product_id, 0, order->currency) + 1;
    add_to(&report->by_sandbox_user, key, length, order->amount, audit->disposition);
  }
  if (audit->disposition == SANDBOX) return;
  length = (size_t)sprintf(key, "%s%c%s", order->user_id, 0, order->currency) + 1;
  add_to(&report->by_user, key, length, order->amount, audit->disposition);
  // The amount's bytes from the most significant one, so that keys sort by value.
  uint64_t value = __builtin_bswap64((uint64_t)order->amount);
  memcpy(key, order->currency, 4);
  memcpy(key + 4, &value, 8);
  strcpy(key + 12, order->product_id);
  add_to(&report->by_price, key, 12 + strlen(order->product_id) + 1, order->amount, audit->disposition);
  add_to(&report->by_currency, order->currency, 4, order->amount, audit->disposition);
}

static void put_line(Table* table, const Line* line, int digits) {
  put_count(table, line->orders);
  put_money(table, line->ordered, digits);
  for (int index = 0; index < MONEY_DISPOSITIONS; index++) put_money(table, line->by_disposition[index], digits);
  end_row(table);
}

void write_totals(Report* report) {
  totals_sort(&report->by_user);
  for (size_t index = 0; index < report->by_user.count; index++) {
    const Line* line = &report->by_user.lines[index];
    const char *user = report->by_user.keys + line->key, *currency = user + strlen(user) + 1;
    put_text(&report->users, user);
    put_text(&report->users, currency);
    put_line(&report->users, line, currency_digits(currency));
  }
  totals_sort(&report->by_price);
  for (size_t index = 0; index < report->by_price.count; index++) {
    const Line* line = &report->by_price.lines[index];
    const char* currency = report->by_price.keys + line->key;
    int digits = currency_digits(currency);
    uint64_t value;
    memcpy(&value, currency + 4, 8);
    put_text(&report->amounts, currency);
    put_money(&report->amounts, (int64_t)__builtin_bswap64(value), digits);
    put_text(&report->amounts, currency + 12);
    put_line(&report->amounts, line, digits);
  }
  totals_sort(&report->by_sandbox_user);
  for (size_t index = 0; index < report->by_sandbox_user.count; index++) {
    const Line* line = &report->by_sandbox_user.lines[index];
    const char *user = report->by_sandbox_user.keys + line->key, *product = user + strlen(user) + 1;
    const char* currency = product + strlen(product) + 1;
    bool is_allowed = bsearch(user, report->rules.testers, (size_t)report->rules.tester_count, ID,
                              (int (*)(const void*, const void*))strcmp);
    put_text(&report->sandbox, user);
    put_text(&report->sandbox, product);
    put_text(&report->sandbox, currency);
    put_count(&report->sandbox, line->orders);
    put_money(&report->sandbox, line->ordered, currency_digits(currency));
    put_text(&report->sandbox, is_allowed ? "true" : "false");
    end_row(&report->sandbox);
  }
}

void write_summary(Report* report, const char* directory) {
  char path[4096];
  snprintf(path, sizeof path, "%s/summary.json", directory);
  FILE* file = fopen(path, "w");
  if (!file) fail(path, strerror(errno));
  fprintf(file, "{\n  \"complete\": true,\n  \"orders\": {\"read\": %lld},\n  \"dispositions\": {",
          (long long)report->orders_read);
  totals_sort(&report->by_currency);
  for (int index = 0; index < DISPOSITIONS; index++) {
    put_text(&report->summary, disposition_names[index]);
    put_count(&report->summary, report->by_disposition[index]);
    end_row(&report->summary);
    fprintf(file, "%s\n    \"%s\": {\"orders\": %lld, \"amount\": {", index ? "," : "", disposition_names[index],
            (long long)report->by_disposition[index]);
    for (size_t line = 0; line < report->by_currency.count && index < MONEY_DISPOSITIONS; line++) {
      const Line* sum = &report->by_currency.lines[line];
      const char* currency = report->by_currency.keys + sum->key;
      char amount[32];
      amount[print_money(amount, sum->by_disposition[index], currency_digits(currency))] = 0;
      fprintf(file, "%s\"%s\": \"%s\"", line ? ", " : "", currency, amount);
    }
    fprintf(file, "}}");
  }
  fprintf(file, "\n  },\n  \"findings\": {\"open\": {");
  for (int kind = 0; kind < KIND_COUNT; kind++) {
    put_text(&report->summary, kind_names[kind]);
    put_count(&report->summary, report->by_kind[kind]);
    end_row(&report->summary);
    fprintf(file, "%s\n    \"%s\": %lld", kind ? "," : "", kind_names[kind], (long long)report->by_kind[kind]);
  }
  fprintf(file, "\n  }}\n}\n");
  if (fclose(file)) fail(path, strerror(errno));
}
