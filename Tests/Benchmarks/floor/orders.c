#include <stdio.h>
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

// The columns above begin at the second one; the first is the order.
static void read_transaction(const Stream* stream, Transaction* one) {
  copy_text(stream, 1, one->transaction_id, ID);
  copy_text(stream, 2, one->original_id, ID);
  copy_text(stream, 3, one->environment, sizeof one->environment);
  copy_text(stream, 4, one->product_id, NAME);
  copy_text(stream, 5, one->bundle_id, NAME);
  one->quantity = integer(stream, 6);
  one->purchased = instant(stream, 7);
  one->is_subscription = !is_null(stream, 8);
  one->expires = is_null(stream, 9) ? instant(stream, 8) : instant(stream, 9);
  one->revoked = instant(stream, 10);
  one->percentage = integer(stream, 11);
  one->is_prorated = text_is(stream, 12, "REFUND_PRORATED");
  one->withdrawn = instant(stream, 14);
  one->price = integer(stream, 15);
  copy_text(stream, 16, one->currency, sizeof one->currency);
  one->tells_token = boolean(stream, 17);
  copy_text(stream, 18, one->token, ID);
  one->is_family = text_is(stream, 19, "FAMILY_SHARED");
  one->is_renewal = boolean(stream, 20);
  one->has_offer = boolean(stream, 21);
  one->is_contradictory = boolean(stream, 22);
  one->checked = instant(stream, 23);
  one->owner_order[0] = one->owner_user[0] = 0;
}

static Status status_of(const char* word) {
  static const char* const words[] = {"pending", "verified", "failed", "cancelled", "refunded"};
  for (int status = PENDING; status < UNKNOWN_STATUS; status++) {
    if (strcmp(words[status], word) == 0) return (Status)status;
  }
  return UNKNOWN_STATUS;
}

static void read_order(const Stream* stream, Order* order) {
  copy_text(stream, 0, order->order_id, ID);
  copy_text(stream, 1, order->user_id, ID);
  copy_text(stream, 2, order->bundle_id, NAME);
  copy_text(stream, 3, order->product_id, NAME);
  order->quantity = integer(stream, 4);
  copy_text(stream, 6, order->currency, sizeof order->currency);
  copy_text(stream, 7, order->status_text, sizeof order->status_text);
  copy_text(stream, 8, order->transaction_id, ID);
  copy_text(stream, 9, order->token, ID);
  order->created = instant(stream, 10);
  order->verified = instant(stream, 11);
  order->status = status_of(order->status_text);
  order->digits = currency_digits(order->currency);
  order->defect[0] = 0;
  const char* defect = NULL;
  if (order->quantity < 1) defect = "quantity is below 1";
  if (order->status == UNKNOWN_STATUS) defect = "status is none of pending, verified, failed, cancelled, refunded";
  if (order->digits < 0) {
    defect = "currency is no code of ISO 4217";
  } else if (!minor_units(stream, 5, order->digits, &order->amount)) {
    defect = "amount has more decimals than the currency";
  } else if (order->amount < 0) {
    defect = "amount is negative";
  }
  if (defect) strcpy(order->defect, defect);
}

static void orphan_delivery(Report* report, const Stream* stream) {
  char order[ID], delivery[ID], user[ID], product[NAME], reason[128];
  copy_text(stream, 0, order, ID);
  copy_text(stream, 1, delivery, ID);
  copy_text(stream, 2, user, ID);
  copy_text(stream, 3, product, NAME);
  snprintf(reason, sizeof reason,
           order[0] ? "The delivery names order %s, which does not exist." : "The delivery names no order.", order);
  write_finding(report, &(FindingRow){.kind = KIND_orphan_delivery,
                                      .subject = delivery,
                                      .order_id = order,
                                      .user_id = user,
                                      .product_id = product,
                                      .transaction_id = "",
                                      .receipt_id = "",
                                      .delivery_id = delivery,
                                      .environment = "",
                                      .currency = "",
                                      .reason = reason,
                                      .amount = NONE,
                                      .at_stake = NONE,
                                      .paid = NONE,
                                      .delivered = is_null(stream, 6) ? instant(stream, 5) : NONE,
                                      .digits = -1});
}

static void room(int rows, const char* order) {
  if (rows == ROWS) fail(order, "has too many rows");
}

