"""Judges a corpus of signed data with programs that are independent of ours.

Standard input: {"roots": [PEM], "entries": [{"name", "kind": "signed" or "app", "payload"}]}. Standard output: for each name
the result of each judge: {"accepted", "reason", "content"}.
"""

import json
import sys
import tempfile

from apple_purchase_receipt_verifier import Config, Verifier
from appstoreserverlibrary.models.Environment import Environment
from appstoreserverlibrary.signed_data_verifier import SignedDataVerifier, VerificationException
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

asked = json.load(sys.stdin)
roots = [x509.load_pem_x509_certificate(text.encode()).public_bytes(Encoding.DER) for text in asked["roots"]]
verifier = Verifier(Config(roots=roots))
# One per environment, because Apple's library expects a given one.
libraries = [
    SignedDataVerifier(roots, False, environment, "com.example.game", 1234567890)
    for environment in (Environment.PRODUCTION, Environment.SANDBOX)
]


def public(entry):
    if entry["kind"] == "signed":
        result = verifier.verify_signed_data(entry["payload"])
        try:
            content = json.loads(result.payload.json) if result.verified else None
            told = content and [[content.get("transactionId"), content.get("productId")]]
        except (ValueError, AttributeError, RecursionError):
            # It verifies bytes; the caller must check that they are an object.
            return {"accepted": False, "reason": "no object", "content": None}
    else:
        result = verifier.verify_receipt(entry["payload"])
        told = [[item.transaction_id, item.product_id] for item in result.payload.in_app] if result.verified else None
    reason = None if result.verified else result.failure.reason.name
    return {"accepted": result.verified, "reason": reason, "content": told}


def apples(entry):
    if entry["kind"] != "signed":
        return None
    reason = None
    for library in libraries:
        try:
            transaction = library.verify_and_decode_signed_transaction(entry["payload"])
            return {"accepted": True, "reason": None, "content": [[transaction.transactionId, transaction.productId]]}
        except VerificationException as error:
            reason = reason or error.status.name
        except Exception as error:
            reason = reason or type(error).__name__
    return {"accepted": False, "reason": reason, "content": None}


json.dump({entry["name"]: {"public": public(entry), "apple": apples(entry)} for entry in asked["entries"]}, sys.stdout)
