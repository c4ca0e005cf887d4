"""A proxy to the simulated Apple with faults, for `FaultyApple`.

usage: faulty_apple.py SIMULATOR_PORT WAY PORT_FILE CERTIFICATE_CHAIN
"""
import asyncio, gzip, json, os, socket, ssl, struct, sys

simulator, way, port_file, chain = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
never = asyncio.Event()
bomb = gzip.compress(bytes(1 << 30), 1) if way == "bomb" else b""
first = {}

async def message(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return head, await reader.readexactly(length)

async def truth(head, body):
    reader, writer = await asyncio.open_connection("127.0.0.1", simulator)
    try:
        writer.write(head + body)
        return await message(reader)
    finally:
        writer.close()

def with_body(head, body):
    lines = [line for line in head.split(b"\r\n") if line and not line.lower().startswith(b"content-length:")]
    return b"\r\n".join(lines + [b"Content-Length: %d" % len(body)]) + b"\r\n\r\n" + body

def change(value, change_list):
    if isinstance(value, dict):
        return {key: change(inner, change_list) for key, inner in value.items()}
    return change_list([change(inner, change_list) for inner in value]) if isinstance(value, list) else value

def reset(writer):
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()

def ok(kind, body, more=b""):
    return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n" % (kind, more, len(body)) + body

async def answer(head, body, writer):
    path = head.split(b" ", 2)[1]
    if way == "hang":
        await never.wait()
    elif way == "reset":
        reset(writer)
        raise ConnectionError
    elif way == "bomb":
        writer.write(ok(b"application/json", bomb, b"Content-Encoding: gzip\r\n"))
    elif way == "endless":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 200000000\r\n\r\n{")
        for _ in range(200):
            writer.write(b" " * 1000000)
            await writer.drain()
    elif way == "headers":
        writer.write(b"HTTP/1.1 200 OK\r\nX-Endless: ")
        for _ in range(200):
            writer.write(b"x" * 1000000)
            await writer.drain()
    elif way == "nonsense":
        writer.write(b"\x00\xff\x16\x03 220 mail.example.com ESMTP\r\n\r\n" * 20)
    elif way == "redirect" and not path.startswith(b"/elsewhere"):
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere%s\r\nContent-Length: 0\r\n\r\n" % path)
    elif way == "page":
        writer.write(ok(b"text/html", b"<html><body>Welcome to our network. Please accept.</body></html>"))
    else:
        reply_head, reply = await truth(head.replace(b"/elsewhere", b"", 1), body)
        whole = reply_head + reply
        if way == "drip":
            for byte in whole:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.3)
        elif way == "cut":
            writer.write(whole[: len(reply_head) + len(reply) // 2])
            await writer.drain()
            reset(writer)
            raise ConnectionError
        elif way == "echo":
            writer.write(whole + whole)
        elif way == "another" and reply_head.startswith(b"HTTP/1.1 200"):
            # Questions of a kind differ after the last slash of the path, or in their bodies. An empty notification
            # history may be a correct answer to each of them.
            kind = path.split(b"?")[0].rsplit(b"/", 1)[0]
            writer.write(whole if b'"notificationHistory":[]' in reply else first.setdefault(kind, whole))
        elif way in ("duplicates", "reversed"):
            change_list = (lambda list: list + list) if way == "duplicates" else (lambda list: list[::-1])
            try:
                reply = json.dumps(change(json.loads(reply), change_list)).encode()
            except ValueError:
                pass
            writer.write(with_body(reply_head, reply))
        else:
            writer.write(whole)
    await writer.drain()

async def handle(reader, writer):
    try:
        while True:
            await answer(*await message(reader), writer)
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass
    finally:
        writer.close()

async def main():
    context = None
    if chain:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(chain)
    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context, backlog=1000, limit=1 << 24)
    with open(port_file + ".new", "w") as file:
        file.write(str(server.sockets[0].getsockname()[1]))
    os.rename(port_file + ".new", port_file)
    async with server:
        await server.serve_forever()

asyncio.run(main())