void read_orders(Report* report, const char* snapshot) {
  Stream orders, deliveries, transactions, detours;
  stream_open(&orders, snapshot,
              "SELECT order_id, user_id, bundle_id, product_id, quantity, amount, currency, status, transaction_id, "
              "app_account_token, created_at, verified_at FROM sales.orders ORDER BY order_id");
  stream_open(&deliveries, snapshot,
              "SELECT order_id, delivery_id, user_id, product_id, quantity, delivered_at, revoked_at "
              "FROM sales.deliveries ORDER BY order_id");
  stream_open(&transactions, snapshot,
              "SELECT t.order_id, " TRANSACTION_COLUMNS
              " FROM floor.transactions t WHERE t.order_id IS NOT NULL ORDER BY t.order_id");
  stream_open(&detours, snapshot,
              "SELECT d.order_id, " TRANSACTION_COLUMNS
              ", t.order_id, o.user_id FROM floor.receipt_transactions d "
              "JOIN floor.transactions t USING (transaction_id, environment) LEFT JOIN sales.orders o ON "
              "o.order_id = t.order_id "
              "WHERE d.is_detour ORDER BY d.order_id");
  bool has_delivery = stream_next(&deliveries), has_transaction = stream_next(&transactions),
       has_detour = stream_next(&detours);
  size_t next_proof = 0;
  static Audit audit;
  while (stream_next(&orders)) {
    read_order(&orders, &audit.order);
    const char* id = audit.order.order_id;
    int order = 0;
    audit.delivery_count = audit.transaction_count = audit.detour_count = audit.proof_count = 0;
    while (has_delivery && !is_null(&deliveries, 0) && (order = compare_text(&deliveries, 0, id)) <= 0) {
      if (order < 0) {
        orphan_delivery(report, &deliveries);
      } else {
        room(audit.delivery_count, id);
        Delivery* delivery = &audit.deliveries[audit.delivery_count++];
        copy_text(&deliveries, 1, delivery->delivery_id, ID);
        copy_text(&deliveries, 2, delivery->user_id, ID);
        delivery->quantity = integer(&deliveries, 4);
        delivery->delivered = instant(&deliveries, 5);
        delivery->revoked = instant(&deliveries, 6);
      }
      has_delivery = stream_next(&deliveries);
    }
    for (; has_transaction && (order = compare_text(&transactions, 0, id)) <= 0;
         has_transaction = stream_next(&transactions)) {
      if (order < 0) continue;
      room(audit.transaction_count, id);
      read_transaction(&transactions, &audit.transactions[audit.transaction_count++]);
    }
    for (; has_detour && (order = compare_text(&detours, 0, id)) <= 0; has_detour = stream_next(&detours)) {
      if (order < 0) continue;
      room(audit.detour_count, id);
      Transaction* one = &audit.detours[audit.detour_count++];
      read_transaction(&detours, one);
      copy_text(&detours, 24, one->owner_order, ID);
      copy_text(&detours, 25, one->owner_user, ID);
    }
    while (next_proof < report->proof_count && strcmp(report->proofs[next_proof].order_id, id) < 0) next_proof++;
    audit.proofs = &report->proofs[next_proof];
    while (next_proof < report->proof_count && strcmp(report->proofs[next_proof].order_id, id) == 0) {
      next_proof++;
      audit.proof_count++;
    }
    judge(&audit, &report->rules);
    write_order(report, &audit);
    write_findings(report, &audit);
    if (audit.own && audit.own->revoked != NONE) write_refund(report, audit.own, &audit);
    count_order(report, &audit);
  }
  for (; has_delivery; has_delivery = stream_next(&deliveries)) orphan_delivery(report, &deliveries);
  while (has_transaction) has_transaction = stream_next(&transactions);
  while (has_detour) has_detour = stream_next(&detours);
}

void read_orphans(Report* report, const char* snapshot) {
  Stream stream;
  stream_open(&stream, snapshot,
              "SELECT r.receipt_id, " TRANSACTION_COLUMNS
              ", r.user_id FROM floor.transactions t "
              "LEFT JOIN floor.receipt_transactions b ON b.transaction_id = t.transaction_id AND b.environment = "
              "t.environment "
              "AND b.subject_kind = 'receipt' LEFT JOIN sales.receipts r ON r.receipt_id = b.subject_id WHERE "
              "t.order_id IS NULL");
  while (stream_next(&stream)) {
    Transaction one;
    char receipt[ID], user[ID], reason[160];
    read_transaction(&stream, &one);
    copy_text(&stream, 0, receipt, ID);
    copy_text(&stream, 24, user, ID);
    if (one.revoked != NONE) write_refund(report, &one, NULL);
    if (is_reversed(&one) || one.is_contradictory || one.is_family || one.environment[0] != 'P') continue;
    bool is_restore =
        !one.is_renewal && !one.is_subscription && one.original_id[0] && strcmp(one.original_id, one.transaction_id);
    if (is_restore) continue;
    snprintf(reason, sizeof reason,
             one.is_renewal ? "Apple renewed a subscription to %s and no order claims the renewal."
                            : "Apple confirms a payment for %s that no order claims.",
             one.product_id);
    int digits = currency_digits(one.currency);
    int64_t price = price_minor_units(&one, digits);
    write_finding(report, &(FindingRow){.kind = one.is_renewal ? KIND_renewal_without_order : KIND_orphan_payment,
                                        .subject = one.transaction_id,
                                        .order_id = "",
                                        .user_id = user,
                                        .product_id = one.product_id,
                                        .transaction_id = one.transaction_id,
                                        .receipt_id = receipt,
                                        .delivery_id = "",
                                        .environment = one.environment,
                                        .currency = one.currency,
                                        .reason = reason,
                                        .amount = price,
                                        .at_stake = one.is_renewal ? NONE : price,
                                        .paid = one.purchased,
                                        .delivered = NONE,
                                        .digits = digits});
  }
}
