// SPDX-License-Identifier: Apache-2.0
// Tests what is taken from counters of GPUs and network ports, in each form that tools write.
#include <catch2/catch.hpp>

#include "sim/observe/counters/counters.h"
#include "tests/base/error_text.h"
#include "tests/base/scratch_folder.h"
#include "tests/observe/observed_file.h"

namespace orrery::observe {
namespace {

CounterLog read(const std::string& name) { return read_counters(observed_file(name)); }

const CounterSeries& series(const CounterLog& log, Counter counter, const std::string& device) {
  for (const CounterSeries* one : log.of(counter))
    if (one->device == device) return *one;
  FAIL("no series " << counter_text[counter] << " of " << device);
  throw 0;
}

TEST_CASE("nvidia-smi dmon, recorded on two GPUs, with dates and times") {
  const CounterLog log = read("smi_dmon.txt");
  CHECK(log.source == CounterSource::smi_dmon);
  CHECK(log.has_clock);
  REQUIRE(log.devices.size() == 2);
  const CounterSeries& clock = series(log, Counter::sm_clock, "1");
  REQUIRE(clock.readings.size() == 7);
  CHECK(clock.readings[0].value == 1980e6);
  CHECK(clock.readings[6].value == 345e6);
  CHECK(clock.readings[0].time_s == 1795676116);  // 2026-11-26 06:55:16
  CHECK(clock.readings[1].time_s - clock.readings[0].time_s == 3);
  CHECK(series(log, Counter::power, "0").readings[0].value == 260);
  CHECK(series(log, Counter::gpu_utilisation, "0").readings[0].value == Approx(0.96));
  CHECK(series(log, Counter::memory_used, "0").readings[0].value == 3761 * 1048576.0);
  CHECK(series(log, Counter::pcie_sent, "1").readings[0].value == 2e6);
  CHECK(log.unknown == std::vector<std::string>{"bar1", "ccpm", "dec", "enc", "jpg", "ofa"});
}

TEST_CASE("nvidia-smi dmon as CSV, whose samples have no times") {
  const CounterLog log = read("smi_dmon_csv.txt");
  CHECK_FALSE(log.has_clock);
  const CounterSeries& received = series(log, Counter::pcie_received, "1");
  REQUIRE(received.readings.size() == 2);
  CHECK(received.readings[0].value == 18e6);
  CHECK(received.readings[1].time_s == 1);
}

TEST_CASE("nvidia-smi --query-gpu, recorded with units, and the same without them") {
  const CounterLog log = read("smi_query.csv");
  CHECK(log.source == CounterSource::smi_query);
  CHECK(log.has_clock);
  CHECK(log.devices[0].name == "NVIDIA H200");
  CHECK(series(log, Counter::power, "0").readings[0].value == Approx(208.76));
  CHECK(series(log, Counter::power, "0").readings[0].time_s == Approx(1795676113.782));
  CHECK(series(log, Counter::most_sm_clock, "1").readings[0].value == 1980e6);
  const auto& reasons = series(log, Counter::throttle_reasons, "1").readings;
  CHECK(reasons.front().value == 0);
  CHECK(is_throttled_by(reasons.back().value, ThrottleReason::idle));
  CHECK_FALSE(is_throttled_by(reasons.back().value, ThrottleReason::power_cap));
  const ScratchFolder scratch("observe_counters");
  const CounterLog bare = read_counters(scratch.add(
      "a.csv",
      "index, clocks.sm [MHz], clocks_throttle_reasons.hw_slowdown, fan.speed [%], power.draw [W]\n"
      "0, 1410, Active, [N/A], 655.2\n"
      "1, 1980, Not Active, [N/A], [Unknown Error]\n"
      "0, 1425, Active, [N/A], 650\n"));
  CHECK_FALSE(bare.has_clock);
  CHECK(series(bare, Counter::sm_clock, "0").readings[1].value == 1425e6);
  CHECK(series(bare, Counter::throttled, "0").readings[0].value == 1);
  CHECK(series(bare, Counter::throttled, "0").instance == "hardware");
  CHECK(series(bare, Counter::throttled, "1").readings[0].value == 0);
  CHECK(series(bare, Counter::power, "1").readings.empty());
  CHECK(series(bare, Counter::power, "1").missing == 1);
  CHECK(bare.unknown == std::vector<std::string>{"fan.speed"});
}

TEST_CASE("dcgmi dmon, with its head again and again") {
  const CounterLog log = read("dcgmi_dmon.txt");
  CHECK(log.source == CounterSource::dcgmi_dmon);
  const CounterSeries& tensor = series(log, Counter::tensor_active, "1");
  REQUIRE(tensor.readings.size() == 3);
  CHECK(tensor.readings[0].value == Approx(0.41));
  CHECK(tensor.readings[2].time_s == 2);
  CHECK(series(log, Counter::power, "1").missing == 1);
  CHECK(series(log, Counter::nvlink_sent, "0").readings[0].value == 45e9);
  CHECK(log.unknown == std::vector<std::string>{"XQZZY"});
  CHECK(log.notes ==
        std::vector<std::string>{"1 rows of other entities than whole GPUs were left out."});
}

TEST_CASE("metrics of an exporter, scraped twice, with blanks of DCGM") {
  const CounterLog log = read("prometheus.txt");
  CHECK(log.source == CounterSource::prometheus_text);
  CHECK_FALSE(log.has_clock);
  const CounterSeries& clock = series(log, Counter::sm_clock, "1");
  CHECK(clock.host == "node-a");
  REQUIRE(clock.readings.size() == 2);
  CHECK(clock.readings[1].value == 1185e6);
  CHECK(series(log, Counter::memory_temperature, "0").missing == 1);
  CHECK(series(log, Counter::energy, "0").readings[0].value == 5000);
  const CounterSeries& symbols = series(log, Counter::port_symbol_errors, "mlx5_0/1");
  CHECK(symbols.readings[1].value - symbols.readings[0].value == 28);
  CHECK(counter_rises(Counter::port_symbol_errors));
  CHECK_FALSE(counter_rises(Counter::power));
  CHECK(log.unknown == std::vector<std::string>{"DCGM_FI_DEV_VGPU_LICENSE_STATUS"});
  const auto named = std::find_if(log.devices.begin(), log.devices.end(),
                                  [](const CounterDevice& one) { return one.device == "1"; });
  REQUIRE(named != log.devices.end());
  CHECK(named->uuid == "GPU-bbb");
}

TEST_CASE("node_exporter tells the rate of a port in bytes") {
  const ScratchFolder scratch("observe_port_rate");
  const CounterLog log = read_counters(scratch.add(
      "a.txt", "node_infiniband_rate_bytes_per_second{device=\"mlx5_0\",port=\"1\"} 5e+10\n"));
  CHECK(series(log, Counter::port_rate, "mlx5_0/1").readings[0].value == 5e10);
  CHECK(counter_unit(Counter::port_rate) == "B/s");
}

TEST_CASE("tables of Prometheus, a metric a row and a metric a column") {
  const CounterLog rows = read("prometheus_long.csv");
  CHECK(rows.source == CounterSource::prometheus_csv);
  CHECK(rows.has_clock);
  CHECK(series(rows, Counter::power, "1").readings.size() == 1);
  CHECK(series(rows, Counter::power, "1").missing == 1);
  CHECK(is_throttled_by(series(rows, Counter::throttle_reasons, "1").readings[0].value,
                        ThrottleReason::power_cap));
  const CounterLog columns = read("prometheus_wide.csv");
  CHECK(series(columns, Counter::sm_clock, "0").readings[1].value == 1965e6);
  CHECK(series(columns, Counter::sm_clock, "0").readings[0].time_s == 1714557600);
  CHECK(series(columns, Counter::sm_clock, "1").missing == 1);
  const ScratchFolder scratch("observe_counters");
  const CounterLog by_gpu = read_counters(scratch.add(
      "a.csv", "time,gpu,DCGM_FI_DEV_SM_CLOCK,DCGM_FI_DEV_GPU_TEMP\n1714550400000,3,1410,81\n"));
  CHECK(series(by_gpu, Counter::temperature, "3").readings[0].value == 81);
  CHECK(series(by_gpu, Counter::temperature, "3").readings[0].time_s == 1714550400);
}

TEST_CASE("tables of counters that are broken are refused with their line") {
  const ScratchFolder scratch("observe_counters");
  const auto refusal = [&](const std::string& text) {
    const auto file = scratch.add("a.csv", text);
    const std::string message = error_text([&] { read_counters(file); });
    return message.substr(std::min(message.size(), file.string().size() + 2));
  };
  CHECK(refusal("index, clocks.sm [MHz]\n0, 1410\n0\n") ==
        "line 3: found 1 cell; expected 2, as in the head");
  CHECK(refusal("index, clocks.sm [MHz]\n0, fast\n") ==
        "line 2, column \"clocks.sm\": found \"fast\"; expected a number, or a blank as the tool "
        "writes it (\"[N/A]\", \"-\")");
  CHECK(refusal("# gpu pwr\n# Idx W\n 0 100 5\n") ==
        "line 3: found 3 cells; expected 2, as in the head");
  CHECK(refusal("#Entity SMACT\nGPU 0 0.5 0.5\n") ==
        "line 2: found 4 words; expected 3, as in the head");
  CHECK(refusal("time,metric,value\nnoon,DCGM_FI_DEV_SM_CLOCK,1\n")
            .starts_with("line 2, column \"time\": found \"noon\""));
  CHECK(refusal("DCGM_FI_DEV_SM_CLOCK{gpu=\"0\"} 1980\nDCGM_FI_DEV_SM_CLOCK{gpu=\"0} 1980\n")
            .starts_with("line 2: found \"DCGM_FI_DEV_SM_CLOCK{gpu="));
  CHECK(refusal("# gpu pwr\n# Idx W\n 0 -\n").starts_with("found no reading of a known quantity"));
  CHECK(refusal("2026/11/26 06:54:51.700, 0, NVIDIA H200, 345 MHz\n")
            .starts_with("found no head that names columns of counters"));
}

}  // namespace
}  // namespace orrery::observe
