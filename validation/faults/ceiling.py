#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Tells how often simulated faults could be told apart at best, by the symptoms that diagnose reads.
"""ceiling.py ORRERY --output DIR [--bare] [--times 60] [--seed 1000]

Draws runs of simulated.py at random strengths, reads their symptoms off `orrery diagnose --json`, and weighs the
causes of other runs by how dense drawn ones lie around theirs (kernels as wide as healthy runs differ) and by the
causes' shares of the table. With enough drawn runs that is Bayes' rule, which no method that reads these symptoms can
beat but by chance. Prints how many of other runs of the table's kinds it gets right, first and among three: with the
generator's own noise, of which each collective is predicted to 3%; and with what real runs differ from predictions
added to each symptom (sim/diagnose/catalog/symptoms.json).
"""

import argparse
import concurrent.futures
import json
import math
import pathlib
import random
import subprocess

from simulated import GPU, PROFILED, PROGRAMS, Noise, faults, nic, predicted, write_run

SHARES = {"": 27, "slow-nic": 27, "bad-cable": 9, "colliding-flows": 18, "slow-scale-up": 9, "low-clock": 18, "slow-gpu": 9}


def drawn(cause, dice):
    """A fault of the cause at a random strength: as simulated.faults() has them."""
    if cause == "slow-nic":
        if dice.random() < 0.67:
            left = dice.uniform(0.2, 0.7)
            return nic(left), dict(port_rate=left), 0.03
        return nic(0.5), dict(port_silent=True), 0.03
    if cause == "bad-cable":
        return nic(dice.uniform(0.5, 0.8)), dict(symbol_errors=4000), 0.25
    if cause == "colliding-flows":
        if dice.random() < 0.5:
            return nic(dice.choice([1 / 2, 1 / 3])), dict(marks=1), 0.03
        return dict(background=[dict(pattern="all-to-all", first_gpu=0, gpus=32, load=dice.uniform(0.7, 1.0))]), dict(marks=8), 0.1
    if cause == "slow-scale-up":
        return dict(faults=[dict(kind="scale-up", gpu=GPU, remaining=dice.uniform(0.15, 0.6))]), {}, 0.03
    if cause in ("low-clock", "slow-gpu"):
        speed = dice.uniform(0.6, 0.85)
        return dict(slow_gpus=[dict(gpu=GPU, speed=speed)]), dict(clock=speed) if cause == "low-clock" else {}, 0.03
    if cause == "slow-memory":
        return {}, dict(memory=dice.uniform(0.5, 0.8), corrected=9), 0.03
    return {}, {}, 0.03


def symptoms(orrery, folder, program, shown):
    """Figures of a run: those of the whole run and means; of ranks the faulty one's. Errors of ports."""
    files = [orrery, "diagnose", "--like", str(folder.parent.parent / "programs" / f"{program}.json"), str(folder)]
    done = subprocess.run([*files, "--json", "--quiet"], capture_output=True, text=True)
    rows = json.loads(done.stdout)["findings"][0]["evidence"]
    place = max(PROFILED) if GPU not in PROFILED else GPU
    told = " ".join(json.loads(done.stdout)["counters"])
    out = {"port errors": float("wrong symbols" in told), "slow port": float("the port" in told),
           "port congestion": float("marks of congestion" in told), "corrected errors": float("corrected" in shown)}
    for row in rows:
        if row["rank"] in (None, place):
            moved = row["healthy"] if row["symptom"] == "step" else 0  # what kernels say of the prediction
            out[f"{row['symptom']} {row['rank']}"] = row["value"] - moved
    return out


