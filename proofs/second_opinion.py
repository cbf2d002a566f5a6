"""What cvc5 says of an obligation, in time: cvc5 runs in a process of its own, which can be ended."""

import atexit
import json
import subprocess
import sys
import threading
from pathlib import Path

__all__ = ["ask"]

_SERVER = Path(__file__).with_name("second_opinion_server.py")
_running: subprocess.Popen[str] | None = None


def ask(text: str, *, seconds: float) -> str:
    """sat, unsat or unknown; also unknown when there is no answer in time."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(text) + "\n")
    server.stdin.flush()
    timer = threading.Timer(seconds, server.kill)
    timer.start()
    answer = server.stdout.readline().strip()
    timer.cancel()
    if not answer:
        _end()
    return answer or "unknown"


def _server() -> subprocess.Popen[str]:
    global _running
    if _running is None:
        command = [sys.executable, "-I", str(_SERVER)]
        _running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return _running


@atexit.register
def _end() -> None:
    global _running
    if _running is not None:
        _running.kill()
        _running.communicate()
        _running = None
