// The floor of the benchmark: the least work that gives the same files. Reads the orders' side and Apple's side by
// ordered binary COPY streams of single tables, merges them, decides each order, and writes CSV and, on request, the
// workbook.
//
//   floor DIRECTORY csv|xlsx AS-OF TEST-USERS      AS-OF in seconds since 1970, TEST-USERS a sorted file of user ids
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "stream.h"

#define DISPOSITION_COLUMNS                                                                                     \
  "settled,paid_not_delivered,delivered_not_paid,partly_delivered,refunded,refunded_still_delivered,in_flight," \
  "unconfirmed,void"

static void read_testers(Rules* rules, const char* path) {
  FILE* file = fopen(path, "r");
  if (!file) fail(path, strerror(errno));
  char line[ID];
  while (fgets(line, sizeof line, file)) {
    rules->testers = realloc(rules->testers, (size_t)(rules->tester_count + 1) * ID);
    if (!rules->testers) fail("memory", "there is none left");
    line[strcspn(line, "\n")] = 0;
    strcpy(rules->testers[rules->tester_count++], line);
  }
  fclose(file);
}

int main(int count, char** arguments) {
  if (count != 5) {
    fprintf(stderr, "usage: floor DIRECTORY csv|xlsx AS-OF TEST-USERS\n");
    return 64;
  }
  static Report report;
  const char* directory = arguments[1];
  report.rules.as_of = strtoll(arguments[3], NULL, 10) * 1000000;
  read_testers(&report.rules, arguments[4]);
  Book* book = &report.book;
  if (strcmp(arguments[2], "xlsx") == 0) book_open(book, directory);
  table_open(&report.summary, book, directory, "summary.csv", "Summary", "name,count");
  table_open(
      &report.findings, book, directory, "findings.csv", "Findings",
      "finding_id,kind,severity,order_id,user_id,product_id,transaction_id,receipt_id,delivery_id,environment,currency,"
      "amount,at_stake,paid_at,delivered_at,first_seen,age_days,status,owner,reason,suggested_action");
  table_open(&report.users, book, directory, "users.csv", "Users",
             "user_id,currency,orders,ordered," DISPOSITION_COLUMNS);
  table_open(&report.amounts, book, directory, "amounts.csv", "Amounts",
             "currency,amount,product_id,orders,ordered," DISPOSITION_COLUMNS);
  table_open(&report.refunds, book, directory, "refunds.csv", "Refunds",
             "transaction_id,order_id,user_id,product_id,currency,amount,percentage,purchased_at,refunded_at,reason,"
             "disposition");
  table_open(&report.sandbox, book, directory, "sandbox.csv", "Sandbox",
             "user_id,product_id,currency,orders,amount,allowed");
  table_open(
      &report.receipts, book, directory, "receipts.csv", "Receipts",
      "receipt_id,order_id,user_id,kind,channel,environment,outcome,apple_status,attempts,last_attempt,due_from,"
      "age_days,reason");
  table_open(
      &report.orders, book, directory, "orders.csv", "Orders",
      "order_id,user_id,product_id,quantity,currency,amount,status,disposition,payment,payment_reason,transaction_id,"
      "environment,created_at,paid_at,delivered_at,refunded_at,checked_at,findings");
  table_sort_later(&report.findings, directory);
  table_sort_later(&report.refunds, directory);

  PGconn* holder = connect_reader(NULL);
  PGresult* exported = PQexec(holder, "SELECT pg_export_snapshot()");
  if (PQresultStatus(exported) != PGRES_TUPLES_OK) fail("the snapshot", PQerrorMessage(holder));
  const char* snapshot = PQgetvalue(exported, 0, 0);
  read_receipts(&report, snapshot);
  read_orders(&report, snapshot);
  read_orphans(&report, snapshot);
  PQclear(exported);
  PQfinish(holder);

  write_totals(&report);
  write_summary(&report, directory);
  Table* tables[] = {&report.summary, &report.findings, &report.users,    &report.amounts,
                     &report.refunds, &report.sandbox,  &report.receipts, &report.orders};
  for (size_t index = 0; index < sizeof tables / sizeof *tables; index++) table_close(tables[index]);
  totals_free(&report.by_user);
  totals_free(&report.by_price);
  totals_free(&report.by_sandbox_user);
  totals_free(&report.by_currency);
  if (book->workbook) book_close(book);
  free(report.proofs);
  free(report.rules.testers);
  return 0;
}
