#include <string.h>

#include "report.h"
#include "stream.h"

#define TRANSACTION_COLUMNS                                                                                 \
  "t.transaction_id, t.original_transaction_id, t.environment, t.product_id, t.bundle_id, t.quantity, "     \
  "t.purchased_at, "                                                                                        \
  "t.expires_at, t.subscription_expires_at, t.revoked_at, t.revocation_percentage, t.revocation_type, "     \
  "t.revocation_reason, "                                                                                   \
  "t.revocation_withdrawn_at, t.price_milliunits, t.currency, t.tells_account_token, t.app_account_token, " \
  "t.ownership, "                                                                                           \
  "t.is_renewal, t.has_offer, t.is_contradictory, t.checked_at"

static void read_order(const Stream* stream, Order* order) {
  copy_text(stream, 0, order->order_id, ID);
  copy_text(stream, 1, order->user_id, ID);
  copy_text(stream, 2, order->bundle_id, NAME);
  copy_text(stream, 3, order->product_id, NAME);
  order->quantity = integer(stream, 4);
  copy_text(stream, 6, order->currency, sizeof order->currency);
  copy_text(stream, 7, order->status, sizeof order->status);
  order->created = instant(stream, 10);
  order->digits = currency_digits(order->currency);
  order->amount_text[0] = 0;
  if (order->digits < 0 || !minor_units(stream, 5, order->digits, &order->amount)) order->amount = NONE;
}

const char* app_of(const Order* order) {
  return order->bundle_id[0] && strcmp(order->bundle_id, BUNDLE) != 0 ? "" : APP;
}

static void take_transaction(const Stream* stream, Outcome* outcome) {
  copy_text(stream, 1, outcome->transaction_id, ID);
  copy_text(stream, 3, outcome->environment, sizeof outcome->environment);
  outcome->paid = instant(stream, 7);
  outcome->checked = instant(stream, 23);
}

static void take_outcome(const Stream* stream, Order* order, Outcome* outcome) {
  copy_text(stream, 1, outcome->disposition, NAME);
  copy_text(stream, 2, outcome->payment, NAME);
  copy_text(stream, 3, outcome->reason, NAME);
  copy_text(stream, 4, outcome->transaction_id, ID);
  copy_text(stream, 5, outcome->environment, sizeof outcome->environment);
  outcome->paid = instant(stream, 6);
  outcome->delivered = instant(stream, 7);
  outcome->refunded = instant(stream, 8);
  outcome->checked = instant(stream, 9);
  copy_text(stream, 10, outcome->findings, LIST);
  if (order->amount == NONE) copy_text(stream, 11, order->amount_text, sizeof order->amount_text);
}

static void write_order(Table* table, const Order* order, const Outcome* outcome) {
  put_text(table, order->order_id);
  put_text(table, order->user_id);
  put_text(table, order->product_id);
  put_count(table, order->quantity);
  put_text(table, order->currency);
  if (order->amount == NONE) {
    put_text(table, order->amount_text);
  } else {
    put_money(table, order->amount, order->digits);
  }
  put_text(table, order->status);
  put_text(table, outcome->disposition);
  put_text(table, outcome->payment);
  put_text(table, outcome->reason);
  put_text(table, outcome->transaction_id);
  put_text(table, outcome->environment);
  put_time(table, order->created);
  put_time(table, outcome->paid);
  put_time(table, outcome->delivered);
  put_time(table, outcome->refunded);
  put_time(table, outcome->checked);
  put_text(table, outcome->findings);
  put_text(table, app_of(order));
  put_nothing(table);
  put_day(table, order->created);
  end_row(table);
}

// True if the stream has a row of the order; skips rows of earlier orders.
static bool stands_at(Stream* stream, bool* has_row, const char* order_id) {
  for (int order; *has_row && !is_null(stream, 0); *has_row = stream_next(stream)) {
    if ((order = compare_text(stream, 0, order_id)) >= 0) return order == 0;
  }
  return false;
}

static void finish(Stream* stream, bool has_row) {
  while (has_row) has_row = stream_next(stream);
}

void read_orders(Report* report, const char* snapshot) {
  Stream orders, deliveries, transactions, outcomes;
  stream_open(&orders, snapshot,
              "SELECT order_id, user_id, bundle_id, product_id, quantity, amount, currency, status, transaction_id, "
              "app_account_token, created_at, verified_at FROM sales.orders ORDER BY order_id");
  stream_open(&deliveries, snapshot,
              "SELECT order_id, delivery_id, user_id, product_id, quantity, delivered_at, revoked_at "
              "FROM sales.deliveries ORDER BY order_id");
  stream_open(&transactions, snapshot,
              "SELECT t.order_id, " TRANSACTION_COLUMNS " FROM floor.transactions t ORDER BY t.order_id");
  stream_open(&outcomes, snapshot,
              "SELECT order_id, disposition, payment, payment_reason, transaction_id, environment, paid_at, delivered_at, "
              "refunded_at, checked_at, findings, amount FROM floor.outcomes ORDER BY order_id");
  bool has_delivery = stream_next(&deliveries), has_transaction = stream_next(&transactions),
       has_outcome = stream_next(&outcomes);
  while (stream_next(&orders)) {
    Order order;
    Outcome outcome = {.disposition = "settled", .payment = "paid", .paid = NONE, .delivered = NONE, .refunded = NONE,
                       .checked = NONE};
    read_order(&orders, &order);
    for (; stands_at(&deliveries, &has_delivery, order.order_id); has_delivery = stream_next(&deliveries)) {
      int64_t delivered = instant(&deliveries, 5);
      if (is_null(&deliveries, 6) && delivered > outcome.delivered) outcome.delivered = delivered;
    }
    for (; stands_at(&transactions, &has_transaction, order.order_id); has_transaction = stream_next(&transactions)) {
      take_transaction(&transactions, &outcome);
    }
    if (stands_at(&outcomes, &has_outcome, order.order_id)) take_outcome(&outcomes, &order, &outcome);
    write_order(&report->orders, &order, &outcome);
    count_order(report, &order, &outcome);
  }
  finish(&deliveries, has_delivery);
  finish(&transactions, has_transaction);
  finish(&outcomes, has_outcome);
}
