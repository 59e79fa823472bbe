// SPDX-License-Identifier: Apache-2.0
// Knows how tests write the lines that microbenchmarks would write on a GPU with known parameters.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "hw_models/catalog.h"
#include "hw_models/kernel/kernel_time.h"
#include "sim/base/random.h"
#include "sim/calibrate/fit/score.h"

namespace orrery {

inline std::string conditions_line(const std::string& device = "NVIDIA H200") {
  return fmt::format(
      R"({{"record":"conditions","program":"gemm","device":"{}","gpu":0,"gpus":1,"driver":"580.1",)"
      R"("cuda":"13.0","libraries":{{"cublasLt":"13.0.2"}},"power_limit_w":700,)"
      R"("max_clock_mhz":1980,"memory_clock_mhz":3201,"host":"cpu","date":"2026-11-21"}})"
      "\n",
      device);
}

// The end of every sample.
inline std::string times(double us, int calls = 20) {
  return fmt::format(
      R"("time_us":{:.6g},"low_us":{:.6g},"high_us":{:.6g},"repeats":5,"calls":{},)"
      R"("clock_before_mhz":1980,"clock_after_mhz":1980,"power_w":512,"temperature_c":44}})"
      "\n",
      us, 0.99 * us, 1.01 * us, calls);
}

inline std::string gemm_line(const Work& w, double us) {
  return fmt::format(R"({{"record":"sample","part":"gemm","kind":"gemm","library":"cublas",)"
                     R"("variant":"","mode":"burst","input":"bf16","output":"bf16",)"
                     R"("role":"forward","accumulate_fp32":0,"m":{},"n":{},"k":{},"groups":1,)",
                     w.m, w.n, w.k) +
         times(us);
}

// Cold operands: so many calls that those before are no longer in the cache.
inline std::string stream_line(const Work& w, const std::string& variant, double us) {
  return fmt::format(R"({{"record":"sample","part":"memory","kind":"{}","library":"own",)"
                     R"("variant":"{}","mode":"burst","input":"fp32","shape":"{:.0f} bytes",)"
                     R"("bytes_read":{:.0f},"bytes_written":{:.0f},"vector_flop":0,)",
                     to_text(w.kind), variant, w.bytes_read + w.bytes_written, w.bytes_read,
                     w.bytes_written) +
         times(us, 2 + static_cast<int>(2e8 / (w.bytes_read + w.bytes_written)));
}

// A GPU whose curves are known: what its microbenchmarks would say, with noise in the logarithm.
class KnownGpu {
 public:
  KnownGpu(const Curve& curve, double noise, std::uint64_t seed)
      : device_(load_device("h200-sxm")),
        resolved_(device_.resolved()),
        calibration_(load_estimates(device_)),
        noise_(noise),
        random_(seed, 0) {
    put_curve(calibration_, curve);
    complete(calibration_);
  }
  double us(const Work& work, Library library, bool cold = true) {
    OperatorRow row{.count = 1, .cold = cold, .cached = cold ? 0.0 : 1.0};
    row.kernels[0] = {.work = work, .library = library};
    return 1e6 * predict(row, resolved_, calibration_).si() * std::exp(random_.normal(0, noise_));
  }
  const Device& device() const { return device_; }

 private:
  Device device_;
  ResolvedDevice resolved_;
  Calibration calibration_;
  double noise_;
  RandomStream random_;
};

inline Curve known_curve(WorkKind kind, Library library) {
  Curve c;
  c.kind = kind;
  c.library = library;
  c.scale = {.value = 1.0, .evidence = Evidence::measured, .source = "orrery-training-kernels"};
  c.present = true;
  c.memory_efficiency = 0.9;
  c.fixed_seconds = 2.5e-6;
  return c;
}

inline Curve known_gemm() {
  Curve c = known_curve(WorkKind::gemm, Library::cublas);
  c.tensor_efficiency = 0.82;
  c.k_half = 260;
  c.wave_exponent = 0.6;
  c.tile_loss = 30;
  c.split_k = 64;
  c.split_seconds = 2e-6;
  c.split_exposed = 0.4;
  c.partial_tile = 0.6;
  c.epilogue_exposed = 0.25;
  c.saturation_bytes = 2e6;
  return c;
}

// Products of `families` weights by seven numbers of rows.
inline std::string gemm_log(KnownGpu& gpu, int families) {
  std::string text = conditions_line();
  RandomStream random(5, 0);
  for (int f = 0; f < families; ++f) {
    const auto extent = [&] {
      return 64 * static_cast<std::int64_t>(std::exp2(3 + 5 * random.uniform()));
    };
    Work w{.kind = WorkKind::gemm, .n = extent(), .k = extent()};
    for (const std::int64_t m : {1, 16, 128, 512, 2048, 4096, 16384}) {
      w.m = m;
      text += gemm_line(w, gpu.us(w, Library::cublas));
    }
  }
  return text;
}

}  // namespace orrery
