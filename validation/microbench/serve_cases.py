# SPDX-License-Identifier: Apache-2.0
# Runs the serving engine under load: closed loops, Poisson arrivals, recorded lengths, small pools.
"""Every case is one line of record `run`: settings, traffic, a summary, and columns of all steps and
requests. A closed loop stops sending after its seconds and runs empty; Poisson cases offer a share of the
requests a second that a saturated closed loop of the same lengths finished while steady. `replayed` says
whether the scheduler, run again on the log, made the same steps.
"""

from serve_engine import Engine, Traffic, replay, summary
from serve_session import held, seed_of
from serve_traffic import label, lengths, poisson

SMALL = ("llama-3.2-1b",)
UNIFORM = {True: ("uniform", (64, 448), (16, 112)), False: ("uniform", (128, 896), (32, 224))}


def is_small(runner):
    return runner.shape.name in SMALL


def run_case(session, runner, part, one, traffic, described, most_seconds, **engine_keys):
    engine = Engine(runner, **engine_keys)
    before = session.sensors()
    log = engine.run(traffic, most_seconds, session.stopped)
    after = session.sensors()
    steps, requests = log.columns()
    found = summary(steps, requests)
    record = {"engine": engine.settings(), "steps": steps, "requests": requests}
    differs = replay(record)
    session.out.line(
        "run",
        id=one,
        part=part,
        held=held(one),
        model=runner.shape.name,
        engine=engine.settings(),
        traffic=described,
        summary=found,
        replayed=differs or "same",
        interrupted=session.interrupted or None,
        sensors_before=before,
        sensors_after=after,
        steps=steps,
        requests=requests,
    )
    ttft, tpot = found["ttft_s"], found["tpot_s"]
    session.note(
        f"{one}: {found['finished']}/{found['requests']} requests, {found['steps']} steps, "
        f"{found['output_tokens_s'] or 0:.0f} tokens/s, TTFT {1e3 * (ttft['mean'] or 0):.1f} ms, "
        f"TPOT {1e3 * (tpot['mean'] or 0):.2f} ms, {found['preemptions']} preemptions, "
        f"{found['between_steps_us'] or 0:.0f} us between steps, replay {differs or 'same'}"
    )
    return found


def closed_case(session, runner, part, clients, spec, seconds, name="", count=20000, **engine_keys):
    """A closed loop that sends for so many seconds; returns its summary."""
    one = f"{part}/{runner.shape.name}/{name or label(spec)}/c{clients}"
    drawn = lengths(spec, count, seed_of(one), runner.context)
    seconds = session.seconds(seconds)
    described = {"kind": "closed", "clients": clients, "lengths": label(spec), "seconds": seconds}
    return session.case(
        one,
        lambda: run_case(
            session,
            runner,
            part,
            one,
            Traffic(drawn, clients=clients, seconds=seconds),
            described,
            3 * seconds + 6,
            **engine_keys,
        ),
    )


def poisson_case(session, runner, part, share, capacity, spec, seconds, least=0, name=""):
    one = f"{part}/{runner.shape.name}/{name or label(spec)}/load{round(100 * share)}"
    rate = share * capacity
    count = max(int(rate * session.seconds(seconds)), 8 if session.quick else least, 2)
    drawn = lengths(spec, count, seed_of(one), runner.context)
    described = {
        "kind": "poisson",
        "rate_s": rate,
        "share": share,
        "capacity_s": capacity,
        "lengths": label(spec),
    }
    return session.case(
        one,
        lambda: run_case(
            session,
            runner,
            part,
            one,
            Traffic(drawn, times=poisson(rate, count, seed_of(one))),
            described,
            count / rate + 12,
        ),
    )


def closed(session, runner):
    small, spec = is_small(runner), ("fixed", 256, 64) if is_small(runner) else ("fixed", 512, 128)
    wanted = (1, 4, 16, 64, 256) if small else (1, 2, 4, 8, 16, 32, 64, 128, 256)
    for clients in wanted[::4] if session.quick else wanted[::2] if session.options.thin else wanted:
        closed_case(session, runner, "closed", clients, spec, 3 if small else 5)
    if session.quick:
        return
    closed_case(session, runner, "closed", 16, spec, 3 if small else 5, name=label(spec) + "-again")
    if not small and not session.options.thin:
        closed_case(session, runner, "closed", 32, ("uniform", (64, 1024), (16, 256)), 5)
        closed_case(session, runner, "closed", 16, ("fixed", 4096, 64), 5)
        closed_case(session, runner, "closed", 64, ("fixed", 64, 512), 6)


def capacity_of(session, runner, spec, clients, seconds, part):
    """Requests a second of a saturated closed loop; found once for each model and lengths."""
    key = (runner.shape.name, label(spec))
    if key not in session.capacity:
        found = closed_case(session, runner, part, clients, spec, seconds)
        if not found or not found["finished"]:
            return None
        session.capacity[key] = found.get("steady_requests_s") or found["finished"] / found["span_s"]
    return session.capacity[key]


def poisson_part(session, runner):
    small = is_small(runner)
    spec = UNIFORM[small]
    capacity = capacity_of(session, runner, spec, 256, 4 if small else 8, "poisson")
    if not capacity:
        return
    shares = (
        (0.5,)
        if session.quick
        else (0.3, 0.7, 0.9) if session.options.thin else (0.3, 0.5, 0.7, 0.85, 0.95)
    )
    for share in shares:
        poisson_case(
            session,
            runner,
            "poisson",
            share,
            capacity,
            spec,
            4 if small else 10,
            least=1100 if small else 0,
        )


def traces(session, runner):
    small, quick = is_small(runner), session.quick
    for name, clients, seconds in (
        ("azure-conversation", 64, 8),
        ("azure-code", 32, 6),
        ("mooncake-conversation", 8, 8),
    ):
        if name == "azure-code" and (quick or session.options.thin):
            continue
        capacity = capacity_of(
            session, runner, (name,), clients, seconds / 2 if small else seconds, "traces"
        )
        if not capacity:
            continue
        many = small and name == "azure-conversation"
        for share in (0.8,) if small or quick or session.options.thin else (0.5, 0.8):
            poisson_case(
                session,
                runner,
                "traces",
                share,
                capacity,
                (name,),
                6 if small else 10,
                least=1050 if many else 0,
            )


def small_pool(session, runner):
    """Pools that run out of blocks; now and then a request that can never fit, which is refused."""

    def spec_of(blocks, count, seed):
        drawn = lengths(("uniform", (128, 512), (128, 384)), count, seed, runner.context)
        return [(16 * blocks + 1, 16) if i % 23 == 7 else p for i, p in enumerate(drawn)]

    cases = ((400, 32), (800, 32), (1600, 64)) if not session.quick else ((200, 16),)
    cases = cases[1:2] if session.options.thin else cases
    for blocks, clients in cases:
        if blocks > runner.blocks:
            continue
        one = f"small-pool/{runner.shape.name}/b{blocks}/c{clients}"
        seconds = session.seconds(5)
        described = {
            "kind": "closed",
            "clients": clients,
            "seconds": seconds,
            "lengths": f"i128..512-o128..384, every 23rd with a prompt of {16 * blocks + 1}",
        }
        session.case(
            one,
            lambda: run_case(
                session,
                runner,
                "small-pool",
                one,
                Traffic(spec_of(blocks, 4000, seed_of(one)), clients=clients, seconds=seconds),
                described,
                3 * seconds + 6,
                blocks=blocks,
            ),
        )
