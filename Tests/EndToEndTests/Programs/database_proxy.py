"""A proxy to a Unix socket of Postgres, for `DatabaseProxy`.

usage: database_proxy.py SOCKET SERVER_SOCKET ENDING LAST COUNTER CUT_KIND CUT_NUMBER CUT_HALF
"""
import asyncio, collections, json, os, signal, socket, struct, sys

path, server, ending, last, counter, cut_kind, cut_number, cut_half = sys.argv[1:9]
last, cut_number = int(last), int(cut_number)
count = 0
kinds = collections.Counter()
signals = {"kill": signal.SIGKILL, "terminate": signal.SIGTERM, "hangUp": signal.SIGHUP}
never = asyncio.Event()
held = False

def tell():
    for name, content in ((counter + ".kinds", json.dumps(kinds)), (counter, str(count))):
        with open(name + ".new", "w") as file:
            file.write(content)
        os.rename(name + ".new", name)

async def message(reader, kind):
    """One message and its kind. The first one of a client has no letter."""
    letter = b"" if kind == ">" and not reader.was_begun else await reader.readexactly(1)
    reader.was_begun = True
    length = await reader.readexactly(4)
    rest = await reader.readexactly(struct.unpack("!I", length)[0] - 4)
    return kind + letter.decode(), letter + length + rest

async def forward_messages(reader, writer, end, direction):
    reader.was_begun = False
    try:
        while True:
            kind, data = await message(reader, direction)
            kinds[kind] += 1
            if kind == cut_kind and kinds[kind] == cut_number:
                writer.write(data[:len(data) // 2] if cut_half else b"")
                await writer.drain()
                kinds["cut"] = 1
                break
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
        end.close()

async def forward(reader, writer, sender):
    global count, held
    try:
        while data := await reader.read(1 << 16):
            if sender:
                count += 1
                if last and count >= last and (ending in ("kill", "stall") or count == last):
                    held = ending == "hold"
                    tell()
                    if ending in signals and count == last:
                        os.kill(sender, signals[ending])
            if last and count >= last and ending in ("kill", "stall"):
                if ending == "kill":
                    break
                await never.wait()
            while held and sender:
                held = not os.path.exists(counter + ".go")
                await asyncio.sleep(0.002)
            writer.write(data)
            await writer.drain()
    finally:
        # The server may die within a message. Closing the connection tells the program.
        writer.close()

async def handle(reader, writer):
    credentials = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    sender = struct.unpack("3i", credentials)[0]
    kinds["begun"] += 1
    tell()
    try:
        server_reader, server_writer = await asyncio.open_unix_connection(server)
    except OSError:
        writer.close()
        kinds["ended"] += 1
        tell()
        return
    if cut_kind:
        both = (forward_messages(reader, server_writer, writer, ">"),
                forward_messages(server_reader, writer, server_writer, "<"))
    else:
        both = forward(reader, server_writer, sender), forward(server_reader, writer, 0)
    await asyncio.gather(*both, return_exceptions=True)
    writer.close()
    server_writer.close()
    kinds["ended"] += 1
    tell()

async def main():
    listening = await asyncio.start_unix_server(handle, path)
    tell()
    async with listening:
        await listening.serve_forever()

asyncio.run(main())
