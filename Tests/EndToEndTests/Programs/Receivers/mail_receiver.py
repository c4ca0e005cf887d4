"""SMTP over TLS with a password; defers the first mail with 451.

usage: mail_receiver.py FOLDER PORT_FILE CERTIFICATE KEY PASSWORD_FILE
"""
import asyncio, glob, json, ssl, sys, warnings
from aiosmtpd.smtp import SMTP, AuthResult
from receiver import exposed, got, publish

warnings.simplefilter("ignore")
certificate, key, password = sys.argv[3:6]
with open(password, "rb") as file:
    secret = file.read().strip()

class Handler:
    attempts = 0

    async def handle_MAIL(self, server, session, envelope, address, options):
        Handler.attempts += 1
        if Handler.attempts == 1:
            return "451 Later"
        envelope.mail_from = address
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        number = len(glob.glob(f"{got}/*.eml"))
        with open(f"{got}/{number}.json", "w") as file:
            json.dump({"from": envelope.mail_from, "to": envelope.rcpt_tos, "attempts": Handler.attempts,
                       "exposed": exposed(secret)}, file)
        with open(f"{got}/{number}.eml", "wb") as file:
            file.write(envelope.original_content)
        return "250 OK"

def authenticate(server, session, envelope, mechanism, data):
    return AuthResult(success=data.login == b"auditor" and data.password == secret)

async def serve():
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    server = await asyncio.get_running_loop().create_server(
        lambda: SMTP(Handler(), authenticator=authenticate, auth_required=True, auth_require_tls=False,
                     data_size_limit=1 << 28), "127.0.0.1", 0, ssl=context)
    publish(server.sockets[0].getsockname()[1])
    await asyncio.Event().wait()

asyncio.run(serve())
