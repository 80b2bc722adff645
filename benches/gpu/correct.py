"""Judges `eprof gpu calibrate` and `eprof gpu correct` by a card's energy counter: the second half of correct.sh.

correct.py EPROF PERIOD_MS,... in the folder that holds calibration.trace, calibration.steps, patterns.trace and
patterns.steps of turns.cu. Leaves there, all times in seconds since the trace began:

  calibration.csv, burst-MS.csv                    what the two sensors said, as `eprof gpu correct` reads it
  calibration.steps, burst-MS.steps                when the load was switched on and off
  calibration-counter.csv, burst-MS-counter.csv    when the energy counter moved, and what it said then
  instant.json, average.json                       what `gpu calibrate --steps` found of each sensor
  results.txt, notes.txt                           the tables, and what eprof noted beside its figures

The truth of a pattern is the counter's: straight lines through its moves in the rests before and after, so that when
exactly it moves does not matter, and what it lags behind cancels.
"""

import json
import os
import subprocess
import sys

# Readings that say nothing new are left out but for one in so many seconds: a sensor's reader polls no more often.
THIN = 0.005
# After so long at rest the averaged sensor has forgotten the load before.
SETTLED = 1.3
# After so long the counter has.
COUNTED = 0.3
Z95 = 1.96


def trace(name):
    """(time, instant, average) of all readings, (time, joules) of the counter's moves, the zero of both in microseconds."""
    with open(name) as file:
        heads = next(file).strip().split(",")
        rows = [[int(cell) for cell in line.split(",")] for line in file]
    at = {head: index for index, head in enumerate(heads)}
    zero = rows[0][at["power_us"]]
    bad = sum(1 for row in rows if row[at["instant_status"]] or row[at["average_status"]])
    if bad:
        print(f"{name}: {bad} of {len(rows)} readings failed")
    second = lambda row, name: (row[at[name]] - zero) * 1e-6
    readings = [
        (second(row, "instant_us"), row[at["instant_mw"]] * 1e-3, row[at["average_mw"]] * 1e-3)
        for row in rows
        if not row[at["instant_status"]] and not row[at["average_status"]]
    ]
    moves, last, asked = [], None, None
    for row in rows:
        value = row[at["energy_mj"]]
        # It moved between the last two times that it was asked.
        if last is not None and value != last:
            moves.append(((asked + second(row, "end_us")) / 2, value * 1e-3))
        if row[at["end_us"]] - row[at["energy_us"]] > 50 or value != last:
            asked = second(row, "end_us")
        last = value
    return readings, moves, zero


def steps(name, zero):
    """In seconds since the zero: as turns.cu writes them, or as they are left here."""
    with open(name) as file:
        times = [float(line) for line in file]
    return [(time - zero) * 1e-6 for time in times] if times[0] > 1e12 else times


def write(name, readings, switches, moves):
    kept, last = [], None
    for index, row in enumerate(readings):
        new = index == 0 or row[1:] != readings[index - 1][1:]
        before_new = index + 1 == len(readings) or readings[index + 1][1:] != row[1:]
        if new or before_new or row[0] - last >= THIN:
            kept.append(row)
            last = row[0]
    with open(name + ".csv", "w") as file:
        file.write("time [s],power.draw.instant [W],power.draw.average [W]\n")
        file.writelines(f"{time:.6f},{instant:.3f},{average:.3f}\n" for time, instant, average in kept)
    with open(name + ".steps", "w") as file:
        file.writelines(f"{time:.6f}\n" for time in switches)
    with open(name + "-counter.csv", "w") as file:
        file.write("time [s],energy [J]\n")
        file.writelines(f"{time:.6f},{joules:.3f}\n" for time, joules in moves)


def line(points):
    """The straight line through points, as a function, and its slope."""
    n = len(points)
    if n < 3:
        sys.exit(f"the counter moved {n} times in a rest: too few")
    mean_t, mean_e = sum(t for t, _ in points) / n, sum(e for _, e in points) / n
    slope = sum((t - mean_t) * (e - mean_e) for t, e in points) / sum((t - mean_t) ** 2 for t, _ in points)
    return (lambda time: mean_e + slope * (time - mean_t)), slope


def at(points, time):
    """Straight between points."""
    for (t0, e0), (t1, e1) in zip(points, points[1:]):
        if t0 <= time <= t1:
            return e0 + (e1 - e0) * ((time - t0) / (t1 - t0) if t1 > t0 else 1.0)
    return points[0][1] if time < points[0][0] else points[-1][1]


