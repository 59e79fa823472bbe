// SPDX-License-Identifier: Apache-2.0
// Holds samples against what is expected of them, with robust statistics.
#include "sim/calibrate/health/health.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "hw_models/kernel/l2.h"
#include "sim/base/sorting.h"
#include "sim/base/statistics.h"

namespace orrery {

namespace {

// The median's standard error over the mean's, of normal errors.
constexpr double median_efficiency = 1.2533;

// How far two healthy machines of one type differ in a question's median, as a standard deviation:
// dies, cooling, hosts. Two H200 hosts measured within ten minutes: products in bursts 4%,
// sustained 2 to 7%, memory 0 to 2%, L2 5%, launches 3 to 8%, power at rest 2%.
double machine_spread(HealthTopic topic) {
  switch (topic) {
    case HealthTopic::compute:
      return 0.025;
    case HealthTopic::memory:
      return 0.015;
    case HealthTopic::cache:
      return 0.03;
    case HealthTopic::sustained:
    case HealthTopic::sustained_clock:
      return 0.035;  // leakage and temperature decide what the power limit leaves
    case HealthTopic::clock:
    case HealthTopic::memory_clock:
      return 0.01;
    case HealthTopic::power_limit:
      return 0.005;
    case HealthTopic::peer_link:
    case HealthTopic::collective:
      return 0.025;
    case HealthTopic::host_link:
    case HealthTopic::power:
      return 0.04;
    case HealthTopic::launch:
      return 0.06;
    case HealthTopic::host_launch:
    case HealthTopic::idle_power:
      return 0.15;  // another host's processor; how long the board has rested
  }
  return 0.02;
}

struct Question {
  std::string name, unit;
  HealthTopic topic = HealthTopic::compute;
  // Of a sample, in `unit`: from its time, or what a sensor read.
  std::function<double(const Sample&)> figure;
};

// Samples below this are decided by latency, not by the unit that the question is about.
constexpr double steady_seconds = 50e-6;

std::string words_of(Format format) { return std::string(to_text(format)); }

double tera_per_second(const Sample& s) { return tensor_flop(s.kernel.work) / s.time.si() * 1e-12; }
double giga_per_second(const Sample& s) { return bytes_moved(s) / s.time.si() * 1e-9; }
double bus_giga_per_second(const Sample& s) { return bus_bytes(s) / s.time.si() * 1e-9; }
double in_us(const Sample& s) { return in_microseconds(s.time); }

std::optional<Question> compute_question(const Sample& s, const ResolvedDevice& device) {
  const Work& work = s.kernel.work;
  const auto rate = device.tensor_rate[static_cast<std::size_t>(work.input)].si();
  const bool compute_bound =
      rate > 0 && tensor_flop(work) / rate > 2 * minimum_bytes(work) / device.memory_bandwidth.si();
  if (!compute_bound || s.time.si() < steady_seconds) return std::nullopt;
  const bool sustained = s.mode == "sustained";
  const std::string what = work.kind == WorkKind::gemm                ? "products"
                           : work.kind == WorkKind::grouped_gemm      ? "grouped products"
                           : work.kind == WorkKind::attention_forward ? "attention forward"
                                                                      : "attention backward";
  return Question{.name = fmt::format("{} {}, {}", words_of(work.input), what,
                                      sustained ? "sustained" : "burst"),
                  .unit = "TFLOP/s",
                  .topic = sustained ? HealthTopic::sustained : HealthTopic::compute,
                  .figure = tera_per_second};
}

std::optional<Question> stream_question(const Sample& s, const ResolvedDevice& device) {
  const double bytes = bytes_moved(s);
  const std::string variant = s.variant.empty() ? "copy" : bare_variant(s);
  if (s.kernel.work.kind == WorkKind::host_copy) {
    if (bytes < 16e6) return std::nullopt;
    return Question{.name = "host link, " + variant,
                    .unit = "GB/s",
                    .topic = HealthTopic::host_link,
                    .figure = giga_per_second};
  }
  const double cache = device.l2_capacity.si();
  if (bytes < 4 * cache) {
    // A tenth of the cache is too little to outlast a start.
    if (bytes < 0.1 * cache || bytes > l2_for_operands * cache || !is_cached(s))
      return std::nullopt;
    return Question{.name = "L2 " + variant,
                    .unit = "GB/s",
                    .topic = HealthTopic::cache,
                    .figure = giga_per_second};
  }
  // The driver's own copy asks about its kernel, which knows nothing of our sizes.
  if (s.mode == "sustained" || variant == "memcpy") return std::nullopt;
  return Question{.name = "memory " + variant,
                  .unit = "GB/s",
                  .topic = HealthTopic::memory,
                  .figure = giga_per_second};
}

std::optional<Question> link_question(const Sample& s) {
  constexpr double large = 16e6, small = 64e3;
  const double bytes = s.number("bytes");
  if (s.kind == "peer-copy") {
    if (bytes < large) return std::nullopt;
    return Question{.name = "peer copy, " + s.variant,
                    .unit = "GB/s",
                    .topic = HealthTopic::peer_link,
                    .figure = bus_giga_per_second};
  }
  // Forced protocols ask about NCCL, not about the machine.
  if (s.text_or("protocol", "default") != "default" || s.mode == "stream") return std::nullopt;
  if (bytes > small && bytes < large) return std::nullopt;
  const auto ranks = static_cast<int>(s.number("ranks"));
  const std::string call = s.variant.empty() ? s.kind : s.kind + " " + s.variant;
  if (bytes <= small)
    return Question{.name = fmt::format("{} of {}, up to 64 KB", call, ranks),
                    .unit = "us",
                    .topic = HealthTopic::launch,
                    .figure = in_us};
  return Question{.name = fmt::format("{} of {}, from 16 MB", call, ranks),
                  .unit = "GB/s",
                  .topic = HealthTopic::collective,
                  .figure = bus_giga_per_second};
}

// Launches that the host's processor decides: how many it queues, how fast it records and waits.
bool asks_the_host(const std::string& launch) {
  for (const char* of_host : {"host", "event-record", "event-wait", "stream-sync"})
    if (launch.find(of_host) != std::string::npos) return true;
  return false;
}

// The question that a sample's time answers; nullopt where it says little about the machine.
std::optional<Question> question_of(const Sample& s, const ResolvedDevice& device) {
  if (s.time.si() <= 0) return std::nullopt;
  if (s.kind == "launch")
    return Question{
        .name = "launch, " + s.variant,
        .unit = "us",
        .topic = asks_the_host(s.variant) ? HealthTopic::host_launch : HealthTopic::launch,
        .figure = in_us};
  if (s.kind == "peer-copy" || collective_kind_text.find(s.kind)) return link_question(s);
  if (!s.is_work) return std::nullopt;
  const WorkKind kind = s.kernel.work.kind;
  if (kind == WorkKind::gemm || kind == WorkKind::grouped_gemm ||
      kind == WorkKind::attention_forward || kind == WorkKind::attention_backward)
    return compute_question(s, device);
  if (kind == WorkKind::copy || kind == WorkKind::host_copy) return stream_question(s, device);
  if (kind == WorkKind::attention_decode && s.time.si() > steady_seconds)
    return Question{.name = words_of(s.kernel.work.input) + " decode attention",
                    .unit = "GB/s",
                    .topic = HealthTopic::memory,
                    .figure = giga_per_second};
  return std::nullopt;
}

struct Group {
  Question question;
  std::vector<const Sample*> samples;
  std::vector<double> logs;       // ln(expected time / measured time)
  std::vector<double> specified;  // specified time / measured time
};

HealthVerdict verdict_of(const HealthLine& line) {
  const double off = std::log(line.ratio), most = line.tolerance();
  if (off < -most) return HealthVerdict::slow;
  return off > most ? HealthVerdict::fast : HealthVerdict::as_expected;
}

// Median of the logarithms, and its standard error from their median absolute deviation.
void settle(const std::vector<double>& logs, HealthLine& line) {
  const double middle = median(logs);
  std::vector<double> away;
  for (const double x : logs) away.push_back(std::abs(x - middle));
  line.ratio = std::exp(middle);
  line.standard_error = median_efficiency * deviation_of_mad * median(away) /
                        std::sqrt(static_cast<double>(logs.size()));
}

HealthLine line_of(const Group& group, const Expectation& expected) {
  HealthLine line{.question = group.question.name,
                  .topic = group.question.topic,
                  .unit = group.question.unit,
                  .samples = static_cast<int>(group.samples.size())};
  settle(group.logs, line);
  line.spread = expected.spread(line.topic, group.samples);
  std::vector<double> figures;
  for (const Sample* s : group.samples) figures.push_back(group.question.figure(*s));
  line.measured = median(figures);
  line.expected = line.unit == "us" ? line.measured * line.ratio : line.measured / line.ratio;
  if (!group.specified.empty() && line.topic != HealthTopic::launch)
    line.of_specified = median(group.specified);
  line.verdict = verdict_of(line);
  return line;
}

// A reading of sensors or of settings: medians over a log.
struct Reading {
  const char* name;
  const char* unit;
  HealthTopic topic;
  std::vector<double> (*of)(const MeasuredLog& log);
};

// Products that keep the chip busy: below 50 us a burst has too few milliseconds for its clocks.
bool is_busy(const Sample& s) {
  return s.is_work && is_product(s.kernel.work.kind) && s.time.si() >= steady_seconds;
}

std::vector<double> burst_clocks(const MeasuredLog& log) {
  std::vector<double> out;
  for (const Sample& s : log.samples)
    if (is_busy(s) && s.mode != "sustained" && s.clock_after_mhz > 0)
      out.push_back(std::max(s.clock_before_mhz, s.clock_after_mhz));
  return out;
}
std::vector<double> sustained_clocks(const MeasuredLog& log) {
  std::vector<double> out;
  for (const Sample& s : log.samples)
    if (is_busy(s) && s.mode == "sustained" && s.clock_after_mhz > 0)
      out.push_back(s.clock_after_mhz);
  return out;
}
std::vector<double> sustained_power(const MeasuredLog& log) {
  std::vector<double> out;
  for (const Sample& s : log.samples)
    if (is_busy(s) && s.mode == "sustained" && s.power_w > 0) out.push_back(s.power_w);
  return out;
}
std::vector<double> rest_power(const MeasuredLog& log) {
  std::vector<double> out;
  for (const Sample& s : log.samples)
    if (s.kind == "power" && s.variant == "idle" && s.power_w > 0) out.push_back(s.power_w);
  return out;
}
template <double RunConditions::*member>
std::vector<double> settings(const MeasuredLog& log) {
  std::vector<double> out;
  for (const RunConditions& c : log.conditions)
    if (c.*member > 0) out.push_back(c.*member);
  return out;
}

constexpr Reading readings[] = {
    {"SM clock in bursts", "MHz", HealthTopic::clock, burst_clocks},
    {"SM clock, sustained", "MHz", HealthTopic::sustained_clock, sustained_clocks},
    {"memory clock", "MHz", HealthTopic::memory_clock, settings<&RunConditions::memory_clock_mhz>},
    {"power limit", "W", HealthTopic::power_limit, settings<&RunConditions::power_limit_w>},
    {"power, sustained products", "W", HealthTopic::power, sustained_power},
    {"power at rest", "W", HealthTopic::idle_power, rest_power},
};

// What a reading should be: the other log's, else a setting of the board itself or the datasheet's.
std::optional<double> expected_reading(const Reading& reading, const MeasuredLog& measured,
                                       const Expectation& expected, const Device& specified) {
  if (expected.log != nullptr)
    if (const auto other = reading.of(*expected.log); !other.empty()) return median(other);
  if (reading.topic == HealthTopic::clock)
    if (const auto most = settings<&RunConditions::max_clock_mhz>(measured); !most.empty())
      return median(most);
  if (reading.topic == HealthTopic::power_limit && specified.power_limit.known())
    return specified.power_limit.get().si();
  return std::nullopt;
}

void add_readings(const MeasuredLog& measured, const Expectation& expected, const Device& specified,
                  std::vector<HealthLine>& lines) {
  for (const Reading& reading : readings) {
    const std::vector<double> values = reading.of(measured);
    const auto other = expected_reading(reading, measured, expected, specified);
    if (values.empty() || !other || *other <= 0) continue;
    HealthLine line{.question = reading.name,
                    .topic = reading.topic,
                    .unit = reading.unit,
                    .samples = static_cast<int>(values.size()),
                    .measured = median(values),
                    .expected = *other,
                    .spread = machine_spread(reading.topic)};
    line.ratio = line.measured / line.expected;
    line.verdict = verdict_of(line);
    lines.push_back(line);
  }
}

// Half of the relative range of an estimate, as if it held two standard deviations to each side.
template <class Q>
double estimate_error(const Sourced<Q>& value) {
  if (!value.low || !value.high || value.get().si() <= 0) return 0.05;
  return (value.high->si() - value.low->si()) / (4 * value.get().si());
}

// Held-out error of the curve behind a sample: that of a group's median is smaller, as the fit put
// the middle of many shapes right.
double model_error(const Sample& s, const Machine& machine) {
  constexpr double unknown = 0.10, of_collectives = 0.05, centring = 0.5;
  const Calibration& c = machine.calibration;
  if (s.kind == "launch")
    return estimate_error(s.variant == "stream" ? c.launch_latency : c.graph_latency);
  if (!s.is_work) return of_collectives;
  const Work& work = s.kernel.work;
  const Curve& curve = c.curve(work.kind, work.input, s.kernel.library);
  // Another format's or library's curve stands in: nobody held it against this one.
  const bool own =
      curve.kind == work.kind && curve.format == work.input && curve.library == s.kernel.library;
  const bool fitted = curve.quality.held_out > 0 && curve.scale.evidence == Evidence::measured;
  return fitted && own ? curve.quality.median * centring : unknown;
}

double model_error(const std::vector<const Sample*>& samples, const Machine& machine) {
  std::vector<double> errors;
  for (const Sample* s : samples) errors.push_back(model_error(*s, machine));
  return median(errors);
}

}  // namespace

double HealthLine::tolerance() const {
  constexpr double least = 0.03, sigmas = 2;
  return std::max(least, sigmas * std::hypot(standard_error, spread));
}

std::string sample_key(const Sample& s) {
  std::string key = fmt::format("{}|{}|{}|{}|{}", s.kind, s.variant, s.mode, s.library, s.shape);
  if (s.is_work) {
    const Work& w = s.kernel.work;
    key += fmt::format("|{}|{}|{}|{}|{}|{}|{}|{}|{}", to_text(w.input), to_text(w.output),
                       static_cast<int>(w.role), w.accumulate_fp32, w.bytes_read, w.bytes_written,
                       w.window, w.groups, w.causal);
    return key;
  }
  for (const char* number : {"bytes", "ranks", "from", "to", "nodes"})
    if (const auto at = s.numbers.find(number); at != s.numbers.end())
      key += fmt::format("|{} {}", number, at->second);
  return key + "|" + s.text_or("protocol", "") + "|" + s.text_or("algorithm", "");
}

Expectation expect_model(const std::string& name, const Machine& machine) {
  return {.name = name,
          .time = [&machine](const Sample& s) { return expected_time(s, machine); },
          .spread =
              [&machine](HealthTopic topic, const std::vector<const Sample*>& samples) {
                return std::hypot(machine_spread(topic), model_error(samples, machine));
              }};
}

Expectation expect_log(const std::string& name, const MeasuredLog& log) {
  // Several runs of one question: their median.
  std::map<std::string, std::vector<double>> times;
  for (const Sample& s : log.samples)
    if (s.time.si() > 0) times[sample_key(s)].push_back(s.time.si());
  auto known = std::make_shared<std::map<std::string, double>>();
  for (const auto& [key, values] : times) known->emplace(key, median(values));
  return {.name = name,
          .time = [known](const Sample& s) -> std::optional<Seconds> {
            const auto at = known->find(sample_key(s));
            return at == known->end() ? std::nullopt : std::optional(Seconds(at->second));
          },
          .spread = [](HealthTopic topic,
                       const std::vector<const Sample*>&) { return machine_spread(topic); },
          .log = &log};
}

Expectation expect_log_or_model(const std::string& name, const MeasuredLog& log,
                                const Machine& machine) {
  Expectation both = expect_log(name, log);
  const auto by_log = both.time;
  both.time = [by_log, &machine](const Sample& s) {
    const auto time = by_log(s);
    return time ? time : expected_time(s, machine);
  };
  both.spread = [by_log, &machine](HealthTopic topic, const std::vector<const Sample*>& samples) {
    const bool all = std::all_of(samples.begin(), samples.end(),
                                 [&](const Sample* s) { return by_log(*s).has_value(); });
    const double own = machine_spread(topic);
    return all ? own : std::hypot(own, model_error(samples, machine));
  };
  return both;
}

HealthReport check_health(const MeasuredLog& measured, const Expectation& expected,
                          const Device& specified) {
  const ResolvedDevice device = specified.resolved();
  std::vector<Group> groups;
  std::map<std::string, std::size_t> index;
  for (const Sample& s : measured.samples) {
    const auto question = question_of(s, device);
    if (!question) continue;
    const auto time = expected.time(s);
    if (!time || time->si() <= 0) continue;
    const auto [at, added] = index.emplace(question->name, groups.size());
    if (added) groups.push_back({.question = *question});
    Group& group = groups[at->second];
    group.samples.push_back(&s);
    group.logs.push_back(std::log(*time / s.time));
    if (const auto least = specified_time(s, device)) group.specified.push_back(*least / s.time);
  }
  HealthReport report;
  for (const Group& group : groups) report.lines.push_back(line_of(group, expected));
  sort_stably(report.lines,
              [](const HealthLine& a, const HealthLine& b) { return a.topic < b.topic; });
  add_readings(measured, expected, specified, report.lines);
  HealthFindings findings = health_findings(report.lines, measured, expected, specified);
  report.findings = std::move(findings.gpu);
  report.host_findings = std::move(findings.host);
  return report;
}

}  // namespace orrery
