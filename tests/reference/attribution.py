"""Divides the joules of a recording of eprof in the plainest way, independently of eprof.

    python3 tests/reference/attribution.py eprof.data report.json

`report.json` is what `eprof report --format json` printed of the same recording. Only the power model that was used is
taken from it (`division`: static watts and joules per event of each domain, and the bucket); everything else is decoded
and computed here, so that what is judged is who gets which joule. Prints JSON: the balance of each domain, and its
joules by thread and by page of code of each module.

What is done, for each domain:

1. Time is cut at readings of the meter, into stretches of about one bucket of joules.
2. Of a stretch's joules, static watts x seconds are static.
3. A sample is worth coefficient x period. It lies on the time since its event's previous sample on that CPU, evenly,
   but on no more than 200 ms; one of a clock on no more time than that counted.
4. Lost records would have been worth what the samples of that CPU are worth on average, and lie between the last
   sample before them and the moment when there was room again. While an event is throttled the samples before and
   after tell what ran.
5. Where only the program was sampled, the kernel's busy times tell what others and eprof itself did: as much per
   second of CPU time as the program.
6. The stretch's other joules go to all of these in proportion to what they are worth.

Where the report has no model of a domain, a sample is worth the time that its clock counted.

No weight is given to the samples of a clock on an idle CPU. Joules of a stretch in which nothing ran are static.
"""
import bisect
import collections
import json
import statistics
import struct
import sys

IP, TID, TIME, ADDR, READ, CHAIN, ID, CPU, PERIOD, STREAM, RAW = (1 << n for n in range(11))
IDENTIFIER = 1 << 16
MMAP, LOST, FORK, SAMPLE, MMAP2, LOST_SAMPLES = 1, 2, 7, 9, 10, 13
EVENT_DESC = 12
NOBODY = 0xFFFFFFFF
LONGEST_SPAN = 200_000_000
ROWS = ("attributed", "static", "other", "recorder", "lost")

Event = collections.namedtuple("Event", "name kind config period has")
Record = collections.namedtuple("Record", "kind event pid tid time cpu ip period raw body")


# Reading the file.


def load(path):
    """The bytes, where its records begin and end, and events by the ids that samples carry."""
    data = open(path, "rb").read()
    if data[:8] != b"PERFILE2":
        sys.exit(f"{path}: not a little-endian perf.data file")
    _, _, _, _, start, length = struct.unpack_from("<6Q", data, 8)
    flags = int.from_bytes(data[72:104], "little")
    if flags >> 27 & 1:
        sys.exit(f"{path}: compressed; record without --compress")
    if not flags >> EVENT_DESC & 1:
        sys.exit(f"{path}: has no event descriptions")
    at = start + length + 16 * bin(flags & ((1 << EVENT_DESC) - 1)).count("1")
    at = struct.unpack_from("<Q", data, at)[0]
    count, each = struct.unpack_from("<II", data, at)
    at += 8
    events = {}
    for _ in range(count):
        kind, _, config, period, has, _ = struct.unpack_from("<IIQQQQ", data, at)
        ids, name_len = struct.unpack_from("<II", data, at + each)
        at += each + 8
        name = data[at:at + name_len].split(b"\0")[0].decode()
        at += name_len
        for n in range(ids):
            events[struct.unpack_from("<Q", data, at + 8 * n)[0]] = Event(name, kind, config, period, has)
        at += 8 * ids
    if any(not event.has & IDENTIFIER for event in events.values()):
        sys.exit(f"{path}: records carry no identifier of their event")
    return data, start, start + length, events


def records(data, at, end, events):
    """Every record that attribution needs, in the order of the file."""
    while at + 8 <= end:
        kind, _, size = struct.unpack_from("<IHH", data, at)
        if size < 8 or at + size > end:
            sys.exit(f"a record of {size} bytes at {at}")
        if kind == SAMPLE:
            yield sample(data, at + 8, events)
        elif kind in (LOST, LOST_SAMPLES, FORK, MMAP, MMAP2):
            yield other(kind, data, at + 8, at + size, events)
        at += size


def sample(data, at, events):
    event = events[struct.unpack_from("<Q", data, at)[0]]
    at, ip, pid, tid, time, cpu, period, raw = at + 8, 0, NOBODY, NOBODY, 0, 0, event.period, b""
    for bit in (IP, TID, TIME, ADDR, ID, STREAM, CPU, PERIOD):
        if not event.has & bit:
            continue
        value = struct.unpack_from("<Q", data, at)[0]
        at += 8
        if bit == IP:
            ip = value
        elif bit == TID:
            pid, tid = value & 0xFFFFFFFF, value >> 32
        elif bit == TIME:
            time = value
        elif bit == CPU:
            cpu = value & 0xFFFFFFFF
        elif bit == PERIOD:
            period = value
    if event.has & READ:
        sys.exit(f"{event.name}: readings within samples are not decoded")
    if event.has & CHAIN:
        at += 8 + 8 * struct.unpack_from("<Q", data, at)[0]
    if event.has & RAW:
        raw = data[at + 4:at + 4 + struct.unpack_from("<I", data, at)[0]]
    return Record(SAMPLE, event, pid, tid, time, cpu, ip, period, raw, b"")