def patterns(switches, halves):
    """The switches of each pattern: a rest longer than its own ends it."""
    found, current = [], [switches[0]]
    for before, time in zip(switches, switches[1:]):
        half = halves[len(found)]
        if len(current) % 2 == 0 and time - before > half + 0.4:
            found.append(current)
            current = []
            if len(found) == len(halves):
                sys.exit("there are more patterns than periods")
        current.append(time)
    found.append(current)
    if len(found) != len(halves):
        sys.exit(f"{len(found)} patterns for {len(halves)} periods")
    return found


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr.strip()


def levels(name, readings, switches, moves):
    """What counter and sensors say while the load is steady: where they differ, their gain or offset does."""
    rows = []
    for kind, first in (("load", 0), ("rest", 1)):
        spans = [(a + SETTLED - 0.15, b) for a, b in list(zip(switches, switches[1:]))[first::2]]
        spans = [(a, b) for a, b in spans if b - a > 0.15]
        for a, b in spans:
            inside = [row for row in readings if a <= row[0] <= b]
            counted = [move for move in moves if a - 0.75 <= move[0] <= b]
            if len(counted) > 3 and inside:
                mean = lambda index: sum(row[index] for row in inside) / len(inside)
                rows.append((kind, line(counted)[1], mean(1), mean(2)))
    for kind in ("load", "rest"):
        of = [row[1:] for row in rows if row[0] == kind]
        if of:
            counter, instant, average = (sum(column) / len(of) for column in zip(*of))
            print(
                f"{name}, {kind} of {len(of)}: counter {counter:.2f} W, instant {instant:.2f} W ({instant / counter - 1:+.2%}), "
                f"average {average:.2f} W ({average / counter - 1:+.2%})"
            )


class Pattern:
    """One pattern: its files, and what the counter says of it."""

    def __init__(self, name, half, switches, moves):
        self.name, self.half, self.switches, self.moves = name, half, switches, moves
        self.before, slope_before = line([move for move in moves if move[0] <= switches[0]])
        self.after, slope_after = line([move for move in moves if move[0] >= switches[-1] + COUNTED])
        self.idle = (slope_before + slope_after) / 2
        middle = (switches[0] + switches[-1]) / 2
        self.above = self.after(middle) - self.before(middle)

    def joules(self, start, end):
        """Of a time that begins and ends at rest, or at the very switch."""
        return self.after(end) - self.before(start)

    def bursts(self):
        """Joules above idle of each burst, where the rests are long enough to tell them apart."""
        found = []
        for on, off in zip(self.switches[::2], self.switches[1::2]):
            start, end = on - 0.1 * self.half, off + 0.5 * self.half
            counted = at(self.moves, end) - at(self.moves, start)
            found.append((on, off, counted - self.idle * (end - start)))
        return found


def judged(eprof, pattern, column, how, options):
    """One line of the table."""
    output = "corrected.csv"
    command = [eprof, "gpu", "correct", pattern.name + ".csv", "--target", f"power.draw.{column}", *options]
    code, text, error = run(*command, "--format", "json", "--output", output)
    head = f"{pattern.name:<12} {column:<8} {how:<13}"
    if code:
        return f"{head} refused", [f"refused: {error}"]
    report = json.loads(text)
    with open(output) as file:
        next(file)
        cells = [line.split(",") for line in file]
    os.remove(output)
    curve = [(int(time) * 1e-9, float(joules)) for time, _, joules in cells]
    total, first = report["total"], curve[0][0]
    # Printed beside what is summed in --output, over the same time.
    summed = lambda row: at(curve, first + row["end_s"]) - at(curve, first + row["start_s"])
    apart = max(abs(summed(row) - row["corrected_j"]) for row in [total, *report["bursts"]])
    start, end = first + total["start_s"], first + total["end_s"]
    truth = pattern.joules(start, end)
    raw, corrected, error = total["raw_j"], total["corrected_j"], total["stderr_j"]
    gain = report["gain_error"] * corrected
    narrow = max(error**2 - gain**2, 0) ** 0.5
    percent = lambda joules: 100 * (joules / truth - 1)
    holds = lambda off, error: "yes" if abs(off) <= Z95 * error else "NO"
    text = (
        f"{head} {truth:8.1f} {percent(raw):+6.2f} {percent(corrected):+6.2f} {100 * Z95 * error / truth:6.2f} "
        f"{holds(corrected - truth, error):>3} {100 * Z95 * narrow / truth:6.2f} {holds(corrected - truth, narrow):>3} "
    )
    above, above_error = total["above_idle_j"], total["above_idle_stderr_j"]
    if above is not None and above_error is not None:
        off = above - pattern.above
        text += (
            f"{pattern.above:7.1f} {100 * off / pattern.above:+6.1f} {100 * Z95 * above_error / pattern.above:6.1f} "
            f"{holds(off, above_error):>3} "
        )
    else:
        text += f"{pattern.above:7.1f} {'-':>6} {'-':>6} {'-':>3} "
    idle = report["active_idle_w"]
    text += f"{pattern.idle:6.1f} {idle if idle is None else round(idle, 1)!s:>6} {apart:7.3f} "
    text += f"{len(report['bursts']):>3}/{len(pattern.switches) // 2:<3}"
    if pattern.half >= 0.4 and report["bursts"]:
        off, held, count = 0.0, 0, 0
        for on, off_time, true in pattern.bursts():
            middle = (on + off_time) / 2
            for row in report["bursts"]:
                if first + row["start_s"] <= middle <= first + row["end_s"] and row["above_idle_j"] is not None:
                    count += 1
                    off += abs(row["above_idle_j"] / true - 1)
                    held += abs(row["above_idle_j"] - true) <= Z95 * (row["above_idle_stderr_j"] or 0)
        if count:
            text += f" each {100 * off / count:.1f} %, {held}/{count}"
    return text, report["notes"]


