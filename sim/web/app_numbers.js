// SPDX-License-Identifier: Apache-2.0
// Takes from an answer what is said first: its verdict, its key numbers, and how two of them differ.
import { between, duration, figures, gibibytes, layoutWords, money, percent, seconds, sentence, wattHours, watts,
  whole } from "/assets/app_words.js";

// One key number. `better`: 1 where more is better, -1 where less is, 0 where neither.
const number = (id, label, value, text, detail, better) => ({ id, label, value, text, detail, better });
const known = (value, text) => (value === null || value === undefined ? "not known" : text(value));

function range(low, high, text) {
  return low === null || low === undefined ? "" : `90% range ${between(low, high, text)}`;
}

function stepLabel(prediction) {
  return { ttft: "Time to first token", tpot: "Time per token" }[prediction.latency] ?? "Step time";
}

function stepNumbers(p) {
  const memory = p.memory;
  const need = `${gibibytes(memory.needed_low_bytes)} to ${gibibytes(memory.needed_high_bytes)}`;
  return [
    number("step", stepLabel(p), p.step_time_s, seconds(p.step_time_s),
      range(p.step_time_low_s, p.step_time_high_s, seconds), -1),
    number("speed", "Tokens/s a GPU", p.tokens_per_s_per_gpu, figures(p.tokens_per_s_per_gpu),
      `${figures(p.tokens_per_s)} tokens/s in all`, 1),
    number("mfu", "MFU", p.mfu, percent(p.mfu), "of the dense BF16 peak", 1),
    number("memory", "Memory of a GPU", memory.needed_bytes, `${gibibytes(memory.needed_bytes)} GiB`,
      `of ${gibibytes(memory.capacity_bytes)} GiB; range ${need}`, -1),
    number("power", "Power of a GPU", p.mean_power_per_gpu_w, watts(p.mean_power_per_gpu_w),
      `${figures(p.energy_per_token_j)} J a token`, -1),
    number("price", "Price of 1M tokens", p.cost_per_million_tokens_usd,
      known(p.cost_per_million_tokens_usd, money), `${money(p.rental_per_gpu_hour_usd)} a GPU-hour, ${p.contract}`, -1),
  ];
}

function planNumbers(answer) {
  const point = bestPoint(answer);
  if (!point) return [];
  const detail = answer.detail ?? {};
  return [
    number("machine", "Machine", null, point.cluster, Object.entries(point.values)
      .filter(([key]) => key !== "cluster" && key !== "gpus").map(([key, value]) => `${key} ${value}`).join(", "), 0),
    number("gpus", "GPUs", point.gpus, whole(point.gpus), `${whole(point.spares)} spares beside them`, -1),
    number("days", "Time", point.duration_s, known(point.duration_s, duration),
      range(detail.duration_low_s, detail.duration_high_s, duration), -1),
    number("cost", "Cost", point.cost_usd, known(point.cost_usd, money),
      range(detail.cost_low_usd, detail.cost_high_usd, money), -1),
    number("energy", "Energy", point.energy_j, known(point.energy_j, wattHours),
      `${watts(point.facility_peak_w)} of facility power at its peak`, -1),
    number("step", "Step time", point.step_time_s, seconds(point.step_time_s), `MFU ${percent(point.mfu)}`, -1),
  ];
}

// The point that a plan names best; of served ones the one with the most tokens a GPU.
export function bestPoint(answer) {
  const { points = [], best } = answer;
  if (typeof best === "number") return points[best];
  const speed = (point) => point.throughput.output_tokens_per_s_per_gpu;
  const served = points.filter((point) => point.throughput && !point.refusal);
  return served.reduce((most, point) => (!most || speed(point) > speed(most) ? point : most), null);
}

function serveNumbers(answer) {
  const point = bestPoint(answer);
  if (!point) return [];
  const { latency, throughput, ranges = {}, cost, energy } = point;
  const spread = (one) => [range(ranges[one]?.mean_low_s, ranges[one]?.mean_high_s, seconds),
    latency[one].p95_s === undefined ? "" : `p95 ${seconds(latency[one].p95_s)}`].filter(Boolean).join("; ");
  const speed = ranges.output_tokens_per_s_per_gpu;
  return [
    number("ttft", "First token (TTFT)", latency.ttft.mean_s, known(latency.ttft.mean_s, seconds), spread("ttft"), -1),
    number("tpot", "Per token (TPOT)", latency.tpot.mean_s, known(latency.tpot.mean_s, seconds), spread("tpot"), -1),
    number("speed", "Tokens/s a GPU", throughput.output_tokens_per_s_per_gpu,
      figures(throughput.output_tokens_per_s_per_gpu), range(speed?.low, speed?.high, figures), 1),
    number("price", "Price of 1M output tokens", cost?.per_million_usd, known(cost?.per_million_usd, money),
      cost ? `${money(cost.gpu_hour_usd)} a GPU-hour` : "", -1),
    number("requests", "Requests/s", throughput.requests_per_s, figures(throughput.requests_per_s),
      `${whole(point.traffic.finished)} of ${whole(point.traffic.arrived)} requests served`, 1),
    number("power", "Power of a GPU", energy?.mean_w, known(energy?.mean_w, watts),
      energy ? `${figures(energy.per_output_token_j)} J an output token` : "", -1),
  ];
}

