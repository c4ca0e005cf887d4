"""Frames: (key, tag, content), all of them bytes but the tag, and the program that reads and writes them."""

import io
import os
import struct
import subprocess
import tempfile

# Tags that carriers of frames need (Sources/Auditing/Records/AuditFrames.swift).
PROOF, REFERENCE, GROUP, ORDER_TRANSACTION, CONTESTED, CONTESTED_ORDER = 20, 21, 22, 23, 24, 25
LINK_QUESTION, LINKABLE_ORDER, OPEN_PERSON, MATCHED, PURCHASE, BOUGHT_TWICE = 26, 27, 28, 29, 30, 31
DELIVERY, REPEATED_DELIVERY = 32, 33
OWNED_PERIOD = 35
FIRST_PIECE = 64

# A result of an executor takes about three times its size in the driver's memory.
CHUNK = 16 << 20

_HEAD = struct.Struct(">IBI")


def write(file, frames):
    """Writes frames to a binary file."""
    for key, tag, content in frames:
        file.write(_HEAD.pack(5 + len(key) + len(content), tag, len(key)))
        file.write(key)
        file.write(content)


def pieces(frames, size=CHUNK):
    """The pieces of a report among some frames, as they are written, in chunks of not much more than so many bytes."""
    chunk = io.BytesIO()
    for frame in frames:
        if frame[1] < FIRST_PIECE:
            continue
        write(chunk, (frame,))
        if chunk.tell() >= size:
            yield chunk.getvalue()
            chunk = io.BytesIO()
    if chunk.tell():
        yield chunk.getvalue()


def read(file):
    """Yields the frames of a binary file."""
    while True:
        head = file.read(_HEAD.size)
        if not head:
            return
        length, tag, key_length = _HEAD.unpack(head)
        body = file.read(length - 5)
        if len(body) != length - 5:
            raise EOFError("a frame is truncated")
        yield body[:key_length], tag, body[key_length:]


def key(identifier):
    """The key of an id as bytes; None for one that is missing, which comes last."""
    return b"\1" if identifier is None else b"\0" + bytes(identifier)


def run(binary, stage, context, frames):
    """Runs a stage of night-audit over frames in the order of their keys, and yields what it leaves."""
    with tempfile.TemporaryDirectory(prefix="night-audit-") as directory:
        path = os.path.join(directory, "context")
        with open(path, "wb") as file:
            file.write(context)
        with open(os.path.join(directory, "errors"), "w+b") as errors:
            program = subprocess.Popen(
                [binary, "audit-part", "--stage", stage, "--context", path],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env={**os.environ, "TMPDIR": directory},
            )
            try:
                try:
                    # The program reads everything before it writes anything.
                    write(program.stdin, frames)
                    program.stdin.close()
                    yield from read(program.stdout)
                except (BrokenPipeError, EOFError):
                    pass  # The exit status is more precise.
                status = program.wait()
                if status != 0:
                    errors.seek(0)
                    words = errors.read().decode(errors="replace").strip()
                    raise RuntimeError(f"night-audit audit-part --stage {stage} ended with {status}: {words}")
            finally:
                if program.poll() is None:
                    program.kill()
                    program.wait()
                program.stdout.close()
