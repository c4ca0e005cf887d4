// One order with everything that belongs to it, and what is decided about it.
#ifndef AUDIT_H
#define AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#define ID 40
#define NAME 64
#define ROWS 16
#define FINDINGS 16

typedef enum {
  PENDING,
  VERIFIED,
  FAILED,
  CANCELLED,
  REFUNDED_STATUS,
  UNKNOWN_STATUS
} Status;
typedef enum {
  PAID,
  REVERSED,
  UNPAID,
  UNCONFIRMED,
  UNSAID
} Payment;
typedef enum {
  SETTLED,
  PAID_NOT_DELIVERED,
  DELIVERED_NOT_PAID,
  PARTLY_DELIVERED,
  REFUNDED,
  REFUNDED_STILL_DELIVERED,
  IN_FLIGHT,
  UNCONFIRMED_ORDER,
  VOID,
  SANDBOX,
  BAD_ROW
} Disposition;

// Kinds of findings, worst first.
#define KINDS(X)                                                                                                      \
  X(paid_not_delivered, critical, "Deliver the goods, or refund the customer through Apple.")                         \
  X(partly_delivered, critical, "Deliver the missing units.")                                                         \
  X(delivered_not_paid, critical,                                                                                     \
    "Take the goods back from whoever has them or collect the payment; ask before calling it fraud.")                 \
  X(cancelled_but_paid, critical, "Reopen the order and deliver, or ask Apple's customer to request a refund.")       \
  X(orphan_payment, critical, "Find the customer by the transaction and create or correct the order.")                \
  X(duplicate_claim, critical, "Keep the order that owns the payment and take back what was delivered for this one.") \
  X(charged_twice, critical, "Tell the customer and help with a refund of the second charge.")                        \
  X(wrong_user, critical, "Check which account paid and which one got the goods, and move them.")                     \
  X(product_mismatch, critical, "Compare the ordered product with the one that was paid and correct the order.")      \
  X(wrong_bundle, critical, "Block the order: its proof belongs to another app.")                                     \
  X(signature_invalid, critical, "Treat the proof as forged or damaged and block automatic delivery for this user.")  \
  X(sandbox_delivered, critical, "Take the goods back, or put the user on the list of test users.")                   \
  X(delivered_after_refund, critical, "Take the goods back and find out why delivery followed the refund.")           \
  X(refund_reversed_not_reinstated, critical, "Give the goods back: Apple has charged the customer again.")           \
  X(refunded_still_delivered, major, "Take the goods back, or accept the loss.")                                      \
  X(partial_refund, major, "Book the refunded part.")                                                                 \
  X(refund_not_booked, major, "Book the refund in the shop.")                                                         \
  X(refund_only_here, major, "Correct the order: Apple has not refunded it.")                                         \
  X(delivered_twice, major, "Take back the surplus units.")                                                           \
  X(orphan_delivery, major, "Find the order that this delivery belongs to, or take the goods back.")                  \
  X(quantity_mismatch, major, "Correct the order's quantity, or deliver what was paid for.")                          \
  X(amount_mismatch, major, "Correct the price in the shop or the order's amount.")                                   \
  X(currency_mismatch, major, "Correct the order's currency; nothing was converted.")                                 \
  X(family_shared_sale, major, "Remove the amount: access through Family Sharing is no sale.")                        \
  X(lapsed_still_served, major, "End the access, or find the renewal that is missing.")                               \
  X(stuck_unconfirmed, major, "Look at the last reason; have the client send a fresh receipt if it stays.")           \
  X(renewal_without_order, minor, "Book an order for this renewal if renewals are booked as orders.")                 \
  X(status_mismatch, minor, "Correct the order's status in the shop.")                                                \
  X(environment_mislabelled, minor, "Correct the client: it reports the wrong environment.")                          \
  X(delivered_before_paid, minor, "Check the clocks and the delivery path: goods left before the payment.")           \
  X(future_dated, minor, "Check the clock of the system that wrote this date.")                                       \
  X(account_token_missing, minor, "Pass the account token to StoreKit at purchase.")                                  \
  X(bad_row, minor, "Correct the row in the sales tables or in the view that maps them.")

#define KIND(name, severity, action) KIND_##name,
typedef enum {
  KINDS(KIND) KIND_COUNT
} Kind;
#undef KIND

typedef struct {
  char order_id[ID], user_id[ID], product_id[NAME], bundle_id[NAME], currency[8], status_text[16], transaction_id[ID],
      token[ID];
  char amount_text[32], defect[128];
  int digits;
  int64_t amount, quantity, created, verified;
  Status status;
} Order;

typedef struct {
  char delivery_id[ID], user_id[ID];
  int64_t quantity, delivered, revoked;
} Delivery;

typedef struct {
  char transaction_id[ID], original_id[ID], product_id[NAME], bundle_id[NAME], environment[16], currency[8], token[ID];
  // Of a transaction that is filed under another order: that order and its user.
  char owner_order[ID], owner_user[ID];
  int64_t quantity, purchased, expires, revoked, percentage, withdrawn, price, checked;
  bool is_prorated, is_family, is_renewal, has_offer, is_contradictory, is_subscription, tells_token;
} Transaction;

// A receipt or look-up that did not simply verify.
typedef struct {
  char order_id[ID], subject_id[ID], claimed[16], environment[16], outcome[16], reason[32];
  int64_t attempts, last_attempt;
  bool is_lookup;
} Proof;

typedef struct {
  Kind kind;
  int64_t at_stake;
  const Transaction* transaction;
  char receipt_id[ID], delivery_id[ID], reason[256];
} Finding;

typedef struct {
  Order order;
  Delivery deliveries[ROWS];
  Transaction transactions[ROWS], detours[ROWS];
  const Proof* proofs;
  int delivery_count, transaction_count, detour_count, proof_count;
  // Decided:
  Payment payment;
  const char* payment_reason;
  Disposition disposition;
  const Transaction *own, *second, *shown;
  int64_t units, delivered, checked;
  bool is_taken_back;
  Finding findings[FINDINGS];
  int finding_count;
} Audit;

typedef struct {
  int64_t as_of;
  char (*testers)[ID];
  int tester_count;
} Rules;

extern const char *const kind_names[], *const kind_severities[], *const kind_actions[];
extern const char *const payment_names[], *const disposition_names[];

bool is_reversed(const Transaction* transaction);
// Decimal digits of a currency's minor unit; -1 for one that the shop does not sell in.
int currency_digits(const char* code);
// Apple's price in minor units of `digits`, or NONE.
int64_t price_minor_units(const Transaction* transaction, int digits);
int64_t share(int64_t amount, int64_t part, int64_t whole);

// Decides payment and disposition (verdict.c), then looks for discrepancies (findings.c).
void judge(Audit* audit, const Rules* rules);
void find_discrepancies(Audit* audit, const Rules* rules);

#endif
