# SPDX-License-Identifier: Apache-2.0
"""Examples of docs/python.md, held to the types by mypy --strict."""
import orrery


def fastest_tp(model: str, gpus: int) -> int:
    """The tensor parallelism of the best layout."""
    try:
        advised = orrery.advise(model=model, cluster="dgx-h100", gpus=gpus, seq=8192, global_batch=512)
    except orrery.DoesNotFit as error:
        print(f"{model} fits from {error.fits_from_gpus} GPUs: {error.why}")
        return 0
    assert advised.best is not None
    return advised.best[0].layout.tp


def step_seconds(tp: int) -> float:
    answer = orrery.simulate(model="llama3-8b", cluster="dgx-h100", gpus=16, seq=8192, global_batch=64, tp=tp)
    answer.require()
    assert answer.prediction is not None
    return answer.prediction.step_time_s


def latencies() -> list[float]:
    served = orrery.serve(model="llama3.3-70b", cluster="dgx-h100", stack="vllm", engines="TP8",
                          concurrency=[1, 16], isl=1024, osl=128)
    return [point.latency.tpot.mean_s for point in served.points if point.latency is not None]


def longest_waits() -> dict[str, float | None]:
    scheduled = orrery.schedule(cluster="dgx-h100", gpus=640, trace="philly", days=7, policy=["fifo", "easy"])
    return {point.policy: point.first.wait_s.p99 for point in scheduled.points if point.first is not None}


def cheapest_rows() -> int:
    table = orrery.sweep({"tp": [1, 2, 4, 8], "gpus": [16, 32]}, model="llama3-8b", cluster="dgx-h100", seq=8192,
                         global_batch=64)
    fitting = table["fits"] == True  # noqa: E712
    return int(fitting.sum())


if __name__ == "__main__":
    print(fastest_tp("llama3-70b", 64), step_seconds(2), latencies(), longest_waits(), cheapest_rows())
