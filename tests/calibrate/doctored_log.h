// SPDX-License-Identifier: Apache-2.0
// Knows what the microbenchmarks would say of an H200 that does what its model says, and of one
// whose clocks or memory are low.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "sim/base/random.h"
#include "sim/calibrate/health/health.h"

namespace orrery::test {

// What is wrong with the GPU: each factor is on a speed, 1 where nothing is.
struct Doctor {
  double compute = 1, memory = 1, host_link = 1, peers = 1;
  double clock = 1;  // of what the sensor reads
  double power_limit_w = 700, temperature_c = 55;
  double noise = 0.01;  // of a sample, in the logarithm
  std::uint64_t seed = 1;
};

inline std::string conditions_line(const std::string& program, const Doctor& doctor) {
  return fmt::format(
      R"({{"record":"conditions","program":"{}","device":"NVIDIA H200","gpu":0,"gpus":8,)"
      R"("driver":"580.1","cuda":"13.0","libraries":{{"cublasLt":"13.0.2","nvls":"off"}},)"
      R"("power_limit_w":{},"max_clock_mhz":1980,"memory_clock_mhz":3201,"host":"a CPU",)"
      R"("date":"2026-11-21"}})"
      "\n",
      program, doctor.power_limit_w);
}

inline std::string shape_keys(const Sample& s) {
  if (!s.is_work) {
    std::string text;
    for (const auto& [key, value] : s.numbers) text += fmt::format(R"("{}":{:.0f},)", key, value);
    return text;
  }
  const Work& w = s.kernel.work;
  std::string text =
      fmt::format(R"("input":"{}","output":"{}",)", to_text(w.input), to_text(w.output));
  if (is_product(w.kind)) return text + fmt::format(R"("m":{},"n":{},"k":{},)", w.m, w.n, w.k);
  if (is_attention(w.kind))
    return text + fmt::format(R"("batch":{},"heads":{},"kv_heads":{},"q_length":{},"kv_length":{},)"
                              R"("qk_dim":{},"v_dim":{},"causal":{},)",
                              w.batch, w.heads, w.kv_heads, w.q_length, w.kv_length, w.qk_dim,
                              w.v_dim, w.causal ? 1 : 0);
  return text + fmt::format(R"("bytes_read":{:.0f},"bytes_written":{:.0f},"vector_flop":0,)",
                            w.bytes_read, w.bytes_written);
}

// One line of a sample that should take `seconds`.
inline std::string sample_line(const Sample& s, double seconds, const Doctor& doctor) {
  const double us = 1e6 * seconds, clock = 1980 * doctor.clock;
  return fmt::format(
      R"({{"record":"sample","part":"all","kind":"{}","library":"{}","variant":"{}","mode":"{}",{})"
      R"("time_us":{:.6g},"low_us":{:.6g},"high_us":{:.6g},"repeats":5,"calls":9,)"
      R"("clock_before_mhz":{:.0f},"clock_after_mhz":{:.0f},"power_w":{:.0f},)"
      R"("temperature_c":{:.0f}}})"
      "\n",
      s.kind, s.library, s.variant, s.mode, shape_keys(s), us, 0.995 * us, 1.005 * us, clock,
      s.mode == "sustained" ? 0.75 * clock : clock, s.mode == "sustained" ? 697.0 : 500.0,
      doctor.temperature_c);
}

// By how much the doctor slows a sample: the unit that limits it is slower.
inline double slowdown(const Sample& s, const Doctor& doctor) {
  if (!s.is_work) return s.kind == "launch" ? 1 : 1 / doctor.peers;
  const WorkKind kind = s.kernel.work.kind;
  if (kind == WorkKind::host_copy) return 1 / doctor.host_link;
  return 1 / (is_product(kind) || is_attention(kind) ? doctor.compute : doctor.memory);
}

// The questions that modelled_log asks and streams of one direction, with noise.
inline std::string doctored_log(const Doctor& doctor) {
  const Machine machine = load_machine("h200-sxm", false);
  std::string text = conditions_line("all", doctor);
  RandomStream random(doctor.seed, 0);
  const auto noise = [&] { return std::exp(random.normal(0, doctor.noise)); };
  for (const Sample& s : modelled_log(machine).samples) {
    text += sample_line(s, s.time.si() * slowdown(s, doctor) * noise(), doctor);
    if (s.kind != "copy") continue;
    Sample read = s;
    read.variant = "read";
    read.kernel.work.bytes_written = 0;
    text += sample_line(read, 0.5 * s.time.si() * slowdown(s, doctor) * noise(), doctor);
  }
  return text;
}

}  // namespace orrery::test
