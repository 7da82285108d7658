"""Puts frames on the guest's cable, or keeps those that come in.

send FILE: each frame behind its length in two bytes. listen FILE STOP: until STOP exists.
"""
import os
import socket
import struct
import sys


def cable():
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    raw.bind(("eth0", 0))
    return raw


def send(path):
    with open(path, "rb") as file:
        data = file.read()
    raw = cable()
    sent = 0
    while data:
        (length,) = struct.unpack(">H", data[:2])
        raw.send(data[2 : 2 + length])
        data = data[2 + length :]
        sent += 1
    print(sent)


def listen(path, stop):
    raw = cable()
    raw.settimeout(0.05)
    with open(path, "wb") as file:
        open(stop + ".ready", "w").close()
        while not os.path.exists(stop):
            try:
                frame, where = raw.recvfrom(65535)
            except TimeoutError:
                continue
            # What this machine sends itself is of no interest.
            if where[2] != socket.PACKET_OUTGOING:
                file.write(struct.pack(">H", len(frame)) + frame)
    open(stop + ".done", "w").close()


if __name__ == "__main__":
    {"send": send, "listen": listen}[sys.argv[1]](*sys.argv[2:])