// A mean over runs, as the first of them has it where there is one alone; null where one of them is of no job.
function meanOf(point, key) {
  const values = point.runs.map((run) => run[key]);
  if (values.includes(null)) return null;
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

const waited = (value) => (value === null ? "-" : value === 0 ? "0 s" : duration(value));

function scheduleNumbers(answer) {
  const point = bestPoint(answer);
  if (!point?.first) return [];
  const { first, runs } = point;
  const times = runs.length > 1 ? `mean of ${runs.length} runs` : "";
  const wait = meanOf(point, "wait_s"), completion = meanOf(point, "completion_s");
  return [
    number("wait", "Mean wait", wait, waited(wait), times, -1),
    number("completion", "Wait and run", completion, waited(completion), times, -1),
    number("longest", "One in a hundred waits", first.wait_s.p99, waited(first.wait_s.p99),
      `median ${waited(first.wait_s.p50)}`, -1),
    number("useful", "Useful GPU-time", first.gpu_share.useful, percent(first.gpu_share.useful),
      `${percent(first.gpu_share.idle)} idle`, 1),
    number("jobs", "Jobs finished", first.jobs.finished, whole(first.jobs.finished),
      `of ${whole(first.jobs.submitted)}`, 1),
    number("power", "Mean power", first.power.mean_w, watts(first.power.mean_w),
      `${wattHours(first.energy_j)}; ${watts(first.power.peak_w)} at its peak`, -1),
  ];
}

export function keyNumbers(command, answer) {
  if (command === "plan") return planNumbers(answer);
  if (command === "serve") return serveNumbers(answer);
  if (command === "schedule") return scheduleNumbers(answer);
  const prediction = answer.prediction ?? answer.winner;
  return prediction ? stepNumbers(prediction) : [];
}

// {good, headline, why}: good is null where nothing was judged.
export function verdict(command, answer) {
  const { fits, runs, why, probability } = answer.verdict;
  const because = sentence(why || answer.why || "");
  if (runs === false) return { good: false, headline: "Does not run.", why: because };
  if (command === "plan") return planVerdict(answer, because);
  if (command === "serve") return serveVerdict(answer, because);
  if (command === "schedule") return scheduleVerdict(answer, because);
  if (fits === false) return { good: false, headline: "Does not fit.", why: because };
  if (command === "advise") {
    const best = answer.best?.[0];
    const headline = best ? `Best: ${layoutWords(best.layout)}, ${seconds(best.step_time_s)} a step.`
      : "No layout was found.";
    return { good: Boolean(best), headline, why: because };
  }
  const near = answer.prediction?.memory?.standing === "near the limit";
  const sure = probability !== null && probability < 0.995 ? ` It fits with a chance of ${percent(probability)}.` : "";
  return { good: true, headline: near ? "Fits, near the limit." : "Fits.",
    why: sentence(answer.prediction?.bottleneck ?? "") + sure };
}

function planVerdict(answer, why) {
  const point = bestPoint(answer);
  if (!point) return { good: false, headline: "No point meets every limit.", why };
  const objective = sentence(answer.objective).slice(0, -1);
  const parts = [`${whole(point.gpus)} GPUs of ${point.cluster}`, known(point.duration_s, duration)];
  if (point.cost_usd !== null) parts.push(money(point.cost_usd));
  return { good: true, headline: `${objective}: ${parts.join(", ")}.`, why: sentence(answer.detail?.why ?? "") };
}

function serveVerdict(answer, why) {
  const point = bestPoint(answer);
  const refusal = answer.points[0]?.refusal ?? "";
  if (!point) return { good: false, headline: "Nothing is served.", why: why || sentence(refusal) };
  const rest = answer.points.length - 1;
  const others = rest ? ` It has the most tokens a GPU of ${rest + 1} points.` : "";
  const promises = (point.slo ?? []).filter((one) => !one.kept).map((one) => one.target);
  if (promises.length)
    return { good: false, headline: `Served, but ${promises.join(" and ")} is not kept.`, why: others };
  return { good: true, headline: `Serves${point.varied ? ` with ${point.varied}` : ""}.`,
    why: sentence(point.bottleneck) + others };
}

function scheduleVerdict(answer, why) {
  const point = bestPoint(answer);
  const name = [`${point.policy}, ${point.place}`, ...Object.entries(point.varied).map(([key, words]) =>
    `${key} ${words}`)].join(", ");
  if (answer.verdict.fits === false) return { good: false, headline: why, why: `Nearest: ${name}.` };
  const chance = point.chance === null ? "" : `, with a chance of ${percent(point.chance)}`;
  const several = answer.points.length > 1;
  return { good: answer.verdict.fits, headline: several ? `Best by ${answer.objective}: ${name}${chance}.` : `${name}.`,
    why: "" };
}

// How the present number stands to the kept one: "9.4% less (better)"; empty where they cannot be compared.
export function difference(kept, now) {
  if (!kept || !now || typeof kept.value !== "number" || typeof now.value !== "number" || !kept.value) return null;
  const share = now.value / kept.value - 1;
  if (Math.abs(share) < 0.0005) return { text: "the same", good: null };
  const text = `${Math.abs(100 * share).toFixed(1)}% ${share > 0 ? "more" : "less"}`;
  if (!now.better) return { text, good: null };
  const good = share * now.better > 0;
  return { text: `${text}, ${good ? "better" : "worse"}`, good };
}
