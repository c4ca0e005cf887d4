// The floor of the benchmark: the least work that gives the same files. Merges orders and transactions from ordered
// binary COPY streams, sums, and writes CSV or a workbook. Reads all decisions from tables.
//
//   floor DIRECTORY csv|xlsx AS-OF      AS-OF in seconds since 1970
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "stream.h"

int currency_digits(const char* code) {
  static const struct {
    char code[4];
    int digits;
  } known[] = {
      {"USD", 2}, {"EUR", 2}, {"JPY", 0}, {"GBP", 2}, {"KWD", 3}, {"INR", 2}, {"BRL", 2}, {"KRW", 0}, {"CHF", 2},
  };
  for (size_t index = 0; index < sizeof known / sizeof *known; index++) {
    if (strncmp(known[index].code, code, 4) == 0) return known[index].digits;
  }
  return -1;
}

int main(int count, char** arguments) {
  if (count != 4) {
    fprintf(stderr, "usage: floor DIRECTORY csv|xlsx AS-OF\n");
    return 64;
  }
  static Report report;
  const char* directory = arguments[1];
  Book* book = &report.book;
  if (strcmp(arguments[2], "xlsx") == 0) book_open(book, directory);
  table_open(
      &report.findings, book, directory, "findings.csv", "Findings",
      "finding_id,kind,severity,order_id,user_id,product_id,transaction_id,receipt_id,delivery_id,environment,currency,"
      "amount,at_stake,paid_at,delivered_at,first_seen,age_days,status,owner,reason,suggested_action,"
      "occurred_at,days_since,due,remark,app,country,business_day");
  table_open(&report.users, book, directory, "users.csv", "Users",
             "user_id,currency,orders,ordered," MONEY_DISPOSITIONS);
  table_open(&report.amounts, book, directory, "amounts.csv", "Amounts",
             "currency,amount,product_id,orders,ordered," MONEY_DISPOSITIONS ",app");
  table_open(&report.products, book, directory, "products.csv", "Products",
             "app,product_id,country,currency,orders,ordered," MONEY_DISPOSITIONS);
  table_open(&report.refunds, book, directory, "refunds.csv", "Refunds",
             "transaction_id,order_id,user_id,product_id,currency,amount,percentage,purchased_at,refunded_at,reason,"
             "disposition,app");
  table_open(&report.sandbox, book, directory, "sandbox.csv", "Sandbox",
             "user_id,product_id,currency,orders,amount,allowed");
  table_open(
      &report.receipts, book, directory, "receipts.csv", "Receipts",
      "receipt_id,order_id,user_id,kind,channel,environment,outcome,apple_status,attempts,last_attempt,next_attempt,"
      "received_at,reason");
  table_open(
      &report.orders, book, directory, "orders.csv", "Orders",
      "order_id,user_id,product_id,quantity,currency,amount,status,disposition,payment,payment_reason,transaction_id,"
      "environment,created_at,paid_at,delivered_at,refunded_at,checked_at,findings,app,country,business_day");

  PGconn* holder = connect_reader(NULL);
  PGresult* exported = PQexec(holder, "SELECT pg_export_snapshot()");
  if (PQresultStatus(exported) != PGRES_TUPLES_OK) fail("the snapshot", PQerrorMessage(holder));
  const char* snapshot = PQgetvalue(exported, 0, 0);
  read_receipts(&report, snapshot);
  read_orders(&report, snapshot);
  read_findings(&report, snapshot);
  read_refunds(&report, snapshot);
  PQclear(exported);
  PQfinish(holder);

  write_totals(&report);
  Table* tables[] = {&report.findings, &report.users,    &report.amounts,  &report.products,
                     &report.refunds,  &report.sandbox,  &report.receipts, &report.orders};
  for (size_t index = 0; index < sizeof tables / sizeof *tables; index++) table_close(tables[index]);
  totals_free(&report.by_user);
  totals_free(&report.by_price);
  totals_free(&report.by_product);
  totals_free(&report.by_sandbox_user);
  if (book->workbook) book_close(book);
  return 0;
}
