#include <stdio.h>
#include <string.h>

#include "report.h"
#include "stream.h"

// The column of a disposition's money; -1 if it is not counted.
static int column_of(const char* disposition) {
  size_t length = strlen(disposition);
  int column = 0;
  for (const char* name = MONEY_DISPOSITIONS; name; name = strchr(name, ','), name += name != NULL, column++) {
    if (strncmp(name, disposition, length) == 0 && (name[length] == ',' || name[length] == 0)) return column;
  }
  return -1;
}

static void add_to(Totals* totals, const char* key, size_t length, int64_t amount, int column) {
  Line* line = totals_line(totals, key, length);
  line->orders++;
  line->ordered += amount;
  if (column >= 0) line->by_disposition[column] += amount;
}

void count_order(Report* report, const Order* order, const Outcome* outcome) {
  int column = column_of(outcome->disposition);
  char key[2 * NAME + 16];
  size_t length;
  if (strcmp(outcome->environment, "Sandbox") == 0) {
    // Permitted test purchases are not counted.
    char allowed = column < 0 ? 1 : 0;
    length = (size_t)sprintf(key, "%s%c%s%c%s", order->user_id, 0, order->product_id, 0, order->currency) + 1;
    key[length++] = allowed;
    add_to(&report->by_sandbox_user, key, length, order->amount, column);
  }
  if (column < 0) return;
  length = (size_t)sprintf(key, "%s%c%s", order->user_id, 0, order->currency) + 1;
  add_to(&report->by_user, key, length, order->amount, column);
  const char* app = app_of(order);
  length = (size_t)sprintf(key, "%s%c%s%c%s", app, 0, order->product_id, 0, order->currency) + 1;
  add_to(&report->by_product, key, length, order->amount, column);
  // Big-endian, so that keys sort by value.
  uint64_t value = __builtin_bswap64((uint64_t)order->amount);
  memcpy(key, order->currency, 4);
  memcpy(key + 4, &value, 8);
  strcpy(key + 12, order->product_id);
  length = 12 + strlen(order->product_id) + 1;
  strcpy(key + length, app);
  add_to(&report->by_price, key, length + strlen(app) + 1, order->amount, column);
}

static void put_line(Table* table, const Line* line, int digits) {
  put_count(table, line->orders);
  put_money(table, line->ordered, digits);
  for (int index = 0; index < MONEY_COLUMNS; index++) put_money(table, line->by_disposition[index], digits);
}

void write_totals(Report* report) {
  totals_sort(&report->by_user);
  for (size_t index = 0; index < report->by_user.count; index++) {
    const Line* line = &report->by_user.lines[index];
    const char *user = report->by_user.keys + line->key, *currency = user + strlen(user) + 1;
    put_text(&report->users, user);
    put_text(&report->users, currency);
    put_line(&report->users, line, currency_digits(currency));
    end_row(&report->users);
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
    put_text(&report->amounts, currency + 12 + strlen(currency + 12) + 1);
    end_row(&report->amounts);
  }
  totals_sort(&report->by_product);
  for (size_t index = 0; index < report->by_product.count; index++) {
    const Line* line = &report->by_product.lines[index];
    const char *app = report->by_product.keys + line->key, *product = app + strlen(app) + 1;
    const char* currency = product + strlen(product) + 1;
    put_text(&report->products, app);
    put_text(&report->products, product);
    put_nothing(&report->products);
    put_text(&report->products, currency);
    put_line(&report->products, line, currency_digits(currency));
    end_row(&report->products);
  }
  totals_sort(&report->by_sandbox_user);
  for (size_t index = 0; index < report->by_sandbox_user.count; index++) {
    const Line* line = &report->by_sandbox_user.lines[index];
    const char *user = report->by_sandbox_user.keys + line->key, *product = user + strlen(user) + 1;
    const char* currency = product + strlen(product) + 1;
    bool is_allowed = currency[strlen(currency) + 1];
    put_text(&report->sandbox, user);
    put_text(&report->sandbox, product);
    put_text(&report->sandbox, currency);
    put_count(&report->sandbox, line->orders);
    put_money(&report->sandbox, line->ordered, currency_digits(currency));
    put_text(&report->sandbox, is_allowed ? "true" : "false");
    end_row(&report->sandbox);
  }
}