def made(options, jobs):
    """Runs of (cause, program, condition, counters, spread, seed): their cause, program and symptoms."""
    healthy = {p: predicted(options.orrery, s, {}) for p, s in PROGRAMS.items()}

    def one(job):
        number, (cause, program, condition, counters, spread, seed) = job
        noise = Noise(options.runs, seed)
        slow = condition.get("slow_gpus")
        answer = healthy[program] if slow or not condition else predicted(options.orrery, PROGRAMS[program], condition)
        shown = dict(counters, speed=slow[0]["speed"] if slow else 1.0)
        folder = options.output / "runs" / f"r{number}"
        write_run(folder, folder.name, program, cause, answer, healthy[program], shown, spread, noise,
                  with_ports=not options.bare)
        figures = symptoms(options.orrery, folder, program, shown)
        record = json.loads((folder / "run.json").read_text())
        cost = figures and float(record.get("step_s", 0)) / record["healthy_step_s"] - 1
        for file in folder.iterdir():
            file.unlink()
        return cause, program, figures, cost

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, enumerate(jobs)))


def log_density(figures, others, width):
    """Logarithm of the mean of normal kernels around other runs, as wide as `width` says."""
    sums = []
    for other in others:
        total = 0.0
        for key, value in figures.items():
            apart = (value - other.get(key, 0.0)) / width.get(key, 1.0)
            total -= 0.5 * min(apart * apart, 400.0)
        sums.append(total)
    most = max(sums)
    return most + math.log(sum(math.exp(s - most) for s in sums) / len(sums))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("orrery")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--bare", action="store_true", help="without counters of ports")
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent / "runs")
    parser.add_argument("--times", type=int, default=60, help="drawn runs of each cause and program")
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args()
    (options.output / "programs").mkdir(parents=True, exist_ok=True)
    for program, settings in PROGRAMS.items():
        (options.output / "programs" / f"{program}.json").write_text(json.dumps(settings) + "\n")
    dice = random.Random(options.seed)
    jobs = [
        (cause, program, *drawn(cause, dice), options.seed + i)
        for program in PROGRAMS
        for cause in SHARES
        for i in range(options.times)
    ]
    known = made(options, jobs)
    # The table's kinds of runs, with noise of their own.
    asked = [
        (cause, program, condition, counters, spread, options.seed // 2 + 10 * number + again)
        for program in PROGRAMS
        for number, (cause, condition, counters, spread) in enumerate(faults())
        for again in range(9 if not cause else 3)
    ]
    asked = made(options, asked)
    print("with the generator's noise:")
    tell(known, asked)
    noise = json.loads((pathlib.Path(__file__).resolve().parents[2] / "sim/diagnose/catalog/symptoms.json").read_text())

    def blurred(runs):
        def one(key, value):
            symptom, rank = key.rsplit(" ", 1)
            row = noise.get(symptom.replace("_", "-"), {})
            return value + dice.gauss(0, row.get("base" if rank == "None" else "rank", 0.0))

        return [(c, p, {k: one(k, v) for k, v in figures.items()}, cost) for c, p, figures, cost in runs]

    print("with that of real runs:")
    tell(blurred(known), blurred(asked))


def tell(known, asked):
    """Prints how many of the asked runs the known ones get right."""
    first, three, counts, wrong = 0, 0, 0, {}
    for cause, program, figures, cost in asked:
        if cause and cost < 0.03:
            continue
        like = [k for k in known if k[1] == program]
        healthy = [k[2] for k in like if not k[0]]
        # Kernels shrink with the number of runs (Silverman's rule, of one dimension: wide, not narrow).
        width = {}
        for key in figures:
            values = [h.get(key, 0.0) for h in healthy]
            mean = sum(values) / len(values)
            deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))
            width[key] = max(deviation, 1e-3)
        weights = {
            c: math.log(share) + log_density(figures, [k[2] for k in like if k[0] == c], width)
            for c, share in SHARES.items()
        }
        order = sorted(weights, key=weights.get, reverse=True)
        if cause:
            counts += 1
            first += order[0] == cause
            three += cause in order[:3]
        if order[0] != cause:
            wrong[cause, order[0]] = wrong.get((cause, order[0]), 0) + 1
    print(f"faults that cost 3% or more: {counts}; first {first} ({100 * first / counts:.0f}%), "
          f"in three {three} ({100 * three / counts:.0f}%)")
    for (cause, found), number in sorted(wrong.items()):
        print(f"  {cause or 'healthy'} as {found or 'healthy'}: {number}")


if __name__ == "__main__":
    main()
