// SPDX-License-Identifier: Apache-2.0
// Knows the five questions: their usual fields, first values, and which fields they share.

const model = { key: "model", label: "Model", names: "model", wide: true };
const machine = { key: "cluster", label: "Machine", names: "cluster", wide: true };
const gpus = { key: "gpus", label: "GPUs", kind: "integer" };
const precisions = ["bf16", "fp16", "fp8", "fp8-delayed", "fp8-current", "fp8-blockwise", "mxfp8", "nvfp4"];
const job = [
  { key: "seq", label: "Sequence length", kind: "integer" },
  { key: "global_batch", label: "Global batch", kind: "integer" },
  { key: "precision", label: "Precision", words: precisions, optional: true },
  { key: "stack", label: "Stack", names: "stack", wide: true, optional: true },
];
const layout = [
  { key: "tp", label: "Tensor (TP)", kind: "integer" },
  { key: "pp", label: "Pipeline (PP)", kind: "integer" },
  { key: "vpp", label: "Chunks (VPP)", kind: "integer" },
  { key: "cp", label: "Context (CP)", kind: "integer" },
  { key: "ep", label: "Expert (EP)", kind: "integer" },
  { key: "micro_batch", label: "Microbatch", kind: "integer" },
  { key: "zero", label: "ZeRO stage", words: ["0", "1", "2", "3"], kind: "integer" },
  { key: "recompute", label: "Recompute", words: ["none", "selective", "full"] },
];

export const commands = {
  simulate: {
    title: "Predict",
    lead: "How fast is this layout, and what does it wait for? The answer follows as you type.",
    groups: [
      { title: "Job and machine", fields: [model, machine, gpus, ...job] },
      { title: "Layout", note: "Empty fields take the default, which stands in grey.", fields: layout, narrow: true },
    ],
    first: { model: "llama3-70b", cluster: "dgx-h100", gpus: "64", seq: "8192", global_batch: "512", tp: "8", pp: "2" },
  },
  advise: {
    title: "Find the best layout",
    short: "Best layout",
    action: "Find the best layout",
    counted: "layouts simulated",
    lead: "Which layout of the model over the GPUs is fastest?",
    groups: [{ title: "Job and machine", fields: [model, machine, gpus, ...job,
      { key: "objective", label: "Wanted", words: ["time", "cost", "energy"], choice: "time (default)" }] }],
    first: { model: "llama3-70b", cluster: "dgx-h100", gpus: "64", seq: "8192", global_batch: "512" },
  },
  plan: {
    title: "Plan",
    action: "Plan",
    counted: "steps searched",
    lead: "Which machines, how many days, how much money? Commas list values, 512..4096 doubles.",
    groups: [
      { title: "Job", fields: [model, { key: "tokens", label: "Tokens to train on" }, ...job] },
      { title: "Machines", fields: [{ ...machine, label: "Machines", several: true },
        { key: "gpus", label: "GPUs (list or range)" },
        { key: "ownership", label: "Ownership", words: ["buy", "rent"], choice: "default" }] },
      { title: "Limits", fields: [{ key: "deadline", label: "Deadline", example: "180 days" },
        { key: "budget", label: "Budget", example: "20 million USD" },
        { key: "objective", label: "Wanted", words: ["time", "cost", "energy", "carbon", "gpus"],
          choice: "default" }] },
    ],
    first: { model: "llama3-70b", cluster: "dgx-h100", tokens: "15T", seq: "8192", global_batch: "2048",
      gpus: "512..2048", deadline: "180 days" },
  },
  serve: {
    title: "Serve",
    action: "Serve",
    counted: "requests served",
    lead: "How does a served model do under traffic? Commas list values, 1..64 doubles.",
    groups: [
      { title: "Model and machine", fields: [model, machine,
        { key: "stack", label: "Stack", words: ["vllm", "sglang", "trtllm"] },
        { key: "engines", label: "Engines", example: "2xTP4" },
        { key: "precision", label: "Precision", words: [...precisions, "mxfp4", "int4", "int8"],
          optional: true }] },
      { title: "Traffic", fields: [{ key: "concurrency", label: "Clients at once" },
        { key: "requests", label: "Requests", example: "10 a client" },
        { key: "isl", label: "Prompt tokens" }, { key: "osl", label: "Answer tokens" }] },
    ],
    first: { model: "llama3-70b", cluster: "dgx-h100", stack: "vllm", engines: "TP8", concurrency: "4,16,64",
      isl: "1024", osl: "256" },
  },
  schedule: {
    title: "Schedule jobs",
    short: "Schedule",
    action: "Run the jobs",
    counted: "runs",
    lead: "How long do many jobs wait on one cluster, and by which rule the least? Commas list values.",
    groups: [
      { title: "Machine and jobs", fields: [machine, gpus,
        { key: "trace", label: "Trace", words: ["philly"], help: "recorded jobs" },
        { key: "days", label: "Days", kind: "integer", example: "all", help: "of submissions" },
        { key: "jobs", label: "More jobs", area: true, kind: "json",
          example: '[{"mix": "acme-kalos", "per_day": 40}]',
          help: "JSON: mixes of jobs that are drawn, and trainings" }] },
      { title: "Policy", fields: [
        { key: "policy", label: "Order", words: ["fifo", "sjf", "easy", "sjf-easy", "priority", "priority-easy",
          "preempt", "deadline", "las", "conservative", "goodput", "max-min", "fair"], several: true, example: "fifo" },
        { key: "place", label: "Placement", words: ["pool", "pack", "spread", "least-level", "fragmentation", "least-contention", "random"],
          several: true, example: "pack" },
        { key: "defragment", label: "Moves", words: ["never", "pays"], several: true, example: "never",
          help: "of running jobs" },
        { key: "share", label: "Parts of GPUs", words: ["never", "best-fit"], several: true, example: "best-fit",
          help: "of jobs that ask for parts" }] },
      { title: "What breaks", fields: [
        { key: "reliability", label: "Failure rates", names: "reliability", wide: true, example: "nothing fails" },
        { key: "spares", label: "Spare GPUs", kind: "integer", example: "0" },
        { key: "lemons", label: "Lemons", words: ["even", "return", "out"], several: true, example: "return",
          help: "hosts that fail more often" },
        { key: "store", label: "Store", example: "500 GB/s", help: "that all share as they read" },
        { key: "seeds", label: "Runs", kind: "integer", example: "1", help: "with seeds of their own" },
        { key: "incidents", label: "Incidents", area: true, kind: "json",
          example: '[{"at": "100 h", "for": "6 h", "what": "leaf", "which": 1}]', help: "JSON: what happens when" }] },
      { title: "Power", fields: [
        { key: "power_limit", label: "Limit", example: "12 MW", help: "of accelerators and hosts" },
        { key: "feeds", label: "Single feeds", area: true, kind: "json",
          example: '{"racks": {"hosts": 4, "limit": "40 kW"}}', help: "JSON: halls, rows, racks" },
        { key: "power_policy", label: "Kept by", words: ["admit", "proportional", "priority", "thresholds"], several: true,
          example: "admit" }] },
    ],
    first: { cluster: "dgx-h100", gpus: "640", trace: "philly", policy: "fifo,easy", place: "pack,spread" },
  },
};

