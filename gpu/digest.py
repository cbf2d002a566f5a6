"""SHA-256 of files and bytes, as lower-case hexadecimal."""

import hashlib
from pathlib import Path


def sha256_of_file(path: Path) -> str:
    """Digest of a file, read in pieces."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_bytes(data: bytes) -> str:
    """Digest of bytes in memory."""
    return hashlib.sha256(data).hexdigest()