def main():
    eprof, periods = sys.argv[1], sys.argv[2].split(",")
    halves = [float(period) / 2000 for period in periods]
    readings, moves, zero = trace("calibration.trace")
    switches = steps("calibration.steps", zero)
    readings = [row for row in readings if row[0] >= SETTLED]
    write("calibration", readings, switches, moves)
    levels("calibration", readings, switches, moves)

    for column in ("instant", "average"):
        target = ["--target", f"power.draw.{column}"]
        ways = {"": [], "--steps": ["--steps", "calibration.steps", "--save", column + ".json"]}
        for how, options in ways.items():
            code, text, error = run(eprof, "gpu", "calibrate", "calibration.csv", *target, *options)
            print(f"\n$ gpu calibrate {column} {how}\n{text.strip()}" + (f"\n{code}: {error}" if code else ""))

    readings, moves, zero = trace("patterns.trace")
    found = patterns(steps("patterns.steps", zero), halves)
    table, notes = [], []
    last_off = 0.0  # what turns tries out first
    for index, (half, switches) in enumerate(zip(halves, found)):
        begin = last_off + SETTLED
        end = found[index + 1][0] - 0.02 if index + 1 < len(found) else readings[-1][0]
        inside = [row for row in readings if begin <= row[0] <= end]
        counted = [move for move in moves if last_off + COUNTED <= move[0] <= end]
        name = f"burst-{half * 1000:g}"
        write(name, inside, switches, counted)
        last_off = switches[-1]
        pattern = Pattern(name, half, switches, counted)
        on = [b - a for a, b in zip(switches[::2], switches[1::2])]
        notes.append(f"{name}: {len(on)} bursts of {1000 * sum(on) / len(on):.2f} ms ({1000 * min(on):.2f} to {1000 * max(on):.2f})")
        for column in ("instant", "average"):
            sensor = ["--sensor", column + ".json"] if os.path.exists(column + ".json") else []
            edges = ["--steps", name + ".steps"]
            ways = [("alone", []), ("steps", edges)]
            if sensor:
                ways += [("sensor", sensor), ("sensor,steps", sensor + edges)]
            for how, options in ways:
                line, said = judged(eprof, pattern, column, how, options)
                table.append(line)
                notes += [f"{name} {column} {how}: {note}" for note in said]
    with open("notes.txt", "w") as file:
        file.write("\n".join(notes) + "\n")
    heading = (
        "\nin % of the counter's joules: what the sensor's readings and eprof's corrected ones are off by, and eprof's 95 %\n"
        "(with and without the board's gain); of joules above idle the same; what --output has otherwise than printed\n"
        f"{'pattern':<12} {'sensor':<8} {'told':<13} {'counter':>8} {'raw':>6} {'corr':>6} {'95 %':>6} {'':>3} {'nogain':>6} {'':>3} "
        f"{'above':>7} {'off':>6} {'95 %':>6} {'':>3} {'idle':>6} {'eprof':>6} {'output':>7} bursts"
    )
    with open("results.txt", "w") as file:
        file.write("\n".join([heading, *table]) + "\n")
    print(heading)
    # Those without the calibration are in the file alone.
    print("\n".join(line for line in table if " steps " not in line))


if __name__ == "__main__":
    main()
