// SPDX-License-Identifier: Apache-2.0
// Reads the two sides of a comparison and prints what differs.
#include "sim/app/calibrate/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "hw_models/catalog.h"
#include "sim/base/json/tree.h"
#include "sim/calibrate/log/measured_tables.h"
#include "sim/paper/tables.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// One side: measured lines, a model, or both (a device whose calibration has its measurements).
struct Side {
  std::string name, device;
  MeasuredLog log;
  std::unique_ptr<Machine> machine;
  bool measured() const { return !log.samples.empty(); }
};

bool is_folder(const fs::path& path) {
  std::error_code status;
  return fs::is_directory(path, status);
}

// NCCL's conditions say where reductions in the switch were off.
bool multicast_of(const MeasuredLog& log) {
  for (const RunConditions& c : log.conditions)
    if (const auto at = c.libraries.find("nvls"); at != c.libraries.end() && at->second == "off")
      return false;
  return true;
}

// `multicast`: whether a model's switches may reduce where no log of its own tells.
Side read_side(const std::string& word, const std::string& device, bool multicast) {
  Side side{.name = word};
  if (is_folder(word) || word.ends_with(".jsonl")) {
    side.log = read_measured_log({word});
    if (side.log.samples.empty())
      throw Error({.file = word, .found = "no samples", .expected = "lines of calibrate measure"});
    side.device = device.empty() ? measured_device(side.log) : device;
    return side;
  }
  if (word.ends_with(".json") || word.find('/') != std::string::npos) {
    const JsonValue file = JsonValue::load(word);
    side.device = device.empty() ? file.at("device").text() : device;
    const Device device_of_file = load_device(side.device);
    const Calibration known = load_calibration(device_of_file);
    side.machine = std::make_unique<Machine>(
        load_machine(side.device, read_calibration(file, &known), multicast));
    // Its own collectives, or no answer: those of the catalogue would be compared with themselves.
    const auto costs = read_fitted_costs(device_of_file.architecture, file);
    side.machine->has_links = side.machine->has_links && costs.has_value();
    if (costs) side.machine->costs = *costs;
    return side;
  }
  side.device = load_device(word).name;
  if (is_folder(measured_folder(word))) side.log = read_measured_log({measured_folder(word)});
  side.machine = std::make_unique<Machine>(load_machine(word, multicast && multicast_of(side.log)));
  return side;
}

// The samples of a log as a model answers them.
MeasuredLog retimed(const MeasuredLog& log, const Machine& machine) {
  MeasuredLog out;
  out.conditions.push_back({.program = "model", .device = machine.device.name});
  for (Sample s : log.samples) {
    const auto time = expected_time(s, machine);
    if (!time || time->si() <= 0) continue;
    s.conditions = 0;
    s.time = s.low = s.high = *time;
    s.clock_before_mhz = s.clock_after_mhz = s.power_w = 0;
    out.samples.push_back(std::move(s));
  }
  return out;
}

// Two calibrations are held against each other as models; a measurement against the measurements
// behind a calibration where it has them, so that the model's own error is not in the way.
HealthReport held_against(const Side& mine, const Side& other) {
  const Device specified = load_device(other.device);
  if (!mine.machine) {
    const Expectation expected = !other.machine ? expect_log(other.name, other.log)
                                 : other.measured()
                                     ? expect_log_or_model(other.name, other.log, *other.machine)
                                     : expect_model(other.name, *other.machine);
    return check_health(mine.log, expected, specified);
  }
  if (!other.machine)
    return check_health(retimed(other.log, *mine.machine), expect_log(other.name, other.log),
                        specified);
  return check_health(modelled_log(*mine.machine), expect_model(other.name, *other.machine),
                      specified);
}

constexpr const char* specification = "specification";

// Rates over what the datasheet's peaks allow alone.
HealthReport held_against_specification(const Side& side) {
  const Device specified = load_device(side.device);
  const ResolvedDevice device = specified.resolved();
  const Expectation peaks{
      .name = specification,
      .time = [&device](const Sample& s) { return specified_time(s, device); },
      .spread = [](HealthTopic, const std::vector<const Sample*>&) { return 0.0; }};
  HealthReport report =
      check_health(side.machine ? modelled_log(*side.machine) : side.log, peaks, specified);
  std::erase_if(report.lines, [](const HealthLine& l) {
    return is_sensor(l.topic) || !l.of_specified || l.unit == "us";
  });
  // No kernel reaches the peaks: below them nothing is wrong.
  for (HealthLine& line : report.lines) line.verdict = HealthVerdict::unknown;
  report.findings = report.host_findings = {};
  return report;
}

const char* words_of(HealthVerdict verdict) {
  switch (verdict) {
    case HealthVerdict::as_expected:
      return "as expected";
    case HealthVerdict::slow:
      return "slow";
    case HealthVerdict::fast:
      return "fast";
    case HealthVerdict::unknown:
      return "unknown";
  }
  return "";
}

// More than expected is told as a figure, not as a fault.
std::string verdict_text(const HealthLine& line) {
  if (line.verdict == HealthVerdict::as_expected) return "as expected";
  const double off = 100 * std::abs(line.ratio - 1);
  const bool sensor = is_sensor(line.topic);
  if (line.verdict == HealthVerdict::fast)
    return fmt::format("no fault ({:.0f}% {})", off, sensor ? "higher" : "faster");
  return fmt::format("{} by {:.0f}%", sensor ? "low" : "slow", off);
}