def other(kind, data, at, end, events):
    """A record with a trailer, whose last field is the identifier of its event."""
    event = events.get(struct.unpack_from("<Q", data, end - 8)[0])
    pid, tid, time, cpu = NOBODY, NOBODY, 0, 0
    body_end = end
    if event:
        fields = [bit for bit in (TID, TIME, ID, STREAM, CPU, IDENTIFIER) if event.has & bit]
        body_end = end - 8 * len(fields)
        for place, bit in enumerate(fields):
            value = struct.unpack_from("<Q", data, body_end + 8 * place)[0]
            if bit == TID:
                pid, tid = value & 0xFFFFFFFF, value >> 32
            elif bit == TIME:
                time = value
            elif bit == CPU:
                cpu = value & 0xFFFFFFFF
    return Record(kind, event, pid, tid, time, cpu, 0, 0, b"", data[at:body_end])


class Recording:
    """What the file says, by kind and in order of time."""

    def __init__(self, path):
        self.samples, self.losses, self.tasks = [], [], []
        self.readings = collections.defaultdict(list)
        self.times = []
        parts = {}
        for record in records(*load(path)):
            name = record.event.name if record.event else ""
            if record.kind != SAMPLE:
                (self.tasks if record.kind in (FORK, MMAP, MMAP2) else self.losses).append(record)
            elif name == "eprof/metadata/":
                part, _, length = struct.unpack_from("<III", record.raw)
                parts[part] = record.raw[12:12 + length]
            elif name == "eprof/cpu-times/":
                self.times.append((record.time, *cpu_times(record.raw)))
            elif name.startswith("energy/"):
                version, joules = struct.unpack_from("<Id", record.raw)
                if version != 1:
                    sys.exit(f"a reading of version {version}")
                self.readings[name[7:-1]].append((record.time, joules))
            elif not name.startswith("eprof/"):
                self.samples.append(record)
        self.metadata = json.loads(b"".join(parts[part] for part in sorted(parts)))
        for list_ in (self.samples, self.losses, self.tasks):
            list_.sort(key=lambda record: record.time)
        for readings in self.readings.values():
            readings.sort()
        self.times.sort(key=lambda times: times[0])
        self.roles = {event["name"]: event["role"] for event in self.metadata["events"]}


def cpu_times(raw):
    """Nanoseconds of CPU time: eprof's own, each CPU's, and the program's on each CPU if they were counted."""
    version, recorder = struct.unpack_from("<IQ", raw)
    at, busy = 12, None
    if version == 2:
        busy, at = struct.unpack_from("<Q", raw, 12)[0], 20
    pairs = [struct.unpack_from("<QQ", raw, p) for p in range(at, len(raw) - 15, 16)]
    if version == 1:
        return recorder, dict(pairs), None
    return recorder, dict(pairs[:busy]), dict(pairs[busy:])


# Whose samples, and of which code.


class Tasks:
    """Which processes belong to the program, and what is mapped in each."""

    def __init__(self, recording):
        self.all = not recording.metadata["system_wide_samples"] or recording.metadata["target"] == "system"
        self.recorder = recording.metadata["recorder_pid"]
        target = recording.metadata["target"]
        self.program, self.threads = set(), None
        if target != "system":
            if "command" in target:
                self.program = {target["command"]["pid"]}
            self.program |= set(target.get("processes", []))
            self.threads = set(target["threads"]) if "threads" in target else None
        self.maps = collections.defaultdict(list)
        for record in recording.tasks:
            self.note(record)

    def note(self, record):
        if record.kind == FORK:
            pid, parent = struct.unpack_from("<II", record.body)
            if pid != parent:
                if parent in self.program:
                    self.program.add(pid)
                self.maps[pid] = list(self.maps[parent])
            return
        pid, _, start, length, offset = struct.unpack_from("<IIQQQ", record.body)
        name = record.body[32 if record.kind == MMAP else 64:].split(b"\0")[0].decode(errors="replace")
        self.maps[pid].append((start, start + length, offset, name))

    def owner(self, record):
        """The row that a sample belongs to."""
        if record.pid == self.recorder:
            return "recorder"
        if self.threads is not None and not self.all:
            return "attributed"
        if self.threads is not None:
            return "attributed" if record.tid in self.threads else "other"
        return "attributed" if self.all or record.pid in self.program else "other"

    def page(self, record):
        """Module and page of the file that a sample lies in; the kernel's code is one place."""
        if record.ip >> 63:
            return "kernel"
        for start, end, offset, name in reversed(self.maps[record.pid]):
            if start <= record.ip < end:
                return f"{name}+{record.ip - start + offset & ~0xFFF:#x}"
        return "?"


