"""SFTP with a password; writes the host key's fingerprint into the file `fingerprint` beside FOLDER.

usage: sftp_receiver.py FOLDER PORT_FILE PASSWORD_FILE
"""
import asyncio, os, sys
import asyncssh
from receiver import exposed, got, publish

with open(sys.argv[3]) as file:
    password = file.read().strip()

class Server(asyncssh.SSHServer):
    def begin_auth(self, username):
        return True

    def password_auth_supported(self):
        return True

    def validate_password(self, username, given):
        return username == "auditor" and given == password and not exposed(password.encode())

class Files(asyncssh.SFTPServer):
    def __init__(self, channel):
        super().__init__(channel, chroot=got)

async def serve():
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    with open(f"{os.path.dirname(got)}/fingerprint", "w") as file:
        file.write(host_key.get_fingerprint())
    server = await asyncssh.listen("127.0.0.1", 0, server_host_keys=[host_key], server_factory=Server,
                                   sftp_factory=Files)
    publish(server.sockets[0].getsockname()[1])
    await asyncio.Event().wait()

asyncio.run(serve())
