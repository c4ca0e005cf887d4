// Rows that are listed as they are read.
#include "report.h"
#include "stream.h"

static void put_amount(Table* table, const Stream* stream, int column, int digits) {
  int64_t amount = NONE;
  if (!is_null(stream, column) && !minor_units(stream, column, digits, &amount)) fail("an amount", "has too many decimals");
  put_money(table, amount, digits);
}

void read_findings(Report* report, const char* snapshot) {
  Table* table = &report->findings;
  Stream stream;
  stream_open(&stream, snapshot,
              "SELECT finding_id, kind, severity, order_id, user_id, product_id, transaction_id, receipt_id, delivery_id, "
              "environment, currency, amount, at_stake, paid_at, delivered_at, first_seen, age_days, status, owner, reason, "
              "suggested_action, occurred_at, days_since, due, remark FROM floor.findings ORDER BY finding_id");
  while (stream_next(&stream)) {
    char currency[8];
    copy_text(&stream, 10, currency, sizeof currency);
    for (int column = 0; column <= 10; column++) put_field(table, &stream, column);
    for (int column = 11; column <= 12; column++) put_amount(table, &stream, column, currency_digits(currency));
    for (int column = 13; column <= 15; column++) put_time(table, instant(&stream, column));
    put_count(table, integer(&stream, 16));
    for (int column = 17; column <= 20; column++) put_field(table, &stream, column);
    put_time(table, instant(&stream, 21));
    put_count(table, integer(&stream, 22));
    for (int column = 23; column <= 24; column++) put_field(table, &stream, column);
    end_row(table);
  }
}

void read_refunds(Report* report, const char* snapshot) {
  Table* table = &report->refunds;
  Stream stream;
  stream_open(&stream, snapshot,
              "SELECT transaction_id, order_id, user_id, product_id, currency, amount, percentage, purchased_at, "
              "refunded_at, reason, disposition FROM floor.refunds ORDER BY transaction_id");
  while (stream_next(&stream)) {
    char currency[8];
    copy_text(&stream, 4, currency, sizeof currency);
    for (int column = 0; column <= 4; column++) put_field(table, &stream, column);
    put_amount(table, &stream, 5, currency_digits(currency));
    put_field(table, &stream, 6);
    for (int column = 7; column <= 8; column++) put_time(table, instant(&stream, column));
    for (int column = 9; column <= 10; column++) put_field(table, &stream, column);
    end_row(table);
  }
}