# What samples are worth.


class Weight(collections.namedtuple("Weight", "cpu event start end count row thread page")):
    """So many events on a CPU, evenly between two times."""


def is_clock(event):
    """Counts nanoseconds, of idle CPUs as well."""
    return event.kind == 1 and event.config in (0, 1)


def weights_of_samples(recording, tasks):
    """A weight for each sample, by the time since its event's previous one on that CPU."""
    begin = min(readings[0][0] for readings in recording.readings.values())
    by_counter = collections.defaultdict(list)
    for record in recording.samples:
        by_counter[record.cpu, record.event.name].append(record)
    gaps = collections.defaultdict(list)
    for gap in recording.losses:
        gaps[gap.cpu].append(gap)
    weights = []
    for (cpu, name), samples in by_counter.items():
        typical = typical_gap(samples)
        lost = [gap.time for gap in gaps[cpu]]
        previous = begin
        for record in samples:
            longest = record.period if is_clock(record.event) else LONGEST_SPAN
            start = max(previous, record.time - longest)
            place = bisect.bisect_right(lost, record.time)
            if place and lost[place - 1] > previous:
                start = max(start, record.time - typical)
            previous = record.time
            if is_clock(record.event) and record.pid == 0:
                continue
            row = tasks.owner(record)
            mine = row == "attributed"
            weights.append(Weight(
                cpu, name, min(start, record.time - 1), record.time, record.period, row,
                f"{record.pid}/{record.tid}" if mine else None, tasks.page(record) if mine else None,
            ))
    return weights


def typical_gap(samples):
    gaps = [later.time - earlier.time for earlier, later in zip(samples, samples[1:])]
    return statistics.median(gaps) if gaps else LONGEST_SPAN


def lost_records(loss):
    return struct.unpack_from("<Q", loss.body, 8 if loss.kind == LOST else 0)[0]


def weights_of_losses(recording, weights):
    """What lost records would have been worth: the mix of that CPU's samples."""
    by_cpu = collections.defaultdict(list)
    for weight in weights:
        by_cpu[weight.cpu].append(weight)
    lost = []
    for cpu, near in by_cpu.items():
        near.sort(key=lambda weight: weight.end)
        ends = [weight.end for weight in near]
        shares = collections.Counter()
        counts = collections.Counter()
        for weight in near:
            shares[weight.event] += 1 / len(near)
            counts[weight.event] = weight.count
        for gap in recording.losses:
            if gap.cpu != cpu:
                continue
            number = lost_records(gap)
            place = bisect.bisect_left(ends, gap.time)
            start = ends[place - 1] if place else gap.time - 1
            for event, share in shares.items():
                lost.append(Weight(cpu, event, min(start, gap.time - 1), gap.time, number * share * counts[event],
                                   "lost", None, None))
    return lost


