"""Shops of the shapes that people reported in public, with known truth: mappings of the page Views, and stories of owners.

A shop is built from sales. Most shapes write them into the tables of one example of the page Views, through its views.
"""

import collections
import datetime
import json
import os
import random
import re

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Sources", "night-audit", "Documentation.docc",
                    "Views.md")  # fmt: skip
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
LOOKBACK = 120 * DAY
# Product, Apple's type, price in hundredths.
GEMS = [("gems.100", "Consumable", 99), ("gems.550", "Consumable", 499), ("gems.1200", "Consumable", 999)]
HERO = ("hero.valkyrie", "Non-Consumable", 799)
MONTH = ("vip.monthly", "Auto-Renewable Subscription", 499)
GOLD = ("vip.gold.monthly", "Auto-Renewable Subscription", 999)
# Products that the catalogue of the shape `owners` no longer sells, and does not have.
RELIC = ("relic.2025", "Consumable", 299)
CHEST = ("chest.test", "Consumable", 199)


def text(moment):
    """A literal of timestamptz."""
    if moment is None:
        return "NULL"
    return f"'{datetime.datetime.fromtimestamp(moment / 1000, datetime.timezone.utc).isoformat(timespec='milliseconds')}'"


def quoted(value):
    return "NULL" if value is None else str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def insert(table, rows):
    """Rows of SQL expressions."""
    values = ",\n".join(f"({', '.join(row)})" for row in rows)
    return f"INSERT INTO {table} VALUES\n{values};\n" if rows else ""


def example(title, *tables):
    """The SQL of an example of the page Views, without its rows of these tables."""
    with open(PAGE, encoding="utf-8") as file:
        script = file.read().split(f"\n### {title}\n")[1].split("```sql\n")[1].split("```")[0]
    for table in tables:
        script, count = re.subn(rf"INSERT INTO public\.{table} VALUES[^;]*;", "", script)
        if count != 1:
            raise SystemExit(f"The example {title!r} of the page Views has no rows of {table}.")
    relations = re.findall(r"CREATE VIEW sales\.([a-z_]+)", script)
    return "".join(f"DROP TABLE IF EXISTS sales.{relation};\n" for relation in relations) + script


class Sale:
    """An order with its payment, proofs and deliveries."""

    def __init__(self, name, account, product, at, **fields):
        self.name, self.account, (self.sku, self.type, self.price), self.at = name, account, product, at
        self.quantity, self.currency, self.status = 1, "EUR", "verified"
        self.transaction = self.stated = self.token = None
        self.amount = self.price
        # Transactions of which a signed one was sent for the order.
        self.proofs = []
        # Each as account, units, time, time when taken back.
        self.deliveries = []
        # The end of the access, for subscriptions.
        self.ended = None
        # False: a mapping in which every row is a verified order cannot express it.
        self.is_plain = True
        self.__dict__.update(fields)