// Fields that keep their value from one question to the next. GPUs of a plan are a range of many, and a served
// model has engines of its own in place of a training stack.
const training = ["simulate", "advise", "plan"];
const shared = {
  model: ["simulate", "advise", "plan", "serve"], cluster: ["simulate", "advise", "plan", "serve", "schedule"],
  gpus: ["simulate", "advise"], seq: training, global_batch: ["simulate", "advise"], precision: training,
  stack: training, memory_bandwidth: training, scale_up_bandwidth: training, nic_bandwidth: training,
  memory_capacity: training, tensor_rate: training,
};

// Values of the next question: its own, with those that both share. Several values stay where one is asked for.
export function carried(from, values, to, own) {
  const next = { ...own };
  for (const [key, users] of Object.entries(shared)) {
    if (!users.includes(from) || !users.includes(to)) continue;
    const value = values[key] ?? "";
    if (to !== "plan" && /,|\.\.|^all$/.test(value)) continue;
    if (value) next[key] = value;
    else delete next[key];
  }
  return next;
}

// What a setting is called where it is no usual field: "Sequence parallel", "Context (CP)".
export function labelOf(key) {
  const named = layout.find((field) => field.key === key);
  if (named) return named.label;
  const words = key.split("_").map((word) => (/^(dp|etp|mtp|slo|nic|gpu|gpus|flop)$/.test(word) ? word.toUpperCase()
    : word)).join(" ").replace("GPUS", "GPUs").replace(/^lora/, "LoRA");
  return words[0].toUpperCase() + words.slice(1);
}

export function usualKeys(command) {
  return commands[command].groups.flatMap((group) => group.fields.map((field) => field.key));
}

// What-if sliders. A factor of 1 is the machine as it is, and is not asked.
export const sliders = [
  { key: "memory_bandwidth", label: "Memory bandwidth", low: 0.5, high: 4, of: training },
  { key: "scale_up_bandwidth", label: "Scale-up bandwidth", low: 0.5, high: 4, of: training },
  { key: "nic_bandwidth", label: "NIC bandwidth", low: 0.5, high: 4, of: training },
  { key: "memory_capacity", label: "Memory capacity", low: 0.5, high: 4, of: training },
  { key: "tensor_rate", label: "Tensor rate", low: 0.5, high: 4, of: training },
  { key: "failure_rate", label: "Failure rate", low: 0.1, high: 10, of: ["plan"] },
  { key: "gpu_hour_price", label: "Price of a GPU-hour", unit: "USD", low: 0.5, high: 20, of: ["simulate"] },
];

export const slidersOf = (command) => sliders.filter((slider) => slider.of.includes(command));