def weights_of_others(recording, weights):
    """What others and eprof did while only the program was sampled, as events of the program's mix."""
    if recording.metadata["system_wide_samples"] or len(recording.times) < 2:
        return []
    clock = next((name for name, role in recording.roles.items() if role == "clk"), None)
    of_clock = [weight for weight in weights if weight.event == clock]
    if not of_clock:
        return []
    # The program's CPU time: nanoseconds as they are, cycles by the rate of a CPU that does nothing else.
    rates = sorted(weight.count / (weight.end - weight.start) for weight in of_clock)
    kind = next(record.event for record in recording.samples if record.event.name == clock)
    rate = 1.0 if is_clock(kind) else statistics.median(rates[len(rates) // 2:])
    ran = sum(weight.count for weight in of_clock) / rate
    counts = collections.Counter()
    for weight in weights:
        counts[weight.event] += weight.count
    cycles = collections.defaultdict(list)
    for weight in of_clock:
        cycles[weight.cpu].append(weight)
    found, sums, charged = [], collections.Counter(), collections.Counter()
    for earlier, later in zip(recording.times, recording.times[1:]):
        start, end = earlier[0], later[0]
        if end <= start:
            continue
        unseen = {}
        for cpu in later[2]:
            busy = later[2][cpu] - earlier[2].get(cpu, later[2][cpu])
            if later[3] is not None and earlier[3] is not None:
                mine = later[3].get(cpu, 0) - earlier[3].get(cpu, 0)
            else:
                mine = sum(overlap(weight, start, end) * weight.count for weight in cycles[cpu]) / rate
            # Busy times come in ticks: what a CPU has too little of now it has too much of later.
            sums[cpu] += busy - mine
            unseen[cpu] = max(0, sums[cpu] - charged[cpu])
            charged[cpu] += unseen[cpu]
        total = sum(unseen.values())
        recorder = min(later[1] - earlier[1], total)
        for row, nanoseconds in (("recorder", recorder), ("other", total - recorder)):
            for cpu, part in unseen.items():
                share = part / total if total else 0
                for event, count in counts.items():
                    found.append(Weight(cpu, event, start, end, count / ran * nanoseconds * share, row, None, None))
    return found


def overlap(weight, start, end):
    """The share of a weight that lies between two times."""
    inside = min(weight.end, end) - max(weight.start, start)
    return max(0, inside) / (weight.end - weight.start)


# Dividing joules.


def energy_at(readings, time):
    place = bisect.bisect_right(readings, (time, float("inf")))
    if place == 0 or place == len(readings):
        return readings[min(place, len(readings) - 1)][1]
    (t0, e0), (t1, e1) = readings[place - 1:place + 1]
    return e0 + (e1 - e0) * (time - t0) / (t1 - t0)


def boundaries(recording, bucket):
    """Times of readings, about a bucket of joules apart, and the last one."""
    domains = {domain["name"]: domain for domain in recording.metadata["domains"]}
    top = [readings for name, readings in recording.readings.items() if domains[name]["parent"] not in domains]
    times, at = [top[0][0][0]], 0.0
    for time, _ in top[0]:
        joules = sum(energy_at(readings, time) for readings in top)
        if joules - at >= bucket:
            times.append(time)
            at = joules
    last = top[0][-1][0]
    if len(times) > 1 and times[-1] != last:
        times.pop()
    return times if times[-1] == last else times + [last]


def cpus_of(domain, machine):
    if domain["cpus"]:
        return set(domain["cpus"])
    return {cpu["cpu"] for cpu in machine["cpus"] if domain["package"] in (None, cpu["package"])}


def divide(domain, readings, weights, model, times, machine):
    """Balance, joules by thread and joules by page of one domain."""
    cpus, costs = cpus_of(domain, machine), {cost["event"]: cost["joules"] for cost in model["coefficients"]}
    watts = model["static_watts"] or 0.0
    times = [max(readings[0][0], min(readings[-1][0], time)) for time in times]
    times[0], times[-1] = readings[0][0], readings[-1][0]
    pieces = [[] for _ in times]
    for weight in weights:
        worth = weight.count * costs.get(weight.event, 0.0)
        if weight.cpu not in cpus or worth == 0.0:
            continue
        place = max(0, bisect.bisect_right(times, weight.start) - 1)
        while place + 1 < len(times) and times[place] < weight.end:
            if part := overlap(weight, times[place], times[place + 1]):
                pieces[place].append((worth * part, weight))
            place += 1
    balance = dict.fromkeys(("measured",) + ROWS, 0.0)
    threads, pages = collections.Counter(), collections.Counter()
    for place, (start, end) in enumerate(zip(times, times[1:])):
        measured = energy_at(readings, end) - energy_at(readings, start)
        whole = sum(worth for worth, _ in pieces[place])
        static = min(measured, watts * (end - start) * 1e-9) if whole > 0 else measured
        balance["measured"] += measured
        balance["static"] += static
        for worth, weight in pieces[place]:
            joules = (measured - static) * worth / whole
            balance[weight.row] += joules
            if weight.row == "attributed":
                threads[weight.thread] += joules
                pages[weight.page] += joules
    return {"balance": balance, "threads": threads, "pages": pages}


def main(path, report):
    recording = Recording(path)
    division = json.load(open(report))["division"]
    models = {model["name"]: model for model in division["domains"]}
    clocks = [{"event": name, "joules": 1.0} for name, role in recording.roles.items() if role == "clk"]
    weights = weights_of_samples(recording, Tasks(recording))
    weights += weights_of_losses(recording, weights) + weights_of_others(recording, weights)
    times = boundaries(recording, division["bucket_joules"])
    domains = {}
    for domain in recording.metadata["domains"]:
        readings = recording.readings.get(domain["name"], [])
        if len(readings) > 1:
            of_time = {"static_watts": domain["static_power"], "coefficients": clocks}
            model = models.get(domain["name"], of_time)
            domains[domain["name"]] = divide(domain, readings, weights, model, times, recording.metadata["machine"])
    lost = sum(lost_records(loss) for loss in recording.losses)
    print(json.dumps({"lost_records": lost, "domains": domains}, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