class World:
    """Sales, Apple's transactions, and the findings that an audit must have, as pairs of subject and kind."""

    def __init__(self, seed, as_of):
        self.random, self.as_of = random.Random(seed), as_of
        self.sales, self.transactions, self.truth, self.aliases = [], {}, set(), []
        # Each as ID, sale, payload, time.
        self.receipts = []
        self.names = 0
        # Other tables than sales.<relation>, by relation.
        self.tables = {}
        # True if the ID of an order is that of its transaction.
        self.sales_are_transactions = False

    def name(self, prefix=""):
        self.names += 1
        return f"{prefix}{self.names}"

    def moment(self, least=3, most=50):
        """A time some days before the audit."""
        return self.as_of - self.random.randrange(least * DAY, most * DAY, 1_000)

    def token(self):
        return f"{self.random.getrandbits(32):08x}-0000-4000-8000-{self.random.getrandbits(48):012x}"

    def pay(self, product, at, customer, **fields):
        """A transaction of Apple's. Returns its ID."""
        self.names += 1
        sku, kind, price = product
        transaction = {
            "transactionId": f"2{self.names:015d}", "environment": "Production", "bundleId": "com.example.game",
            "productId": sku, "type": kind, "quantity": 1, "purchaseDate": at, "price": price * 10, "currency": "EUR",
            "storefront": "DEU", "customer": customer, **fields,
        }  # fmt: skip
        if kind == MONTH[1]:
            transaction.setdefault("expiresDate", at + 30 * DAY)
            transaction.setdefault("webOrderLineItemId", f"7{self.names:014d}")
            transaction.setdefault("subscriptionGroupIdentifier", "vip")
        self.transactions[transaction["transactionId"]] = transaction
        return transaction["transactionId"]

    def order(self, account, product, at, *findings, **fields):
        """An order without payment and goods."""
        sale = Sale(self.name("o"), account, product, at, **fields)
        self.sales.append(sale)
        self.expect(sale, *findings)
        return sale

    def buy(self, account, product, at, *findings, customer=None, **fields):
        """An order that states its transaction and has sent it."""
        sale = self.order(account, product, at, *findings)
        sale.transaction = self.pay(product, at + 20 * SECOND, customer or account)
        sale.stated, sale.proofs = sale.transaction, [sale.transaction]
        sale.__dict__.update(fields)
        return sale

    def sell(self, account, product, at, *findings, **fields):
        sale = self.buy(account, product, at, *findings, **fields)
        self.deliver(sale)
        return sale

    def deliver(self, sale, account=None, units=None, at=None, revoked=None):
        sale.deliveries.append((account or sale.account, units or sale.quantity, at or sale.at + MINUTE, revoked))

    def expect(self, sale, *findings):
        self.truth |= {(sale.name, kind) for kind in findings}

    def refund(self, sale, at):
        transaction = self.transactions[sale.transaction]
        transaction.update(revocationDate=at, revocationReason=0, revocationType="REFUND_FULL")
        self.expect(sale, "refund_not_booked", "refunded_still_delivered")

    # Ordinary sales, with a few of each kind of trouble.

    def ordinary(self, count):
        accounts = [self.name("u") for _ in range(count // 2)]
        for _ in range(count):
            account = self.random.choice(accounts)
            product = self.random.choice(GEMS)
            at = self.moment()
            draw = self.random.random()
            if draw < 0.03:
                self.buy(account, product, at, "paid_not_delivered")
            elif draw < 0.06:
                self.invent(account, product, at)
            elif draw < 0.09:
                self.refund(self.sell(account, product, at), at + DAY)
            elif draw < 0.11:
                sale = self.sell(account, product, at, "delivered_twice")
                self.deliver(sale, at=at + HOUR)
            elif draw < 0.14:
                self.order(account, product, at, status="pending", is_plain=False)
            else:
                self.sell(account, product, at)

    def invent(self, account, product, at):
        """Goods for an ID that Apple does not know."""
        self.names += 1
        sale = self.order(account, product, at, "delivered_not_paid", stated=f"9{self.names:015d}")
        self.deliver(sale)

    def subscribe(self, product=MONTH, periods=3, ended=False):
        """The periods of a subscription until now, or one that ended. Each as a sale."""
        account = self.name("u")
        newest = self.random.randrange(50, 70) if ended else self.random.randrange(3, 27)
        first = self.as_of - newest * DAY - (periods - 1) * 30 * DAY
        sales, original = [], None
        for number in range(periods):
            at = first + number * 30 * DAY
            chain = {"originalTransactionId": original, "originalPurchaseDate": first} if original else {}
            reason = "RENEWAL" if original else "PURCHASE"
            transaction = self.pay(product, at, account, transactionReason=reason, **chain)
            original = original or transaction
            sale = Sale(self.name("o"), account, product, at, transaction=transaction, stated=transaction)
            sale.ended = at + 30 * DAY if ended else None
            sale.original = original
            sales.append(sale)
        if ended:
            for sale in sales:
                sale.ended = sales[-1].at + 30 * DAY
        return sales


# Circumstances of the night.


def healthy(world):
    """Ordinary sales without a finding, the newest period of a subscription among them."""
    newest = {}
    for one in world.transactions.values():
        original = one.get("originalTransactionId", one["transactionId"])
        newest[original] = max(newest.get(original, 0), one["purchaseDate"])
    odd = {subject for subject, _ in world.truth}
    stated = collections.Counter(sale.stated for sale in world.sales)
    found = []
    for sale in world.sales:
        one = world.transactions.get(sale.transaction)
        if one and sale.name not in odd and sale.deliveries and sale.is_plain and sale.status == "verified" and not sale.ended:
            original = one.get("originalTransactionId", one["transactionId"])
            is_newest = one["purchaseDate"] == newest[original] and stated[sale.stated] == 1
            if is_newest and sale.amount == sale.price and sale.proofs in ([], [sale.transaction]):
                found.append(sale)
    return found


def fraud(world):
    """2 % of the orders are another user's purchase, or an invented ID, with goods."""
    victims = healthy(world)
    for victim in victims[:: max(1, len(victims) // (len(world.sales) // 50 + 1))]:
        product = (victim.sku, victim.type, victim.price)
        if world.sales_are_transactions:
            world.invent(world.name("thief"), product, min(victim.at, world.as_of - 4 * DAY) + 5 * MINUTE)
            continue
        thief = world.order(world.name("thief"), product, victim.at + 5 * MINUTE, "delivered_not_paid", "duplicate_claim")
        thief.stated, thief.proofs = victim.stated, list(victim.proofs)
        world.deliver(thief)


def refund_wave(world):
    """Apple refunds 5 % of the orders in the last day; neither the shop nor the goods know."""
    sales = healthy(world)
    for sale in sales[:: max(1, len(sales) // (len(world.sales) // 20 + 1))]:
        world.refund(sale, world.as_of - 12 * HOUR)


# Stories of owners: who paid, and with which of several orders. Each adds rows, and what an audit must find.


def copied_proof(w, at, product):
    """An order that is 60 days older has a copy of the payer's proof."""
    payer = w.sell(w.name("u"), product, at)
    thief = w.order(w.name("thief"), product, at - 60 * DAY, "delivered_not_paid", "duplicate_claim")
    thief.proofs = [payer.transaction]
    w.deliver(thief)


def late_copy(w, at, product):
    """The payer's proof is sent again a day later, by another user."""
    payer = w.sell(w.name("u"), product, at)
    thief = w.order(w.name("thief"), product, at + DAY, "delivered_not_paid", "duplicate_claim", stated=payer.stated)
    thief.proofs = [payer.transaction]
    w.deliver(thief)


def retry_by_one_person(w, at, product):
    """The client tried again: two orders with one payment, and the goods for the second one."""
    account = w.name("u")
    second = w.sell(account, product, at)
    w.order(account, product, at - 2 * MINUTE, status="failed", stated=second.stated, proofs=second.proofs)


def guest_then_account(w, at, product):
    guest, account = w.name("guest"), w.name("u")
    w.aliases.append((guest, account))
    sale = w.buy(guest, product, at)
    w.deliver(sale, account=account)


def crossed_proofs(w, at, product):
    """The client sent the proofs of two orders for each other."""
    account = w.name("u")
    first, second = w.sell(account, product, at), w.sell(account, product, at + 3 * MINUTE)
    first.proofs, second.proofs = second.proofs, first.proofs
    for sale in (first, second):
        w.expect(sale, "transaction_id_mismatch")


def no_id_beside_proof(w, at, product):
    w.sell(w.name("u"), product, at, stated=w.random.choice(["null", "(null)", "0", ""]))


def junk_id_beside_proof(w, at, product):
    sale = w.sell(w.name("u"), product, at, "transaction_id_mismatch")
    sale.stated = "8" + sale.transaction[1:]


def abandoned_order_on_shared_device(w, at, product):
    """The device sends one proof for the abandoned order of another account, too."""
    payer = w.sell(w.name("u"), product, at)
    w.order(w.name("u"), product, at - HOUR, status="pending", proofs=payer.proofs)


def ask_to_buy(w, at, product):
    """The parent approves after five days."""
    sale = w.order(w.name("u"), product, at)
    sale.transaction = w.pay(product, at + 5 * DAY, sale.account)
    sale.proofs = [sale.transaction]
    w.deliver(sale, at=at + 5 * DAY + MINUTE)


def crash_before_posting(w, at, product):
    """The client paid and died. Apple's account token leads to the order."""
    sale = w.order(w.name("u"), product, at, "paid_not_delivered", status="pending", token=w.token())
    w.pay(product, at + 30 * SECOND, sale.account, appAccountToken=sale.token)


def resubscription_by_original_id(w, at, product):
    """A subscription that lapsed and began again keeps its original ID, which is all that the shop stores."""
    account = w.name("u")
    start = w.as_of - 100 * DAY
    first = w.order(account, MONTH, start)
    first.stated = w.pay(MONTH, start, account)
    again = w.as_of - w.random.randrange(5, 25) * DAY
    second = w.order(account, MONTH, again, stated=first.stated)
    w.pay(MONTH, again, account, originalTransactionId=first.stated, originalPurchaseDate=start)
    for sale in (first, second):
        w.deliver(sale)


def upgrade_by_original_id(w, at, product):
    account = w.name("u")
    start = w.as_of - w.random.randrange(10, 20) * DAY
    first = w.order(account, MONTH, start)
    first.stated = w.pay(MONTH, start, account, isUpgraded=True)
    w.deliver(first, revoked=start + 3 * DAY)
    second = w.order(account, GOLD, start + 3 * DAY, stated=first.stated)
    w.pay(GOLD, start + 3 * DAY, account, originalTransactionId=first.stated, originalPurchaseDate=start, isUpgrade=True)
    w.deliver(second)


def renewal_named_by_another(w, at, product):
    """Another account books the unbooked renewal of a subscription."""
    first, second = w.subscribe(periods=2)
    second.account = w.name("u")
    w.sales += [first, second]
    for sale in (first, second):
        sale.proofs = [sale.transaction]
        w.deliver(sale)
    w.expect(second, "wrong_user")
    return first, second


def renewal_with_token_named_by_another(w, at, product):
    """The same, where the client gives account tokens to StoreKit."""
    first, second = renewal_named_by_another(w, at, product)
    first.token = w.token()
    for sale in (first, second):
        w.transactions[sale.transaction]["appAccountToken"] = first.token


def one_period_under_two_ids(w, at, product):
    """Apple's notification has another ID of the period than the client."""
    [sale] = w.subscribe(periods=1)
    sale.proofs = [sale.transaction]
    w.sales.append(sale)
    w.deliver(sale)
    known = w.transactions[sale.transaction]
    w.pay(MONTH, known["purchaseDate"], sale.account, originalTransactionId=sale.transaction,
          originalPurchaseDate=known["purchaseDate"], webOrderLineItemId=known["webOrderLineItemId"],
          transactionReason="PURCHASE")  # fmt: skip


def two_units_by_two_purchases(w, at, product):
    sale = w.order(w.name("u"), product, at, quantity=2, amount=2 * product[2])
    sale.proofs = [w.pay(product, at + seconds * SECOND, sale.account) for seconds in (20, 60)]
    w.deliver(sale, at=at + 2 * MINUTE)


def ten_units_for_one(w, at, product):
    sale = w.buy(w.name("u"), product, at, "quantity_mismatch", "amount_mismatch", quantity=10, amount=10 * product[2])
    w.deliver(sale)


def free_code_at_full_price(w, at, product):
    sale = w.sell(w.name("u"), product, at, "amount_mismatch")
    w.transactions[sale.transaction].update(price=0, offerType=3)


def gift(w, at, product):
    w.deliver(w.order(w.name("u"), product, at, amount=0))


def ended_family_access(w, at, product):
    at = w.as_of - 40 * DAY
    sale = w.order(w.name("u"), MONTH, at, "lapsed_still_served", status="pending", amount=0)
    sale.stated = w.pay(MONTH, at, sale.account, inAppOwnershipType="FAMILY_SHARED", revocationType="FAMILY_REVOKE",
                        revocationDate=at + 10 * DAY, revocationReason=0)  # fmt: skip
    sale.proofs = [sale.stated]
    w.deliver(sale)


def lost_payment(w, at, product):
    """A purchase of which no order was made."""
    account = w.name("u")
    w.truth.add((w.pay(product, at, account), "orphan_payment"))


def free_redemption(w, at, product):
    w.truth.add((w.pay(product, at, w.name("u"), price=0, offerType=3), "unclaimed_redemption"))


def pressed_twice(w, at, product):
    """One order with two payments."""
    sale = w.sell(w.name("u"), product, at, "charged_twice")
    sale.proofs = sale.proofs + [w.pay(product, at + MINUTE, sale.account)]


def used_then_refunded(w, at, product):
    w.refund(w.sell(w.name("u"), product, at), at + DAY)


def other_currency(w, at, product):
    """The shop books a currency that the customer did not pay in."""
    sale = w.sell(w.name("u"), product, at, "currency_mismatch")
    w.transactions[sale.transaction]["currency"] = "CHF"


def refunded_in_part(w, at, product):
    sale = w.sell(w.name("u"), product, at, "partial_refund")
    w.transactions[sale.transaction].update(revocationDate=at + DAY, revocationReason=1, revocationType="REFUND_PRORATED",
                                            revocationPercentage=40_000)  # fmt: skip


def refund_reversed(w, at, product):
    """Apple reverses a refund, and the goods stay taken back."""
    sale = w.buy(w.name("u"), product, at, "paid_not_delivered", "refund_reversed_not_reinstated")
    w.deliver(sale, revoked=at + DAY)
    w.transactions[sale.transaction].update(revocationDate=at + 12 * HOUR, revocationReason=0, revocationType="REFUND_FULL",
                                            refundReversedDate=at + 2 * DAY)  # fmt: skip


def token_not_passed_on(w, at, product):
    w.sell(w.name("u"), product, at, "account_token_missing", token=w.token())


def hero_bought_twice(w, at, product):
    """A person pays for a product that can be owned once, and has it again."""
    account = w.name("u")
    # A refund of the first would make the second the only one.
    w.sell(account, HERO, at, is_plain=False)
    w.sell(account, HERO, at + 3 * DAY, "bought_twice")


def relic_sold(w, at, product):
    w.sell(w.name("u"), RELIC, at, "sold_outside_catalogue")


def chest_sold(w, at, product):
    w.sell(w.name("u"), CHEST, at, "unknown_product")


STORIES = [
    copied_proof, late_copy, retry_by_one_person, guest_then_account, crossed_proofs, no_id_beside_proof, junk_id_beside_proof,
    abandoned_order_on_shared_device, ask_to_buy, crash_before_posting, resubscription_by_original_id, upgrade_by_original_id,
    renewal_named_by_another, renewal_with_token_named_by_another, one_period_under_two_ids, two_units_by_two_purchases, ten_units_for_one, free_code_at_full_price,
    gift, ended_family_access, lost_payment, free_redemption, pressed_twice, used_then_refunded, other_currency,
    refunded_in_part, refund_reversed, token_not_passed_on, hero_bought_twice, relic_sold, chest_sold,
]  # fmt: skip


# Shapes of shops. Each fills a world, and returns a function that returns the relations that it writes, and their SQL.


def price(sale):
    return f"{sale.amount / 100:.2f}"


def plain_only(world):
    """Leaves out sales that the shape cannot express."""
    world.sales = [sale for sale in world.sales if sale.is_plain]


def owners(world):
    """Stories of owners, two of each, in a shop with a catalogue."""
    world.ordinary(150)
    for story in STORIES * 2:
        story(world, world.moment(least=8), world.random.choice(GEMS))

    def write():
        until = world.as_of - 60 * DAY
        rows = [[quoted(sku), quoted(kind), quoted(sku), "NULL", text(until if sku == RELIC[0] else None)]
                for sku, kind, _ in [*GEMS, HERO, MONTH, GOLD, RELIC]]  # fmt: skip
        return [], (
            "CREATE TABLE sales.products (product_id text, type text, name text, sold_from timestamptz, sold_until timestamptz);\n"
            + insert("sales.products", rows))

    return write


def several_stores(world):
    world.ordinary(150)
    plain_only(world)

    def write():
        rows = [[quoted(s.name), "'app_store'", quoted(s.account), quoted(s.sku), price(s), quoted(s.currency), quoted(s.stated), text(s.at)]
                for s in world.sales]  # fmt: skip
        rows += [[quoted(world.name("g")), "'play_store'", "'u1'", "'gems.100'", "0.99", "'EUR'", f"'GPA.{number}'", text(world.moment())]
                 for number in range(100)]  # fmt: skip
        return ["orders"], example("Several stores in one table", "purchases") + insert("public.purchases", rows)

    return write


def inventory_ledger(world):
    world.ordinary(150)

    def write():
        rows = []
        for sale in world.sales:
            for account, units, at, revoked in sale.deliveries:
                grant = world.name("m")
                rows.append([grant, account, sale.sku, units, "purchase", sale.name, None, at])
                rows.append([world.name("m"), account, sale.sku, -units, "spent", None, None, at + HOUR])
                if revoked:
                    rows.append([world.name("m"), account, sale.sku, -units, "refund", sale.name, grant, revoked])
        values = [[*(quoted(value) for value in row[:7]), text(row[7])] for row in rows]
        return ["deliveries"], example("Inventory ledger with spent and revoked units", "ledger") + insert("public.ledger", values)

    return write


def renewal_rows(world):
    world.sales_are_transactions = True
    for _ in range(60):
        for sale in world.subscribe(periods=world.random.randrange(1, 4), ended=world.random.random() < 0.2):
            sale.name = sale.stated
            world.sales.append(sale)
            world.deliver(sale)
    for _ in range(6):
        sales = world.subscribe(periods=2)
        world.sales.append(sales[0])
        sales[0].name = sales[0].stated
        world.deliver(sales[0])
        world.truth.add((sales[1].transaction, "renewal_without_order"))

    def write():
        for sale in world.sales:
            world.truth = {(sale.stated if subject == sale.name else subject, kind) for subject, kind in world.truth}
        rows = [[quoted(s.account), quoted(s.account), quoted(s.sku), quoted(s.stated), price(s), quoted(s.currency), text(s.at), text(s.ended)]
                for s in world.sales]  # fmt: skip
        return ["orders", "deliveries"], (
            example("Subscriptions with one row for each renewal", "renewals") + insert("public.renewals", rows))

    return write


def one_order_subscriptions(world):
    for _ in range(100):
        ended = world.random.random() < 0.2
        first, *later = world.subscribe(periods=world.random.randrange(1, 4), ended=ended)
        world.sales.append(first)
        world.deliver(first)
        if ended and world.random.random() < 0.2:
            first.ended = None
            # A night has no findings on orders beyond the lookback.
            if first.at >= world.as_of - LOOKBACK:
                world.expect(first, "lapsed_still_served")
        world.truth |= {(sale.transaction, "renewal_without_order") for sale in later}

    def write():
        rows = [[quoted(s.name), quoted(s.account), quoted(s.sku), quoted(s.stated), price(s), quoted(s.currency), text(s.at), text(s.ended)]
                for s in world.sales]  # fmt: skip
        return ["orders", "deliveries"], (
            example("Subscriptions with one order", "subscriptions") + insert("public.subscriptions", rows))

    return write


def times_without_zone(world):
    world.ordinary(150)

    def write():
        rows = [[quoted(world.name("d")), quoted(sale.name), quoted(account), quoted(sale.sku),
                 f"{text(at)}::timestamptz AT TIME ZONE 'Europe/Berlin'", quoted(revoked // 1000 if revoked else None)]
                for sale in world.sales for account, _, at, revoked in sale.deliveries]  # fmt: skip
        return ["deliveries"], example("Times without zone, and seconds since 1970", "grants") + insert("public.grants", rows)

    return write


def minor_units(world):
    world.ordinary(150)
    plain_only(world)
    for sale in world.sales:
        sale.currency, scale = world.random.choice([("USD", 10), ("JPY", 1000), ("KWD", 1)])
        sale.unit = sale.price
        if sale.transaction:
            world.transactions[sale.transaction].update(price=sale.price * scale, currency=sale.currency)

    def write():
        for sale in world.sales:
            if not hasattr(sale, "unit"):
                victim = next(other for other in world.sales if other.stated == sale.stated and hasattr(other, "unit"))
                sale.currency = victim.currency
        rows = [[quoted(s.name), quoted(s.account), quoted(s.sku), quoted(s.quantity), quoted(s.price), quoted(s.currency), text(s.at)]
                for s in world.sales]  # fmt: skip
        return ["orders"], example("Prices in minor units", "cart") + insert("public.cart", rows)

    return write


def receipts_in_jsonb(world):
    world.ordinary(150)

    def write():
        rows = []
        for receipt, sale, payload, at in world.receipts:
            for attempt, ok in enumerate(world.random.choice([["true"], ["null", "true"], ["null", "null", "true"]])):
                body = {"order": sale.name, "user": sale.account, "receipt": payload, "env": "Production", "ok": json.loads(ok)}
                rows.append([str(len(rows) + 1), quoted(receipt), quoted(json.dumps(body)), text(at + attempt * MINUTE)])
        return ["receipts"], (
            example("Receipts in JSONB, and several rows for each receipt", "verifications") + insert("public.verifications", rows))

    return write


def original_ids_only(world):
    for _ in range(60):
        for sale in world.subscribe(periods=world.random.randrange(1, 4)):
            world.sales.append(sale)
            world.deliver(sale)
    world.ordinary(100)
    plain_only(world)
    for sale in world.sales:
        sale.stated, sale.proofs = getattr(sale, "original", sale.stated), []

    def write():
        rows = [[quoted(s.name), quoted(s.account), quoted(s.sku), quoted(s.stated), price(s), quoted(s.currency), text(s.at)]
                for s in world.sales]  # fmt: skip
        return ["orders", "receipts"], (
            example("Original transaction IDs only", "entitlements") + insert("public.entitlements", rows))

    return write


def guests_and_accounts(world):
    world.ordinary(150)

    def write():
        # Every second user ordered as a guest. A few deliveries went to the account of somebody else.
        guests = {sale.account for sale in world.sales if int(re.sub(r"\D", "", sale.account)) % 2}
        for sale in world.sales:
            if sale.account in guests:
                sale.account = f"guest-{sale.account}"
        healthy = [sale for sale in world.sales if sale.deliveries and not any(subject == sale.name for subject, _ in world.truth)]
        for sale in world.random.sample(healthy, 5):
            sale.deliveries = [("somebody", *delivery[1:]) for delivery in sale.deliveries]
            world.expect(sale, "wrong_user")
        rows = [[quoted(f"guest-{account}"), quoted(account)] for account in sorted(guests)] + [["'guest-0'", "NULL"]]
        return [], example("Guests who become accounts", "logins") + insert("public.logins", rows)

    return write


def revenuecat_export(world):
    world.sales_are_transactions = True
    world.ordinary(150)
    plain_only(world)
    for _ in range(30):
        for sale in world.subscribe(periods=world.random.randrange(1, 4)):
            world.sales.append(sale)
            world.deliver(sale)

    def write():
        rows = []
        for s in world.sales:
            world.truth = {(s.stated if subject == s.name else subject, kind) for subject, kind in world.truth}
            s.name = s.stated
            at = f"{text(s.at)}::timestamptz AT TIME ZONE 'UTC'"
            rows.append(["'app_store'", "false", quoted(s.account), quoted(s.sku), quoted(s.stated), at, "NULL", quoted(s.currency), price(s), at])
        rows += [["'play_store'", "false", "'u1'", "'gems.100'", f"'GPA.{number}'", "'2026-11-01'", "NULL", "'EUR'", "0.99", "'2026-11-01'"]
                 for number in range(50)]  # fmt: skip
        return ["orders", "receipts"], (
            example("RevenueCat's export as orders", "rc_transactions") + insert("public.rc_transactions", rows))

    return write


def gifts(world):
    """Sales, and gifts of the support, which the view adds to the shop's own orders and deliveries."""
    world.ordinary(150)

    def write():
        script = example("Gifts and compensation", "gifts")
        for relation in ("orders", "deliveries"):
            world.tables[relation] = f"public.shop_{relation}"
            head = f"CREATE VIEW sales.{relation} AS"
            script = script.replace(head, f"{head} SELECT * FROM public.shop_{relation} UNION ALL")
            script = (f"ALTER TABLE sales.{relation} SET SCHEMA public;\n"
                      f"ALTER TABLE public.{relation} RENAME TO shop_{relation};\n{script}")  # fmt: skip
        rows = [[quoted(world.name()), "'support'", quoted(world.random.choice(world.sales).account), "'gems.100'", text(world.moment())]
                for _ in range(40)]  # fmt: skip
        return [], script + insert("public.gifts", rows)

    return write


SHAPES = [
    owners, several_stores, inventory_ledger, renewal_rows, one_order_subscriptions, times_without_zone, minor_units,
    receipts_in_jsonb, original_ids_only, guests_and_accounts, revenuecat_export, gifts,
]  # fmt: skip


def plain_tables(world, written):
    """The rows of the relations that the shape does not write."""
    orders = [[quoted(s.name), quoted(s.account), "NULL", quoted(s.sku), quoted(s.quantity), price(s), quoted(s.currency),
               quoted(s.status), quoted(s.stated), quoted(s.token), text(s.at),
               text(s.at + MINUTE) if s.status == "verified" else "NULL", text(s.at + MINUTE)] for s in world.sales]  # fmt: skip
    deliveries = [[quoted(world.name("d")), quoted(s.name), quoted(account), quoted(s.sku), quoted(units), text(at), text(revoked)]
                  for s in world.sales for account, units, at, revoked in s.deliveries]  # fmt: skip
    receipts = [[quoted(receipt), quoted(s.name), quoted(s.account), quoted(payload), "'Production'", "'verified'",
                 text(at + SECOND), text(at)] for receipt, s, payload, at in world.receipts]  # fmt: skip
    tables = {"orders": orders, "deliveries": deliveries, "receipts": receipts}
    script = "".join(insert(world.tables.get(name, f"sales.{name}"), rows) for name, rows in tables.items() if name not in written)
    if world.aliases:
        script += "CREATE TABLE sales.user_aliases (user_id text, same_as text);\n"
        script += insert("sales.user_aliases", [[quoted(one), quoted(other)] for one, other in world.aliases])
    return script
