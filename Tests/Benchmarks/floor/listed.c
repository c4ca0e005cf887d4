// Tables whose rows are listed as they are read.
#include "report.h"
#include "stream.h"

// One letter for each column: t text, m money of the currency column, i instant, d day, c count.
static void list(Table* table, const char* snapshot, const char* query, const char* kinds, int currency_column) {
  Stream stream;
  stream_open(&stream, snapshot, query);
  while (stream_next(&stream)) {
    char currency[8];
    copy_text(&stream, currency_column, currency, sizeof currency);
    int digits = currency_digits(currency);
    for (int column = 0; kinds[column]; column++) {
      int64_t amount = NONE;
      switch (kinds[column]) {
        case 't':
          put_field(table, &stream, column);
          break;
        case 'm':
          if (!is_null(&stream, column) && !minor_units(&stream, column, digits, &amount))
            fail("an amount", "has too many decimals");
          put_money(table, amount, digits);
          break;
        case 'i':
          put_time(table, instant(&stream, column));
          break;
        case 'd':
          put_day(table, instant(&stream, column));
          break;
        case 'c':
          put_count(table, integer(&stream, column));
          break;
      }
    }
    end_row(table);
  }
}

void read_findings(Report* report, const char* snapshot) {
  list(&report->findings, snapshot,
       "SELECT finding_id, kind, severity, order_id, user_id, product_id, transaction_id, receipt_id, delivery_id, "
       "environment, currency, amount, at_stake, paid_at, delivered_at, first_seen, age_days, status, owner, reason, "
       "suggested_action, occurred_at, days_since, due, remark, app, country, business_day FROM floor.findings ORDER BY finding_id",
       "tttttttttttmmiiictttticttttd", 10);
}

void read_refunds(Report* report, const char* snapshot) {
  list(&report->refunds, snapshot,
       "SELECT transaction_id, order_id, user_id, product_id, currency, amount, percentage, purchased_at, "
       "refunded_at, reason, disposition, app FROM floor.refunds ORDER BY transaction_id",
       "tttttmtiittt", 4);
}
