// The report as it grows: its tables, and what is added up.
#ifndef REPORT_H
#define REPORT_H

#include "audit.h"
#include "table.h"
#include "totals.h"

typedef struct {
  Rules rules;
  Book book;
  Table summary, findings, users, amounts, refunds, sandbox, receipts, orders;
  Totals by_user, by_price, by_sandbox_user, by_currency;
  Proof* proofs;
  size_t proof_count, proof_capacity;
  int64_t orders_read, by_disposition[DISPOSITIONS], by_kind[KIND_COUNT];
} Report;

typedef struct {
  Kind kind;
  const char *subject, *order_id, *user_id, *product_id, *transaction_id, *receipt_id, *delivery_id, *environment,
      *currency, *reason;
  int64_t amount, at_stake, paid, delivered;
  int digits;
} FindingRow;

// One line of findings.csv, whatever it stands on.
void write_finding(Report* report, const FindingRow* row);
void write_findings(Report* report, const Audit* audit);
// The order of a refund is NULL when nobody claims the transaction.
void write_refund(Report* report, const Transaction* transaction, const Audit* audit);
void write_order(Report* report, const Audit* audit);

void count_order(Report* report, const Audit* audit);
void write_totals(Report* report);
void write_summary(Report* report, const char* directory);

// Lists every receipt and keeps the proofs that say more than the transactions that they brought.
void read_receipts(Report* report, const char* snapshot);
// Merges and decides the orders.
void read_orders(Report* report, const char* snapshot);
// Transactions that no order stands for: lost payments, and renewals that nobody booked.
void read_orphans(Report* report, const char* snapshot);

#endif
