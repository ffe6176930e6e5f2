#!/usr/bin/env python3
"""Runs the peer's script in bf16, several ranks of it on one device where there are fewer devices.

    torch_peer.py SCRIPT ARGUMENTS...          under torchrun for more than one rank

Products are bf16 and parameters, sums and moments fp32, as in Siphon: autocast, without its cache of cast weights, since the
script updates them between its steps. NCCL refuses two ranks on one device unless each says that it is another host; they then talk
over loopback sockets, with the settings that Siphon's workers have there (pipeline/transport/nccl_options.cc).
"""
import os
import runpy
import sys


def share_the_device(environment):
    """What NCCL must be told by a rank that is not the device's only one."""
    environment["NCCL_HOSTID"] = f"peer{environment.get('RANK', '0')}"
    for name, value in dict(NCCL_SOCKET_IFNAME="lo", NCCL_NET="Socket", NCCL_IB_DISABLE="1", NCCL_NVLS_ENABLE="0",
                            NCCL_MNNVL_ENABLE="0", NCCL_MAX_NCHANNELS="2").items():
        environment.setdefault(name, value)


def device_of(arguments):
    for place, argument in enumerate(arguments):
        if argument == "--device" and place + 1 < len(arguments):
            return arguments[place + 1]
        if argument.startswith("--device="):
            return argument.partition("=")[2]
    return "cpu"


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    script, arguments = sys.argv[1], sys.argv[2:]
    device = device_of(arguments)
    if device == "cuda" and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        share_the_device(os.environ)  # before the first call of NCCL
    import torch
    sys.argv = [script, *arguments]
    with torch.autocast(device, dtype=torch.bfloat16, cache_enabled=False):
        runpy.run_path(script, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
