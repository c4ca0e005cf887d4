"""Prints the parts of a mail as JSON.

usage: read_mail.py FILE
"""
import email.policy, hashlib, io, json, sys
from openpyxl import load_workbook
with open(sys.argv[1], "rb") as file:
    mail = email.message_from_binary_file(file, policy=email.policy.default)
attachment, = mail.iter_attachments()
content = attachment.get_content()
json.dump({
    "subject": mail["subject"], "to": mail["to"], "date": mail["date"].datetime.tzname(), "id": mail["message-id"],
    "types": [part.get_content_type() for part in mail.walk()],
    "text": mail.get_body(("plain",)).get_content(), "html": mail.get_body(("html",)).get_content(),
    "name": attachment.get_filename(), "sha256": hashlib.sha256(content).hexdigest(),
    "sheets": load_workbook(io.BytesIO(content)).sheetnames[:2]}, sys.stdout)
