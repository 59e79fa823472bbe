// SPDX-License-Identifier: Apache-2.0
// Asks a machine's model the questions of the microbenchmarks.
#include <fmt/format.h>

#include <array>

#include "sim/base/errors/check.h"
#include "sim/calibrate/health/health.h"

namespace orrery {

namespace {

// Adds the sample if the model answers it.
void ask(MeasuredLog& log, const Machine& machine, Sample sample) {
  // So many calls in a row that none finds in the cache what an earlier one left there.
  constexpr int calls = 1000;
  sample.repeats = 1;
  sample.calls = calls;
  const auto time = expected_time(sample, machine);
  if (!time || time->si() <= 0) return;
  sample.time = sample.low = sample.high = *time;
  log.samples.push_back(std::move(sample));
}

Sample work_sample(const Work& work, Library library, const std::string& mode,
                   const std::string& shape) {
  Sample s;
  s.kind = std::string(to_text(work.kind));
  s.mode = mode;
  s.library = std::string(to_text(library));
  s.is_work = true;
  s.kernel = {.work = work, .library = library};
  s.shape = shape;
  return s;
}

void ask_products(MeasuredLog& log, const Machine& machine) {
  constexpr std::array<std::int64_t, 4> sizes = {4096, 6144, 8192, 16384};
  for (const Format format : {Format::bf16, Format::fp16, Format::fp8, Format::fp4}) {
    if (machine.device.tensor_rate[static_cast<std::size_t>(format)].si() <= 0) continue;
    for (const std::int64_t n : sizes)
      for (const char* mode : {"burst", "sustained"}) {
        Work work{.kind = WorkKind::gemm, .input = format, .m = n, .n = n, .k = n};
        ask(log, machine, work_sample(work, Library::cublas, mode, fmt::format("{0}x{0}x{0}", n)));
      }
  }
}

void ask_attention(MeasuredLog& log, const Machine& machine) {
  for (const WorkKind kind : {WorkKind::attention_forward, WorkKind::attention_backward})
    for (const std::int64_t length : {4096, 8192, 16384}) {
      const Work work{.kind = kind,
                      .batch = 2,
                      .heads = 32,
                      .kv_heads = 8,
                      .q_length = length,
                      .kv_length = length,
                      .qk_dim = 128,
                      .v_dim = 128,
                      .causal = true};
      ask(log, machine, work_sample(work, Library::flash2, "burst", fmt::format("{}", length)));
    }
}

void ask_copies(MeasuredLog& log, const Machine& machine) {
  for (const double megabytes : {1024.0, 2048.0, 4096.0})
    for (const WorkKind kind : {WorkKind::copy, WorkKind::host_copy}) {
      const bool host = kind == WorkKind::host_copy;
      Work work{.kind = kind};
      work.bytes_read = megabytes * 1e6;
      work.bytes_written = host ? 0 : megabytes * 1e6;
      Sample s = work_sample(work, Library::own, "burst", fmt::format("{} MB", megabytes));
      s.variant = host ? "to-device" : "copy";
      ask(log, machine, s);
    }
}

void ask_launches(MeasuredLog& log, const Machine& machine) {
  for (const char* variant : {"stream", "graph"}) {
    Sample s;
    s.kind = "launch";
    s.variant = s.shape = variant;
    ask(log, machine, s);
  }
}

void ask_collectives(MeasuredLog& log, const Machine& machine) {
  if (!machine.has_links) return;
  for (const char* kind : {"all-reduce", "all-gather", "reduce-scatter", "all-to-all"})
    for (const double ranks : {2.0, 4.0, 8.0})
      for (const double bytes : {16384.0, 65536.0, 67108864.0, 268435456.0, 1073741824.0}) {
        if (ranks > static_cast<double>(machine.fabric.scale_up.domain)) continue;
        Sample s;
        s.kind = kind;
        s.library = "nccl";
        s.mode = "graph";
        s.numbers = {{"ranks", ranks}, {"bytes", bytes}};
        s.shape = fmt::format("{} B", bytes);
        ask(log, machine, s);
      }
}

}  // namespace

MeasuredLog modelled_log(const Machine& machine) {
  MeasuredLog log;
  log.conditions.push_back({.program = "model", .device = machine.device.name});
  ask_products(log, machine);
  ask_attention(log, machine);
  ask_copies(log, machine);
  ask_launches(log, machine);
  ask_collectives(log, machine);
  return log;
}

}  // namespace orrery
