// SPDX-License-Identifier: Apache-2.0
// Knows what may be wrong with a GPU when some questions are slow and others are not.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/base/statistics.h"
#include "sim/calibrate/health/health.h"

namespace orrery {

namespace {

// What the lines of one topic say together.
struct Topic {
  int lines = 0, slow = 0;
  double ratio = 1;  // median over the slow lines, over all where none is slow
  bool is_slow() const { return 2 * slow > lines || (slow > 0 && lines <= 2); }
};

Topic topic_of(const std::vector<HealthLine>& lines, HealthTopic wanted) {
  Topic topic;
  std::vector<double> all, slow;
  for (const HealthLine& line : lines) {
    if (line.topic != wanted) continue;
    ++topic.lines;
    all.push_back(line.ratio);
    if (line.verdict != HealthVerdict::slow) continue;
    ++topic.slow;
    slow.push_back(line.ratio);
  }
  if (!all.empty()) topic.ratio = median(slow.empty() ? all : slow);
  return topic;
}

std::string low(double ratio) { return fmt::format("{:.0f}% low", 100 * (1 - ratio)); }

// What a search for causes looks at.
struct Signs {
  const std::vector<HealthLine>& lines;
  const MeasuredLog& measured;
  const Expectation& expected;
  const Device& specified;
  Topic of(HealthTopic topic) const { return topic_of(lines, topic); }
  const HealthLine* line(HealthTopic topic) const {
    const auto at = std::find_if(lines.begin(), lines.end(),
                                 [topic](const HealthLine& l) { return l.topic == topic; });
    return at == lines.end() ? nullptr : &*at;
  }
  bool is_low(HealthTopic topic) const { return of(topic).is_slow(); }
};

double hottest(const MeasuredLog& log) {
  double heat = 0;
  for (const Sample& s : log.samples) heat = std::max(heat, s.temperature_c);
  return heat;
}

// GPUs of these generations slow their clocks from 83 to 88 degrees on, depending on the board.
constexpr double slowing_celsius = 83;

std::string clock_causes(const Signs& e) {
  std::string text;
  if (const HealthLine* limit = e.line(HealthTopic::power_limit);
      limit != nullptr && limit->verdict == HealthVerdict::slow)
    text += fmt::format("the power limit is set to {:.0f} W of {:.0f} W; ", limit->measured,
                        limit->expected);
  if (hottest(e.measured) >= slowing_celsius)
    text += fmt::format("the chip reached {:.0f} C, at which clocks are cut: cooling; ",
                        hottest(e.measured));
  if (!text.empty()) return text.substr(0, text.size() - 2);
  return "locked or capped clocks (nvidia-smi -q -d CLOCK,PERFORMANCE names the reason)";
}

// Libraries that differ between the two logs, as "cublasLt 13.0.2 against 13.1.0".
std::string other_versions(const Signs& e) {
  if (e.expected.log == nullptr) return "";
  std::set<std::string> texts;
  for (const RunConditions& mine : e.measured.conditions)
    for (const RunConditions& other : e.expected.log->conditions)
      for (const auto& [name, version] : mine.libraries)
        if (const auto at = other.libraries.find(name);
            at != other.libraries.end() && at->second != version)
          texts.insert(fmt::format("{} {} against {}", name, version, at->second));
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + text;
  return list;
}

// Two models of boards: everything else follows from that.
void find_model(const Signs& e, std::vector<std::string>& out) {
  if (e.expected.log == nullptr || e.measured.conditions.empty() ||
      e.expected.log->conditions.empty())
    return;
  const std::string& mine = e.measured.conditions.front().device;
  const std::string& other = e.expected.log->conditions.front().device;
  if (!mine.empty() && !other.empty() && mine != other)
    out.push_back(fmt::format("another model of the board: {} against {}", mine, other));
}

void find_compute(const Signs& e, std::vector<std::string>& out) {
  const Topic burst = e.of(HealthTopic::compute), sustained = e.of(HealthTopic::sustained);
  const HealthLine* clock = e.line(HealthTopic::clock);
  const bool clock_low = e.is_low(HealthTopic::clock);
  if (clock_low) {
    std::string text = fmt::format("SM clock {}: {:.0f} MHz of {:.0f} MHz under load",
                                   low(clock->ratio), clock->measured, clock->expected);
    if (burst.is_slow()) text += fmt::format(", and compute {} with it", low(burst.ratio));
    out.push_back(text + ": " + clock_causes(e));
    return;
  }
  if (burst.is_slow()) {
    const std::string versions = other_versions(e);
    const std::string clocks = clock == nullptr ? "the clocks are not known" : "at full clocks";
    out.push_back(fmt::format(
        "compute {} {}: {}another process on the GPU, a MIG slice, {}kernels of another kind",
        low(burst.ratio), clocks, clock == nullptr ? "capped clocks, " : "",
        versions.empty() ? "" : "other libraries (" + versions + "), "));
    return;
  }
  if (!sustained.is_slow()) return;
  const HealthLine* power = e.line(HealthTopic::power);
  const bool starved = power != nullptr && power->verdict == HealthVerdict::slow;
  std::string why = starved ? fmt::format(
                                  "it draws only {:.0f} W, so not its limit but heat or a "
                                  "cap of the whole host holds it",
                                  power->measured)
                            : "the power limit leaves it lower clocks: a leakier chip, or cooling";
  if (hottest(e.measured) >= slowing_celsius)
    why = fmt::format("the chip reached {:.0f} C: cooling", hottest(e.measured));
  if (e.is_low(HealthTopic::power_limit)) why = clock_causes(e);
  out.push_back(
      fmt::format("sustained compute {}, bursts as expected: {}", low(sustained.ratio), why));
}

void find_memory(const Signs& e, std::vector<std::string>& out) {
  const Topic memory = e.of(HealthTopic::memory), cache = e.of(HealthTopic::cache);
  const HealthLine* clock = e.line(HealthTopic::memory_clock);
  if (e.is_low(HealthTopic::memory_clock)) {
    std::string text = fmt::format("memory clock {}: {:.0f} MHz of {:.0f} MHz", low(clock->ratio),
                                   clock->measured, clock->expected);
    if (memory.is_slow())
      text += fmt::format(", and memory bandwidth {} with it", low(memory.ratio));
    out.push_back(text + ": capped memory clock, or another model of the board");
  } else if (memory.is_slow()) {
    std::string why =
        "ECC errors being corrected or rows remapped (nvidia-smi -q -d ECC,ROW_REMAPPER), another "
        "process on the GPU, a MIG slice";
    if (e.is_low(HealthTopic::clock) && memory.ratio > 0.93)
      why = "the SM clock is low, and fewer requests are in flight; " + why;
    out.push_back(fmt::format("memory bandwidth {}: {}", low(memory.ratio), why));
  }
  if (cache.is_slow() && !e.is_low(HealthTopic::clock))
    out.push_back(
        fmt::format("L2 bandwidth {} at full clocks: a MIG slice or another process on the GPU",
                    low(cache.ratio)));
}

void find_links(const Signs& e, std::vector<std::string>& out) {
  if (const Topic host = e.of(HealthTopic::host_link); host.is_slow()) {
    const bool half = host.ratio < 0.62;
    out.push_back(fmt::format(
        "host link {}: {}", low(host.ratio),
        half ? "about half, as with half the lanes or the generation before (nvidia-smi -q: "
               "PCIe generation and link width)"
             : "memory of the other socket, or the host's memory is busy"));
  }
  const Topic peers = e.of(HealthTopic::peer_link), calls = e.of(HealthTopic::collective);
  if (peers.is_slow())
    out.push_back(
        fmt::format("links between GPUs {}: links that are down or retrain "
                    "(nvidia-smi nvlink -s), or peers without direct access",
                    low(peers.ratio)));
  else if (calls.is_slow())
    out.push_back(fmt::format(
        "collectives {}{}: {}", low(calls.ratio), peers.lines > 0 ? ", links as expected" : "",
        other_versions(e).empty()
            ? "NVLink's reductions in the switch are off, NCCL settings of the environment, links "
              "that are down (nvidia-smi nvlink -s)"
            : "other libraries (" + other_versions(e) + "), NCCL settings of the environment"));
}

void find_launch(const Signs& e, std::vector<std::string>& out) {
  if (const Topic device = e.of(HealthTopic::launch);
      device.is_slow() && !e.is_low(HealthTopic::clock))
    out.push_back(
        fmt::format("latencies {:.0f}% long: another process on the GPU, or a driver "
                    "that measures or debugs",
                    100 * (1 / device.ratio - 1)));
}

// What the host's processor does for a launch. Hosts differ by half and more, and each slow
// question is named: few are asked, and one says nothing about another.
std::vector<std::string> find_host(const std::vector<HealthLine>& lines) {
  std::vector<std::string> out;
  for (const HealthLine& line : lines)
    if (asks_host(line.topic) && line.verdict == HealthVerdict::slow)
      out.push_back(
          fmt::format("{} takes {:.0f}% longer: the host's processor is slower, busy or saves "
                      "power, or runs a virtual machine",
                      line.question, 100 * (1 / line.ratio - 1)));
  return out;
}

// Single questions that are slow beyond doubt where the rest of their topic is as expected. The
// tolerance lets one healthy question of forty pass it by chance: a lone one must pass it clearly.
void find_lone(const Signs& e, std::vector<std::string>& out) {
  constexpr double beyond_doubt = 1.5;
  std::set<HealthTopic> seen;
  for (const HealthLine& line : e.lines) {
    if (is_sensor(line.topic) || !line.against_gpu() || e.is_low(line.topic)) continue;
    if (-std::log(line.ratio) < beyond_doubt * line.tolerance()) continue;
    if (!seen.insert(line.topic).second) continue;
    const std::string versions = other_versions(e);
    out.push_back(
        fmt::format("{} {}, others like it as expected: another kernel or algorithm was chosen{}",
                    line.question, low(line.ratio), versions.empty() ? "" : " (" + versions + ")"));
  }
}

// The power limit alone: lower than the board's, though nothing is slow yet.
void find_settings(const Signs& e, std::vector<std::string>& out) {
  const HealthLine* limit = e.line(HealthTopic::power_limit);
  if (limit != nullptr && limit->verdict == HealthVerdict::slow && out.empty())
    out.push_back(fmt::format("power limit {}: {:.0f} W of {:.0f} W", low(limit->ratio),
                              limit->measured, limit->expected));
}

}  // namespace

HealthFindings health_findings(const std::vector<HealthLine>& lines, const MeasuredLog& measured,
                               const Expectation& expected, const Device& specified) {
  const Signs signs{
      .lines = lines, .measured = measured, .expected = expected, .specified = specified};
  std::vector<std::string> out;
  find_model(signs, out);
  find_compute(signs, out);
  find_memory(signs, out);
  find_links(signs, out);
  find_launch(signs, out);
  find_lone(signs, out);
  find_settings(signs, out);
  return {.gpu = std::move(out), .host = find_host(lines)};
}

}  // namespace orrery
