// SPDX-License-Identifier: Apache-2.0
// Tests what counters tell in words: what holds clocks down, ports that are slow, states of memory.
#include <catch2/catch.hpp>

#include "sim/diagnose/diagnose.h"
#include "sim/diagnose/observed/held_clocks.h"
#include "tests/diagnose/fault_states.h"

namespace orrery {
namespace {

using observe::Counter;
using observe::CounterLog;
using observe::CounterSeries;

// Of a device, one value a second.
CounterSeries series(Counter counter, const std::string& device, const std::vector<double>& values,
                     const std::string& instance = "") {
  CounterSeries out;
  out.counter = counter;
  out.device = device;
  out.instance = instance;
  for (const double value : values)
    out.readings.push_back({.time_s = static_cast<double>(out.readings.size()), .value = value});
  return out;
}

std::string all_of(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += sentence + "\n";
  return text;
}

TEST_CASE("bits of throttle reasons are told by what they mean, of samples at work") {
  CounterLog log;
  // The last two samples are of a device that does nothing.
  const std::vector<double> watts = {600, 610, 605, 600, 90, 80};
  for (const char* device : {"0", "1"}) log.series.push_back(series(Counter::power, device, watts));
  log.series.push_back(series(Counter::throttle_reasons, "0", {4, 4, 0, 0, 1, 1}));
  log.series.push_back(series(Counter::throttle_reasons, "1", {0x48, 0x28, 0x88, 8, 0x40, 1}));
  const std::vector<HeldDevice> held = held_devices({log}, 2);
  REQUIRE(held.size() == 2);
  CHECK(held[0].share_of(ClockHolder::power_cap) == 0.5);
  CHECK(held[0].share_of(ClockHolder::heat) == 0);
  CHECK(held[1].share_of(ClockHolder::heat) == 0.5);
  CHECK(held[1].share_of(ClockHolder::power_brake) == 0.25);
  // The bit of hardware stands beside those of heat and brake: alone it says that much.
  CHECK(held[1].share_of(ClockHolder::hardware) == 0.25);
  const std::string told = all_of(held_sentences(held, Watts(700)));
  CHECK(told.find("GPU 0: a power cap holds the clock down in 50% of samples at work") !=
        std::string::npos);
  CHECK(told.find("GPU 1: heat holds") != std::string::npos);
  CHECK(told.find("GPU 1: the power brake holds") != std::string::npos);
  CHECK(told.find("the power limit") == std::string::npos);
  for (const char* device : {"0", "1"})
    log.series.push_back(series(Counter::power_limit, device, {500, 500, 500, 500}));
  CHECK(all_of(held_sentences(held_devices({log}, 2), Watts(700)))
            .find("GPUs 0, 1: the power limit is 500 W, the maker's 700 W") != std::string::npos);
}

TEST_CASE("columns of single reasons, and dmon's shares, tell the same as bits") {
  CounterLog log;
  log.series.push_back(series(Counter::throttled, "0", {1, 1, 0, 0}, "power cap"));
  log.series.push_back(series(Counter::throttled, "0", {0, 0, 0, 1}, "hardware thermal"));
  log.series.push_back(series(Counter::throttled, "0", {1, 1, 1, 1}, "sync boost"));
  log.series.push_back(series(Counter::throttled, "0", {0, 0, 1, 1}, "hardware"));
  log.series.push_back(series(Counter::throttled, "0", {1, 0, 0, 0}, "clock setting"));
  log.series.push_back(series(Counter::power_violation, "0", {0.75, 0.75, 0.75, 0.75}));
  const auto share = [&](ClockHolder holder) { return held_devices({log}, 1)[0].share_of(holder); };
  log.source = observe::CounterSource::prometheus_text;
  CHECK(share(ClockHolder::power_cap) == 0.5);  // a sum, in a unit that depends on the release
  log.source = observe::CounterSource::smi_dmon;
  CHECK(share(ClockHolder::power_cap) == 0.75);
  CHECK(share(ClockHolder::heat) == 0.25);
  CHECK(share(ClockHolder::hardware) == 0.25);  // the rest of it is heat
  CHECK(share(ClockHolder::set_clocks) == 0.25);
  CHECK(held_devices({}, 1).empty());
}

TEST_CASE("a reason says what to do, by the power limit where that is told") {
  const auto action = [](ClockHolder holder, std::optional<Watts> limit) {
    HeldDevice device{.place = "0", .power_limit = limit};
    device.share[static_cast<std::size_t>(holder)] = 0.9;
    const auto reason = reason_of({device}, Watts(700));
    REQUIRE(reason);
    CHECK(reason->words.find("90% of samples") != std::string::npos);
    return reason->action;
  };
  CHECK(action(ClockHolder::power_cap, Watts(500)).find("nvidia-smi -pl 700") != std::string::npos);
  CHECK(action(ClockHolder::power_cap, std::nullopt).find("-pl 700") != std::string::npos);
  CHECK(action(ClockHolder::power_cap, Watts(700)).find("-pl") == std::string::npos);
  CHECK(action(ClockHolder::heat, std::nullopt).find("Cool") != std::string::npos);
  CHECK(action(ClockHolder::set_clocks, std::nullopt).find("-rac") != std::string::npos);
  CHECK_FALSE(reason_of({{.place = "0"}}, Watts(700)));
  // Another that holds it nearly as often is named beside the first.
  HeldDevice both{.place = "0"};
  both.share[static_cast<std::size_t>(ClockHolder::heat)] = 0.6;
  both.share[static_cast<std::size_t>(ClockHolder::power_cap)] = 0.8;
  CHECK(reason_of({both}, std::nullopt)->words ==
        "heat in 60% of samples, a power cap in 80% of samples");
}

TEST_CASE("low clocks are told with what holds them, and the action is against that") {
  const HealthyRun run = healthy_run({.layout = {.dp = 2}}, 2);
  Observations seen;
  seen.step_s = 1.35 * run.state.healthy_s;
  CounterLog log;
  for (const char* device : {"0", "1"}) {
    const double clock = 0.72 * run.state.clock_hz;
    log.series.push_back(series(Counter::sm_clock, device, {clock, clock, clock}));
    log.series.push_back(series(Counter::throttle_reasons, device, {0x40, 0x40, 0x40}));
  }
  seen.counters.push_back(log);
  const Diagnosis hot = diagnose(run.scenario, run.prediction, seen);
  REQUIRE(hot.first().kind == CauseKind::low_clocks);
  CHECK(title_of(hot.first()).find("(heat in 100% of samples)") != std::string::npos);
  CHECK(hot.actions.front().sentence.starts_with("Cool the GPU"));
  for (CounterSeries& one : seen.counters[0].series)
    if (one.counter == Counter::throttle_reasons)
      for (auto& reading : one.readings) reading.value = 4;
  const Diagnosis capped = diagnose(run.scenario, run.prediction, seen);
  REQUIRE(capped.first().kind == CauseKind::low_clocks);
  CHECK(title_of(capped.first()).find("a power cap in 100%") != std::string::npos);
  CHECK(capped.actions.front().sentence.find("nvidia-smi -pl") != std::string::npos);
  CHECK(all_of(capped.seen.told).find("GPUs 0, 1: a power cap holds") != std::string::npos);
}

TEST_CASE("a port of the run below the rate of its NICs is named, one for storage is not") {
  CounterLog log;
  log.has_clock = true;
  const auto add = [&](const char* port, double gbit, double sent) {
    log.series.push_back(series(Counter::port_rate, port, {gbit * 1e9 / 8, gbit * 1e9 / 8}));
    log.series.push_back(series(Counter::port_sent, port, {0, sent}));
  };
  add("mlx5_0/1", 400, 1e12);
  add("mlx5_1/1", 200, 1e12);
  add("mlx5_9/1", 100, 1e9);
  const std::vector<NamedTrouble> named = troubles_of({log}, BytesPerSecond(400e9 / 8));
  REQUIRE(named.size() == 1);
  CHECK(named[0].trouble == port_is_slow);
  CHECK(named[0].sentence.find("mlx5_1/1: the port runs at 200 Gb/s") != std::string::npos);
}

TEST_CASE("ports that are all below the predicted rate are another machine's, and none is slow") {
  CounterLog log;
  for (const char* port : {"mlx5_0/1", "mlx5_1/1"}) {
    log.series.push_back(series(Counter::port_rate, port, {25e9, 25e9}));
    log.series.push_back(series(Counter::port_sent, port, {0, 1e12}));
  }
  const std::vector<NamedTrouble> named = troubles_of({log}, BytesPerSecond(50e9));
  REQUIRE(named.size() == 2);
  for (const NamedTrouble& one : named) CHECK(one.trouble.empty());
}

TEST_CASE("a port that sends nothing where its like on other hosts send is slow") {
  // Hosts have a file each.
  std::vector<CounterLog> logs(3);
  for (std::size_t host = 0; host < logs.size(); ++host) {
    const double sent = host == 1 ? 1e5 : 1e12;
    logs[host].series.push_back(series(Counter::port_sent, "mlx5_3/1", {0, sent}));
    logs[host].series.push_back(series(Counter::port_sent, "mlx5_4/1", {0, 1e12}));
    // One for storage, which one host uses and the others do not.
    logs[host].series.push_back(series(Counter::port_sent, "mlx5_9/1", {0, host == 0 ? 1e9 : 0}));
    for (CounterSeries& one : logs[host].series) one.host = "host" + std::to_string(host);
  }
  // And one whose counter was reset meanwhile.
  logs[2].series.push_back(series(Counter::port_sent, "mlx5_5/1", {1e12, 1e9}));
  logs[1].series.push_back(series(Counter::port_sent, "mlx5_5/1", {0, 1e12}));
  const std::vector<NamedTrouble> named = troubles_of(logs, BytesPerSecond(50e9));
  REQUIRE(named.size() == 1);
  CHECK(named[0].trouble == port_is_slow);
  CHECK(named[0].sentence.starts_with("host1 mlx5_3/1: the port sent "));
}

TEST_CASE("ports of hosts whose files last unlike long are compared by what they send a second") {
  std::vector<CounterLog> logs(2);
  std::vector<double> sent, rate;
  for (int second = 0; second <= 100; ++second) {
    sent.push_back(1e10 * second);
    rate.push_back(50e9);
  }
  logs[0].series.push_back(series(Counter::port_sent, "mlx5_0/1", sent));
  logs[0].series.push_back(series(Counter::port_rate, "mlx5_0/1", rate));
  logs[1].series.push_back(series(Counter::port_sent, "mlx5_0/1", {0, 1e10}));
  logs[1].series.push_back(series(Counter::port_rate, "mlx5_0/1", {25e9, 25e9}));
  const std::vector<NamedTrouble> named = troubles_of(logs, BytesPerSecond(50e9));
  REQUIRE(named.size() == 1);  // slow, and not silent
  CHECK(named[0].trouble == port_is_slow);
  CHECK(named[0].sentence.find("runs at 200 Gb/s") != std::string::npos);
}

TEST_CASE("marks of congestion count by the packets that were sent") {
  CounterLog log;
  for (const auto& [port, marks] : {std::pair{"mlx5_0/1", 100.0}, std::pair{"mlx5_1/1", 1e6}}) {
    log.series.push_back(series(Counter::port_sent, port, {0, 4096e8}));
    log.series.push_back(series(Counter::port_congestion_marks, port, {50, 50 + marks}));
  }
  const std::vector<NamedTrouble> named = troubles_of({log}, BytesPerSecond(50e9));
  REQUIRE(named.size() == 1);
  CHECK(named[0].trouble == port_is_congested);
  CHECK(named[0].sentence == "mlx5_1/1: 10.0 marks of congestion for 1,000 packets of 4 KiB");
}

TEST_CASE("rows that memory cannot replace are ECC errors, and a driver's last error is told") {
  CounterLog log;
  log.series.push_back(series(Counter::remap_failed, "3", {0, 1}));
  log.series.push_back(series(Counter::remap_pending, "4", {0, 0}));
  log.series.push_back(series(Counter::last_xid, "5", {0, 94}));
  log.series.push_back(series(Counter::nvlink_replays, "6", {3, 9}));
  const std::vector<NamedTrouble> named = troubles_of({log}, BytesPerSecond(50e9));
  REQUIRE(named.size() == 3);
  CHECK(named[0].trouble == "NVLink errors");
  CHECK(named[1].trouble == "ECC errors");
  CHECK(named[1].sentence.starts_with("3: rows"));
  CHECK(named[2].trouble.empty());
  CHECK(named[2].sentence.find("Xid 94") != std::string::npos);
}

TEST_CASE("a device with fewer lanes than others is told, one at rest is not") {
  CounterLog log;
  log.series.push_back(series(Counter::pcie_width, "0", {16, 16}));
  log.series.push_back(series(Counter::pcie_width, "1", {8, 8}));
  log.series.push_back(series(Counter::pcie_width, "2", {8, 16}));
  const std::vector<NamedTrouble> named = troubles_of({log}, BytesPerSecond(50e9));
  REQUIRE(named.size() == 1);
  CHECK(named[0].trouble.empty());
  CHECK(named[0].sentence == "1: 8 lanes of PCIe, others have 16");
}

}  // namespace
TEST_CASE("a port that is dead is told beside the neighbour that sends for both") {
  CounterLog log{.has_clock = true};
  for (int port = 0; port < 8; ++port) {
    const double sent = port == 3 ? 1e5 : port == 4 ? 2.1e12 : 1e12;
    log.series.push_back(series(Counter::port_sent, fmt::format("mlx5_{}/1", port), {0, sent}));
  }
  CounterLog other{.has_clock = true};
  for (int port = 0; port < 8; ++port)
    other.series.push_back(series(Counter::port_sent, fmt::format("mlx5_{}/1", port), {0, 1e12}));
  for (CounterSeries& one : log.series) one.host = "host0";
  for (CounterSeries& one : other.series) one.host = "host1";
  const std::vector<NamedTrouble> named = troubles_of({log, other}, BytesPerSecond(50e9));
  REQUIRE(named.size() == 1);
  CHECK(named[0].trouble == port_is_slow);
  CHECK(named[0].sentence.starts_with("host0 mlx5_3/1: the port sent "));
}

TEST_CASE("one port of many that counts an error is told, and counts for nothing") {
  const auto trouble = [](int ports, int wrong) {
    CounterLog log{.has_clock = true};
    for (int port = 0; port < ports; ++port)
      log.series.push_back(series(Counter::port_symbol_errors, fmt::format("mlx5_{}/1", port),
                                  {7, port < wrong ? 8.0 : 7.0}));
    // One symbol is less than a link is allowed in so long.
    for (CounterSeries& one : log.series) one.readings.back().time_s = 3600;
    const std::vector<NamedTrouble> named = troubles_of({log}, BytesPerSecond(50e9));
    REQUIRE(named.size() == static_cast<std::size_t>(wrong));
    return named.front().trouble;
  };
  CHECK(trouble(2, 1) == port_errors);
  CHECK(trouble(128, 1).empty());
  CHECK(trouble(128, 4) == port_errors);
}

TEST_CASE("limits below the maker's, clock settings and the brake hold clocks, caps alone do not") {
  const auto held = [](double bits, double limit) {
    CounterLog log;
    log.series.push_back(series(Counter::power, "0", {600, 610, 605}));
    log.series.push_back(series(Counter::throttle_reasons, "0", {bits, bits, bits}));
    log.series.push_back(series(Counter::power_limit, "0", {limit, limit, limit}));
    return are_held(held_devices({log}, 1), Watts(700));
  };
  CHECK_FALSE(held(4, 700));  // a power cap
  CHECK(held(4, 400));
  CHECK(held(2, 700));     // a clock setting
  CHECK(held(0x80, 700));  // the brake
  CHECK_FALSE(held(0, 700));
}

}  // namespace orrery
