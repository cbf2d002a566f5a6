"""Which device is meant."""

import torch

from fly_theory.errors import InvalidInput
from gpu.settings import Device

__all__ = ["resolve_device"]


def resolve_device(device: Device) -> Device:
    """cpu or cuda; auto is cuda where there is one.

    Raises
    ------
    InvalidInput
        For cuda without a CUDA device.
    """
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        msg = "device='cuda', but torch sees no CUDA device; use 'cpu' or 'auto'"
        raise InvalidInput(msg)
    return device
