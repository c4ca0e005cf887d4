"""Asks the simulator through Apple's own server library, and prints the results.

Standard input: {"base", "root" (PEM), "key" (PEM), "keyId", "issuerId", "bundleId", "appAppleId", "ids", "orders",
"notifications": [[type, subtype]], "since", "until"}. Standard output: the shape in which
AppleLibraryTests describes the answers of our own client.
"""

import json
import sys

from appstoreserverlibrary.api_client import APIException, AppStoreServerAPIClient, GetTransactionHistoryVersion
from appstoreserverlibrary.models.Environment import Environment
from appstoreserverlibrary.models.NotificationHistoryRequest import NotificationHistoryRequest
from appstoreserverlibrary.models.NotificationTypeV2 import NotificationTypeV2
from appstoreserverlibrary.models.Subtype import Subtype
from appstoreserverlibrary.models.TransactionHistoryRequest import Order, TransactionHistoryRequest
from appstoreserverlibrary.signed_data_verifier import SignedDataVerifier
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

asked = json.load(sys.stdin)
root = x509.load_pem_x509_certificate(asked["root"].encode()).public_bytes(Encoding.DER)
client = AppStoreServerAPIClient(
    asked["key"].encode(), asked["keyId"], asked["issuerId"], asked["bundleId"], Environment.PRODUCTION)
client._base_url = asked["base"]
verifier = SignedDataVerifier([root], False, Environment.PRODUCTION, asked["bundleId"], asked["appAppleId"])


def product(transaction):
    items = transaction.advancedCommerceInfo.items if transaction.advancedCommerceInfo else None
    return ",".join(item.SKU for item in items or [] if item.SKU) or transaction.productId


def told(transaction):
    revocation = None
    if transaction.revocationDate is not None:
        revocation = {"date": transaction.revocationDate, "reason": transaction.rawRevocationReason,
                      "type": transaction.rawRevocationType, "percentage": transaction.revocationPercentage}
    return {
        "transactionId": transaction.transactionId, "originalTransactionId": transaction.originalTransactionId,
        "bundleId": transaction.bundleId, "productId": product(transaction), "type": transaction.rawType,
        "quantity": transaction.quantity, "purchaseDate": transaction.purchaseDate,
        "originalPurchaseDate": transaction.originalPurchaseDate, "expiresDate": transaction.expiresDate,
        "price": transaction.price, "currency": transaction.currency, "storefront": transaction.storefront,
        "appAccountToken": transaction.appAccountToken, "environment": transaction.rawEnvironment,
        "ownership": transaction.rawInAppOwnershipType, "offerType": transaction.rawOfferType,
        "offerIdentifier": transaction.offerIdentifier, "isUpgraded": transaction.isUpgraded,
        "signedDate": transaction.signedDate, "appTransactionId": transaction.appTransactionId,
        "subscriptionGroupIdentifier": transaction.subscriptionGroupIdentifier,
        "webOrderLineItemId": transaction.webOrderLineItemId, "revocation": revocation,
    }


def signed(jws):
    return told(verifier.verify_and_decode_signed_transaction(jws))


def answered(ask):
    try:
        return ask()
    except APIException as error:
        return {"error": error.raw_api_error}


def info(transaction_id):
    return signed(client.get_transaction_info(transaction_id).signedTransactionInfo)


def history(transaction_id):
    found, revision, pages = [], None, 0
    while True:
        page = client.get_transaction_history(
            transaction_id, revision, TransactionHistoryRequest(sort=Order.ASCENDING), GetTransactionHistoryVersion.V2)
        found += [signed(jws)["transactionId"] for jws in page.signedTransactions]
        revision, pages = page.revision, pages + 1
        if not page.hasMore:
            return {"transactions": found, "revision": revision, "pages": pages}


def refunds(transaction_id):
    found, revision = [], None
    while True:
        page = client.get_refund_history(transaction_id, revision)
        found += [signed(jws)["transactionId"] for jws in page.signedTransactions]
        revision = page.revision
        if not page.hasMore:
            return found


def statuses(transaction_id):
    found = []
    for group in client.get_all_subscription_statuses(transaction_id).data:
        for item in group.lastTransactions:
            renewal = verifier.verify_and_decode_renewal_info(item.signedRenewalInfo)
            found.append({
                "status": item.rawStatus,
                "transactionId": signed(item.signedTransactionInfo)["transactionId"],
                "renewalDate": renewal.renewalDate, "gracePeriodExpiresDate": renewal.gracePeriodExpiresDate})
    return found


def notifications(kind, subtype):
    found, token = [], None
    wanted = NotificationHistoryRequest(
        startDate=asked["since"], endDate=asked["until"], notificationType=NotificationTypeV2(kind),
        notificationSubtype=Subtype(subtype) if subtype else None)
    while True:
        page = client.get_notification_history(token, wanted)
        for item in page.notificationHistory:
            notification = verifier.verify_and_decode_notification(item.signedPayload)
            found.append({
                "uuid": notification.notificationUUID, "type": notification.rawNotificationType,
                "subtype": notification.rawSubtype, "reason": notification.data.rawConsumptionRequestReason,
                "transactionId": signed(notification.data.signedTransactionInfo)["transactionId"]})
        token = page.paginationToken
        if not page.hasMore:
            return found


def order(order_id):
    answer = client.look_up_order_id(order_id)
    return {"status": answer.rawStatus, "transactions": [signed(jws)["transactionId"] for jws in answer.signedTransactions]}


json.dump({
    "info": {id: answered(lambda: info(id)) for id in asked["ids"]},
    "history": {id: answered(lambda: history(id)) for id in asked["ids"]},
    "refunds": {id: answered(lambda: refunds(id)) for id in asked["ids"]},
    "statuses": {id: answered(lambda: statuses(id)) for id in asked["ids"]},
    "notifications": {f"{kind}/{subtype or ''}": notifications(kind, subtype) for kind, subtype in asked["notifications"]},
    "orders": {id: answered(lambda: order(id)) for id in asked["orders"]},
}, sys.stdout)
