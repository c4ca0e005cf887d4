// The report as it grows: its tables, and what is added up.
#ifndef REPORT_H
#define REPORT_H

#include "table.h"
#include "totals.h"

#define ID 40
#define NAME 64
#define LIST 512

// What an order comes to. Nothing is decided here: of plain orders it is what was joined to them, of all others it is read.
typedef struct {
  char disposition[NAME], payment[NAME], reason[NAME], transaction_id[ID], environment[16], findings[LIST];
  int64_t paid, delivered, refunded, checked;
} Outcome;

typedef struct {
  char order_id[ID], user_id[ID], product_id[NAME], currency[8], status[16], amount_text[32];
  int digits;
  // NONE: it is no amount of that currency; what the shop wrote is read ready.
  int64_t amount, quantity, created;
} Order;

typedef struct {
  Book book;
  Table findings, users, amounts, refunds, sandbox, receipts, orders;
  Totals by_user, by_price, by_sandbox_user;
} Report;

// Decimal digits of a currency's minor unit; -1 for one that the shop does not sell in.
int currency_digits(const char* code);

// Merges the orders with what belongs to them, writes them, and adds them up.
void read_orders(Report* report, const char* snapshot);
// Lists every receipt with its check.
void read_receipts(Report* report, const char* snapshot);
// Lists findings and refunds.
void read_findings(Report* report, const char* snapshot);
void read_refunds(Report* report, const char* snapshot);

void count_order(Report* report, const Order* order, const Outcome* outcome);
void write_totals(Report* report);

#endif
