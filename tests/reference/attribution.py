"""Reads an uncompressed perf.data file of eprof independently of eprof, and sums its meter readings.

By hand: python3 tests/reference/attribution.py perf.data

Prints JSON: joules and seconds between the first and last reading of each energy domain, and how many
samples and events each sampled event has by thread. It divides no joules among threads yet.
"""
import json
import struct
import sys

IP, TID, TIME, ADDR, READ, CHAIN, ID, CPU, PERIOD, STREAM, RAW = (1 << n for n in range(11))
IDENTIFIER, SAMPLE, EVENT_DESC = 1 << 16, 9, 12


def load(path):
    data = open(path, "rb").read()
    if data[:8] != b"PERFILE2":
        sys.exit(f"{path}: not a little-endian perf.data file")
    size, attr_size, _, _, start, length = struct.unpack_from("<6Q", data, 8)
    flags = int.from_bytes(data[72:104], "little")
    if flags >> 27 & 1:
        sys.exit(f"{path}: compressed; record without --compress")
    length = length or len(data) - start
    if not flags >> EVENT_DESC & 1:
        sys.exit(f"{path}: has no event descriptions")
    at = start + length + 16 * bin(flags & ((1 << EVENT_DESC) - 1)).count("1")
    at = struct.unpack_from("<Q", data, at)[0]
    count, each = struct.unpack_from("<II", data, at)
    at += 8
    events = {}
    for _ in range(count):
        attr = data[at:at + each]
        ids, name_len = struct.unpack_from("<II", data, at + each)
        at += each + 8
        name = data[at:at + name_len].split(b"\0")[0].decode()
        at += name_len
        period, kind, read = struct.unpack_from("<3Q", attr, 16)
        for n in range(ids):
            events[struct.unpack_from("<Q", data, at + 8 * n)[0]] = (name, period, kind, read)
        at += 8 * ids
    return data, start, min(start + length, len(data)), events


def samples(data, at, end, events):
    """Yields (event, time, tid, count, raw) of each sample."""
    while at + 8 <= end:
        kind, _, size = struct.unpack_from("<IHH", data, at)
        if size < 8 or at + size > end:
            return
        if kind == SAMPLE:
            name, period, has, read = events[struct.unpack_from("<Q", data, at + 8)[0]]
            if not has & IDENTIFIER:
                sys.exit(f"{name}: samples carry no identifier")
            p = at + 16 + (8 if has & IP else 0)
            tid = struct.unpack_from("<I", data, p + 4)[0] if has & TID else 0
            p += 8 if has & TID else 0
            time = struct.unpack_from("<Q", data, p)[0] if has & TIME else 0
            p += 8 * sum(bool(has & bit) for bit in (TIME, ADDR, ID, STREAM, CPU))
            if has & PERIOD:
                period = struct.unpack_from("<Q", data, p)[0]
                p += 8
            if has & READ:
                sys.exit(f"{name}: readings within samples are not decoded")
            if has & CHAIN:
                p += 8 + 8 * struct.unpack_from("<Q", data, p)[0]
            raw = b""
            if has & RAW:
                raw = data[p + 4:p + 4 + struct.unpack_from("<I", data, p)[0]]
            yield name, time, tid, period, raw
        at += size


def main(path):
    energy, threads = {}, {}
    for name, time, tid, count, raw in samples(*load(path)):
        if name.startswith("energy/"):
            version, joules = struct.unpack_from("<Id", raw)
            if version == 1:
                energy.setdefault(name[7:-1], []).append((time, joules))
        elif not name.startswith("eprof/"):
            row = threads.setdefault(name, {}).setdefault(tid, [0, 0])
            row[0] += 1
            row[1] += count
    domains = {}
    for name, readings in energy.items():
        readings.sort()
        (t0, e0), (t1, e1) = readings[0], readings[-1]
        domains[name] = {"joules": e1 - e0, "seconds": (t1 - t0) / 1e9, "readings": len(readings)}
    print(json.dumps({"domains": domains, "threads": threads}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1])
