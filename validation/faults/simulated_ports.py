# SPDX-License-Identifier: Apache-2.0
"""Counters of every NIC's port of a simulated run: rates, bytes, errors, and marks where its flows meet.

Routes are a plain model of a fat tree whose leaves hash each queue pair of a flow onto one link to the spine, by the
hash that the simulator has (topologies/routing), so that both see the same collisions of a seed.
"""

from collections import defaultdict

HOST = 8  # GPUs, each with a NIC
NIC, EFFICIENCY, PACKET = 50e9, 0.95, 4096
# Of packets: told of congestion where a link on the way is full, and where none is. A receiver answers marked packets
# (np_cnp_sent counts at the notification point: drivers/infiniband/hw/mlx5 of Linux).
FULL, EMPTY = 5e-3, 1e-5
ODD_PORTS = 30 / 15735  # healthy ports that count a wrong symbol (docs/diagnose.md)

MASK, STEP = 2**64 - 1, 0x9E3779B97F4A7C15


def mixed(x):
    """SplitMix64's finaliser."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def hashed(start, *values):
    for value in values:
        start = mixed((start + STEP + mixed(value)) & MASK)
    return start


def chosen(value, tier, group, choices):
    """One of equal links, by the hash of the switch of a group."""
    here = mixed((value + STEP + mixed((group << 24) << 2 ^ tier)) & MASK)
    return (here >> 32) * choices >> 32


def rings_of(gpus, leaf, queue_pairs, seed):
    """A ring for each position in a host: the share of its flow on every link between leaves and the spine, and
    for each link the ports that receive over it."""
    hosts, rings, receivers = gpus // HOST, [defaultdict(float) for _ in range(HOST)], defaultdict(dict)
    for host in range(hosts):
        for position in range(HOST):
            sender, receiver = host * HOST + position, (host + 1) % hosts * HOST + position
            up, down = sender // leaf, receiver // leaf
            if up == down:
                continue
            flow = hashed(mixed((seed + STEP) & MASK), sender, receiver, host * HOST + position)
            for pair in range(queue_pairs):
                value = hashed(flow, pair, 0)
                for link in (("up", up, chosen(value, 0, up, leaf)), ("down", down, chosen(value, 3, 0, leaf))):
                    rings[position][link] += 1 / queue_pairs
                    receivers[link][receiver] = receivers[link].get(receiver, 0) + 1 / queue_pairs
    return rings, receivers


def full_links(rings, nics, left):
    """Links that are full where rings share them fairly: each is as fast as its slowest hop. `nics`: the most that the
    NICs of a ring let through. `left`: what broken links have of their rate."""
    rates, going, full = [0.0] * len(rings), set(range(len(rings))), set()
    while going:
        loads, fixed = defaultdict(float), defaultdict(float)
        for i, ring in enumerate(rings):
            for link, share in ring.items():
                (loads if i in going else fixed)[link] += share * (1 if i in going else rates[i])
        reached = {k: (left.get(k, 1.0) - fixed[k]) / load for k, load in loads.items()}
        rate = min([*(nics[i] for i in going), *reached.values()])
        now = {k for k, at in reached.items() if at <= rate + 1e-9}
        full |= now
        for i in [i for i in going if nics[i] <= rate + 1e-9 or now & set(rings[i])]:
            rates[i] = rate
            going.discard(i)
    return full


def check_busiest(network, full):
    """The simulator's busiest link is one of the full ones, else the two disagree on routes."""
    for collective in network["collectives"]:
        words = collective["busiest"][0]["link"].split() if collective["busiest"] else []
        if "spine" in words and "group" in words and collective["ranks"] > HOST:
            name = ("up" if words[0] == "leaf" else "down", int(words[words.index("group") + 1]))
            if name not in {link[:2] for link in full}:
                raise SystemExit(f"simulated.py: the simulator's busiest link is {' '.join(words)}, the routes' {full}")


def port_that_takes_all(fault, faulty):
    """The port whose link is full as more comes for it than it takes: one at a part of its rate, or the neighbour of one
    that is down. Where a cable loses packets nothing queues."""
    if fault.shown.get("port_silent"):
        return faulty ^ 1
    return faulty if "port_rate" in fault.shown else None


def hashed_shares(settings, fault, faulty, network):
    """For each port, the share of the packets it receives that passed a full link between leaves and the spine."""
    pairs = fault.queue_pairs or settings["queue_pairs"]
    faults = fault.condition.get("faults", ())
    # The first of the equal links, as the simulator takes it.
    left = {(way, f["leaf"], 0): f["remaining"] for f in faults if f["kind"] == "leaf-spine" for way in ("up", "down")}
    nics = [EFFICIENCY] * HOST
    for f in faults:
        if f["kind"] == "nic":
            nics[faulty % HOST] *= f["remaining"]
    rings, receivers = rings_of(settings["gpus"], settings["leaf"], pairs, fault.condition.get("seed", 1))
    full = full_links(rings, nics, left)
    check_busiest(network, full)
    shares = defaultdict(float)
    for link in full:
        for gpu, share in receivers[link].items():
            shares[gpu] = min(1.0, shares[gpu] + share)
    return shares


def met_shares(settings, fault, faulty, network):
    """For each port, the share of the packets it receives that passed a full link."""
    shares = hashed_shares(settings, fault, faulty, network) if "leaf" in settings else defaultdict(float)
    for other in fault.condition.get("background", ()):
        # Its flows and the run's go to the same NICs: the links from leaves to these are full.
        for gpu in range(other["first_gpu"], other["first_gpu"] + other["gpus"]):
            shares[gpu] = 1.0
    if (port := port_that_takes_all(fault, faulty)) is not None:
        shares[port] = 1.0
    return shares


def sent_in_a_minute(gpu, fault, faulty, bytes_per_second):
    sent = 60 * bytes_per_second
    for other in fault.condition.get("background", ()):
        if other["first_gpu"] <= gpu < other["first_gpu"] + other["gpus"]:
            sent = max(sent, 60 * NIC * EFFICIENCY * other["load"])
    if fault.shown.get("port_silent"):
        sent = 1e5 if gpu == faulty else 2 * sent if gpu == faulty ^ 1 else sent
    return sent


def ports_of(gpus, fault, faulty, shares, bytes_per_second, bursts_per_second, noise):
    """Counters of every port of the run, as an exporter's come out of a query of a range of a minute."""
    rows = ["timestamp,metric,node,device,port,value"]
    for gpu in range(gpus):
        rate = NIC * (fault.shown.get("port_rate", 1.0) if gpu == faulty else 1.0)
        sent = sent_in_a_minute(gpu, fault, faulty, bytes_per_second) * noise.factor(0.02)
        marks = sent / PACKET * (FULL * shares[gpu] + EMPTY) * noise.factor(1.0)
        errors = int(noise.random.random() < ODD_PORTS)
        if gpu == faulty:
            errors += sum(round(fault.shown["symbols"] * noise.factor(1.0)) for _ in range(round(60 * bursts_per_second)))
        for second in range(0, 61, 15):
            for metric, value in (
                ("rate_bytes_per_second", rate),
                ("port_data_transmitted_bytes_total", sent * second / 60),
                ("np_congestion_notification_packets_sent_total", marks * second / 60),
                ("symbol_error_total", errors * second / 60),
            ):
                place = f"host{gpu // HOST},mlx5_{gpu % HOST},1"
                rows.append(f"{1795687200 + second},node_infiniband_{metric},{place},{value:.0f}")
    return "\n".join(rows) + "\n"
