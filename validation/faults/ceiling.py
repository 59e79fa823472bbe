#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Tells how often simulated faults could be told apart at best, by the symptoms that diagnose reads.
"""ceiling.py ORRERY --output DIR [--bare] [--times 60] [--seed 1000]

Draws runs of simulated.py at random strengths, reads their symptoms off `orrery diagnose --json`, and weighs the
causes of other runs by how dense drawn ones lie around theirs (kernels as wide as healthy runs differ) and by the
causes' shares of the table. With enough drawn runs that is Bayes' rule, which no method that reads these symptoms can
beat but by chance. What counters and names of kernels tell (a port's rate, marks, wrong symbols, limits of clocks and
power, kernels of an older chip) is known for certain. Prints how many of other runs of the table's kinds it gets right,
first and among three: with the generator's own noise, of which each collective is predicted to 3%; and with what real
runs differ from predictions added to each symptom (sim/diagnose/catalog/symptoms.json).
"""

import argparse
import concurrent.futures
import json
import math
import pathlib
import random
import subprocess

from simulated import (FLASH_2, GPU, GROUPED_PRODUCTS, HASHED, MEMORY_EFFICIENT, PROFILED, PROGRAMS, SLOW_PRODUCTS, Fault,
                       Noise, faults_of, nic, predicted, write_run)


def shares_of(program):
    """How many runs of each cause the table has of a program."""
    shares = {}
    for fault in faults_of(program):
        shares[fault.cause] = shares.get(fault.cause, 0) + (3 if fault.cause else 9)
    return shares


def drawn_network(cause, program, dice):
    if cause == "slow-nic":
        left = dice.uniform(0.2, 0.7)
        if dice.random() < 0.67:
            return Fault(cause, nic(left), shown=dict(port_rate=left))
        return Fault(cause, nic(0.5), shown=dict(port_silent=True))
    if cause == "bad-cable":
        burst = 10 ** dice.uniform(-4, -2.5)
        return Fault(cause, nic(dice.uniform(0.5, 0.8)), burst=burst, shown=dict(symbols=burst * 1e4))
    if cause == "slow-scale-up":
        return Fault(cause, dict(faults=[dict(kind="scale-up", gpu=GPU, remaining=dice.uniform(0.15, 0.6))]))
    form = dice.random() if program in HASHED else 0.0
    if form < 1 / 7:
        other = dict(pattern="all-to-all", first_gpu=0, gpus=32, load=dice.uniform(0.7, 1.0))
        return Fault(cause, dict(background=[other]), spread=0.1)
    seed = dice.randrange(1, 1000)
    if form < 4 / 7:
        return Fault(cause, dict(seed=seed), queue_pairs=dice.choice((1, 1, 4)))
    broken = dict(kind="leaf-spine", leaf=dice.randrange(4), spine=0, remaining=dice.uniform(0.2, 0.5))
    return Fault(cause, dict(seed=seed, faults=[broken]))


def drawn(cause, program, dice):
    """A fault of the cause at a random strength: as simulated.faults_of() has them."""
    if cause in ("slow-nic", "bad-cable", "slow-scale-up", "colliding-flows"):
        return drawn_network(cause, program, dice)
    speed = dice.uniform(0.6, 0.85)
    if cause == "low-clock":
        return Fault(cause, speed=speed, shown=dict(reason=0x20, heat=27) if dice.random() < 0.5 else dict(reason=0x2))
    if cause == "slow-gpu":
        return Fault(cause, speed=speed, shown=dict(clock=1.0))
    if cause == "slow-memory":
        return Fault(cause, memory=dice.uniform(0.5, 0.8), shown=dict(corrected=9, clock=1.0))
    if cause == "low-clocks" and dice.random() < 0.5:
        watts = dice.randrange(350, 500, 10)
        return Fault(cause, dict(power_cap=f"{watts} W"), shown=dict(power=watts))
    if cause == "low-clocks":
        return Fault(cause, speed=speed, everywhere=True, shown=dict(reason=0x2))
    if cause == "mismatched-products":
        names, _ = dice.choice((SLOW_PRODUCTS, GROUPED_PRODUCTS))
        return Fault(cause, kernels=dict(product=(names, dice.uniform(0.55, 0.8))))
    if cause == "mismatched-attention":
        names, usual = dice.choice((FLASH_2, MEMORY_EFFICIENT))
        return Fault(cause, kernels=dict(attention=(names, usual * dice.uniform(0.85, 1.15))))
    if cause == "no-overlap":
        return Fault(cause, overlaps=False)
    if cause == "imbalance":
        tokens = dice.uniform(1.2, 2.2)
        return Fault(cause, dict(expert_imbalance=tokens), tokens=tokens)
    return Fault()


def symptoms(orrery, folder, program, fault):
    """Figures of a run: those of the whole run and means; of ranks the faulty one's. What counters and names of kernels
    tell."""
    files = [orrery, "diagnose", "--like", str(folder.parent.parent / "programs" / f"{program}.json"), str(folder)]
    done = subprocess.run([*files, "--json", "--quiet"], capture_output=True, text=True)
    rows = json.loads(done.stdout)["findings"][0]["evidence"]
    place = max(PROFILED) if GPU not in PROFILED else GPU
    told = " ".join(json.loads(done.stdout)["counters"])
    out = {"port errors": float("wrong symbols" in told), "slow port": float("the port" in told),
           "port congestion": float("marks of congestion" in told), "corrected errors": float("corrected" in fault.shown),
           "held by setting": float("a clock setting" in told), "held by heat": float("heat" in fault.shown),
           "power limit": fault.shown.get("power", 700) / 700, "older products": float("product" in fault.kernels),
           "older attention": float("attention" in fault.kernels)}
    for row in rows:
        if row["rank"] in (None, place):
            moved = row["healthy"] if row["symptom"] == "step" else 0  # what kernels say of the prediction
            out[f"{row['symptom']} {row['rank']}"] = row["value"] - moved
    return out


def made(options, jobs):
    """Runs of (program, fault, seed): their cause, program and symptoms."""
    healthy = {p: predicted(options.orrery, s, Fault(), options.output) for p, s in PROGRAMS.items()}

    def one(job):
        number, (program, fault, seed) = job
        answer = predicted(options.orrery, PROGRAMS[program], fault, options.output) if fault.condition else healthy[program]
        folder = options.output / "runs" / f"r{number}"
        cost = write_run(folder, program, fault, answer, healthy[program], Noise(options.runs, seed), not options.bare)
        figures = symptoms(options.orrery, folder, program, fault)
        for file in folder.iterdir():
            file.unlink()
        return fault.cause, program, figures, cost

    with concurrent.futures.ThreadPoolExecutor(options.threads) as pool:
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
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    (options.output / "programs").mkdir(parents=True, exist_ok=True)
    for program, settings in PROGRAMS.items():
        (options.output / "programs" / f"{program}.json").write_text(json.dumps(settings) + "\n")
    dice = random.Random(options.seed)
    jobs = [
        (program, drawn(cause, program, dice), options.seed + i)
        for program in PROGRAMS
        for cause in shares_of(program)
        for i in range(options.times)
    ]
    known = made(options, jobs)
    # The table's kinds of runs, with noise of their own.
    asked = [
        (program, fault, options.seed // 2 + 10 * number + again)
        for program in PROGRAMS
        for number, fault in enumerate(faults_of(program))
        for again in range(3 if fault.cause else 9)
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
            for c, share in shares_of(program).items()
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