std::string figure(double value) {
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

// `alike`: devices of one kind, whose differences can be faults.
Json health_json(const HealthReport& report, bool alike) {
  Json lines = Json::array();
  for (const HealthLine& l : report.lines)
    lines.push_back({{"question", l.question},
                     {"unit", l.unit},
                     {"samples", l.samples},
                     {"measured", l.measured},
                     {"expected", l.expected},
                     {"ratio", l.ratio},
                     {"tolerance", l.tolerance()},
                     {"standard_error", l.standard_error},
                     {"spread", l.spread},
                     {"of_specified", l.of_specified ? Json(*l.of_specified) : Json(nullptr)},
                     {"about", asks_host(l.topic) ? "host" : "gpu"},
                     {"verdict", words_of(l.verdict)},
                     {"fault", alike && l.against_gpu()}});
  return {{"healthy", report.healthy()},
          {"findings", report.findings},
          {"host_findings", report.host_findings},
          {"lines", lines}};
}

std::string specification_text(const HealthReport& report) {
  Table table({"question", "samples", "reached", "peak", "unit", "share"},
              {Align::left, Align::right, Align::right, Align::right, Align::left});
  for (const HealthLine& l : report.lines)
    table.add({l.question, std::to_string(l.samples), figure(l.measured), figure(l.expected),
               l.unit, fmt::format("{:.1f}%", 100 * l.ratio)});
  return table.text();
}

void check_lines(const HealthReport& report) {
  if (report.lines.empty())
    throw Error({.file = "calibrate compare",
                 .found = "no question that both sides answer",
                 .expected = "samples of products, copies, launches, links or collectives"});
}

bool about_host(const HealthLine& line) { return asks_host(line.topic); }

// The table of the questions about the GPU, or of those about its host.
std::string lines_text(const std::vector<HealthLine>& lines, bool host) {
  Table table(
      {"question", "samples", "measured", "expected", "unit", "ratio", "+-", "of spec", "verdict"},
      {Align::left, Align::right, Align::right, Align::right, Align::left, Align::right,
       Align::right, Align::right, Align::left});
  for (const HealthLine& l : lines) {
    if (about_host(l) != host) continue;
    table.add({l.question, std::to_string(l.samples), figure(l.measured), figure(l.expected),
               l.unit, fmt::format("{:.3f}", l.ratio), fmt::format("{:.3f}", l.tolerance()),
               l.of_specified ? fmt::format("{:.0f}%", 100 * *l.of_specified) : "",
               verdict_text(l)});
  }
  return table.text();
}

// Questions about the host stand apart: another host has another processor.
std::string lines_text(const HealthReport& report) {
  std::string text = lines_text(report.lines, false);
  if (std::any_of(report.lines.begin(), report.lines.end(), about_host))
    text += "\nThe host's processor, which tells nothing about the GPU:\n" +
            lines_text(report.lines, true);
  return text;
}

std::string healthy_text(const std::vector<HealthLine>& lines) {
  const auto expected = std::count_if(lines.begin(), lines.end(), [](const HealthLine& l) {
    return l.verdict == HealthVerdict::as_expected;
  });
  if (static_cast<std::size_t>(expected) == lines.size())
    return "healthy: every question is answered as expected\n";
  return fmt::format(
      "healthy: {} of {} questions are answered as expected, the rest is no fault "
      "of the GPU\n",
      expected, lines.size());
}

}  // namespace

std::string health_text(const HealthReport& report) {
  std::string text = lines_text(report) + "\n";
  for (const std::string& finding : report.findings)
    text += wrap("suspect: " + finding, page_width, "", "  ");
  if (report.healthy()) text += healthy_text(report.lines);
  for (const std::string& finding : report.host_findings)
    text += wrap("the host, not the GPU: " + finding, page_width, "", "  ");
  return text;
}

Printed compare_command(const CalibrateOptions& options) {
  if (options.files.empty() || options.files.size() > 2)
    throw Error({.file = "calibrate compare",
                 .found = fmt::format("{} sides", options.files.size()),
                 .expected = "a measurement (a folder or *.jsonl), a calibration file or a device "
                             "of the catalogue, and what to hold it against (default: the "
                             "calibration of its device, or the specification)"});
  const Side mine = read_side(options.files[0], options.device, true);
  const bool two = options.files.size() > 1;
  if (two ? options.files[1] == specification : mine.machine != nullptr) {
    const HealthReport report = held_against_specification(mine);
    check_lines(report);
    const std::string heading = fmt::format(
        "{} against the specification of {}: medians over samples, and what the datasheet's peaks "
        "allow alone; no verdict, because no kernel reaches them",
        mine.name, mine.device);
    return {options.json ? answer_text(calibrate_head(options), {}, health_json(report, false))
                         : wrap(heading, page_width, "", "") + specification_text(report)};
  }
  const Side other = read_side(two ? options.files[1] : mine.device, two ? options.device : "",
                               multicast_of(mine.log));
  HealthReport report = held_against(mine, other);
  // Devices of different kinds differ by design: nothing of that is a fault.
  const bool alike = mine.device == other.device;
  if (!alike) report.findings = report.host_findings = {};
  check_lines(report);
  const ExitCode code = report.healthy() ? ExitCode::answer : ExitCode::check_failed;
  if (options.json)
    return {answer_text(calibrate_head(options), {}, health_json(report, alike)), code};
  const std::string heading = fmt::format(
      "{} against {}: medians over samples, ratio of speeds (of figures for clocks and power), "
      "the range around 1 that is as expected, and the share of the datasheet's rate",
      mine.name, other.name);
  return {wrap(heading, page_width, "", "") +
              (alike ? health_text(report)
                     : lines_text(report) + "\nDevices of different kinds: no verdict on health\n"),
          code};
}

}  // namespace orrery
