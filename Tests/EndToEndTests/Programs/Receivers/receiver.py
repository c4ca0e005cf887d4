"""The common part of the receivers: FOLDER PORT_FILE are the first arguments of each."""
import glob, os, sys

got, port_file = sys.argv[1:3]


def exposed(secret):
    """The command lines and environments of this machine that contain the secret."""
    seen = []
    for place in ("cmdline", "environ"):
        for path in glob.glob(f"/proc/[0-9]*/{place}"):
            try:
                with open(path, "rb") as file:
                    if secret in file.read():
                        seen.append(path)
            except OSError:
                pass
    return seen


def publish(port):
    with open(port_file + ".new", "w") as file:
        file.write(str(port))
    os.rename(port_file + ".new", port_file)
