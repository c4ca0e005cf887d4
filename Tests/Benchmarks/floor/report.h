// The tables and sums of the report.
#ifndef REPORT_H
#define REPORT_H

#include "table.h"
#include "totals.h"

#define ID 40
#define NAME 64
#define LIST 512

// The outcome of an order: joined for settled orders, read from a table for the others.
typedef struct {
  char disposition[NAME], payment[NAME], reason[NAME], transaction_id[ID], environment[16], findings[LIST];
  int64_t paid, delivered, refunded, checked;
} Outcome;

// The one app of the benchmark's shop.
#define APP "game"
#define BUNDLE "com.example.game"

typedef struct {
  char order_id[ID], user_id[ID], bundle_id[NAME], product_id[NAME], currency[8], status[16], amount_text[32];
  int digits;
  // NONE: not an amount of the currency; the text is read from a table.
  int64_t amount, quantity, created;
} Order;

typedef struct {
  Book book;
  Table findings, users, amounts, products, refunds, sandbox, receipts, orders;
  Totals by_user, by_price, by_product, by_sandbox_user;
} Report;

// Decimal digits of a currency; -1 if the shop does not sell in it.
int currency_digits(const char* code);
// The name of an order's app; empty if the shop does not know its bundle identifier.
const char* app_of(const Order* order);

void read_orders(Report* report, const char* snapshot);
void read_receipts(Report* report, const char* snapshot);
void read_findings(Report* report, const char* snapshot);
void read_refunds(Report* report, const char* snapshot);

void count_order(Report* report, const Order* order, const Outcome* outcome);
void write_totals(Report* report);

#endif
