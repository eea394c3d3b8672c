"""Another machine, as `--host` sees it: an `ssh` on PATH that runs commands here and forwards sockets of this machine.

CI has no sshd. What is real: the commands that the client runs, the processes, the sockets.
"""

import os
import signal
import sys

SSH = f"""#!{sys.executable}
import os, socket, sys, threading

folder, words = os.path.dirname(__file__), sys.argv[1:]
if os.path.exists(folder + "/refusal"):
    sys.exit(open(folder + "/refusal").read() and sys.stderr.write(open(folder + "/refusal").read()) and 255)
if "-L" not in words:
    os.execvp("sh", ["sh", "-c", words[-1]])


def copy(one, other):
    while data := one.recv(65536):
        other.sendall(data)
    other.shutdown(socket.SHUT_WR)


local, far = words[words.index("-L") + 1].split(":")
server = socket.socket(socket.AF_UNIX)
server.bind(local)
server.listen()
with open(folder + "/pids", "a") as pids:
    pids.write(str(os.getpid()) + "\\n")
while True:
    near, beyond = server.accept()[0], socket.socket(socket.AF_UNIX)
    beyond.connect(far)
    for pair in ((near, beyond), (beyond, near)):
        threading.Thread(target=copy, args=pair, daemon=True).start()
"""


class FarBox:
    def __init__(self, folder, home):
        self.folder = folder
        self.host = f"me@box:{home}"
        (folder / "ssh").write_text(SSH)
        (folder / "ssh").chmod(0o755)

    def refuse(self, words):
        """Every further ssh ends with these words."""
        (self.folder / "refusal").write_text(f"{words}\r\n")

    def welcome(self):
        (self.folder / "refusal").unlink()

    def pids(self):
        """The forwarding processes, the newest last."""
        path = self.folder / "pids"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def hang_up(self):
        os.kill(self.pids()[-1], signal.SIGKILL)
