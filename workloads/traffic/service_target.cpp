// SPDX-License-Identifier: Apache-2.0
// Reads and writes the texts of service targets.
#include "workloads/traffic/service_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

struct BoundText {
  std::string_view whole;
  const std::string& flag;

  [[noreturn]] void fail(const std::string& expected, const std::string& nearest = "") const {
    throw Error(
        {.file = flag, .found = in_quotes(whole), .expected = expected, .nearest = nearest});
  }
};

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

// "2s", "30ms", "500us"; a blank may stand between.
Seconds time_of(std::string_view text, const BoundText& at) {
  const std::size_t unit = std::min(text.find_first_not_of("0123456789.+-e"), text.size());
  std::string spaced(text.substr(0, unit));
  const std::size_t rest = std::min(text.find_first_not_of(' ', unit), text.size());
  spaced += ' ';
  spaced += text.substr(rest);
  try {
    const ParsedQuantity parsed = parse_quantity(spaced);
    if (parsed.dimension == Seconds::dimension && parsed.si > 0) return Seconds(parsed.si);
  } catch (const Error&) {
  }
  at.fail("a time above 0 such as 30ms behind the equals sign");
}

// "p95", "p99.9", "mean": its percent, 0 of a mean.
double statistic_of(std::string_view text, const BoundText& at) {
  if (text == "mean") return 0;
  const auto percent = text.starts_with('p') ? number_of(text.substr(1)) : std::nullopt;
  if (!percent || !(*percent > 0) || !(*percent < 100))
    at.fail("mean, or a percentile such as p95");
  return *percent;
}

LatencyBound bound_of(std::string_view text, const std::string& flag,
                      const std::vector<std::string>& classes) {
  const BoundText at{text, flag};
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) at.fail("a bound such as ttft.p95=2s");
  std::string_view head = text.substr(0, equals);
  LatencyBound bound;
  const std::size_t first = head.find('.');
  if (!service_latency_text.find(head.substr(0, first)) && first != std::string_view::npos) {
    bound.class_name = head.substr(0, first);
    if (std::find(classes.begin(), classes.end(), bound.class_name) == classes.end()) {
      std::vector<std::string> names = service_latency_text.names();
      names.insert(names.end(), classes.begin(), classes.end());
      at.fail("ttft, tpot, itl, e2e or a class of the traffic in front",
              nearest_name(bound.class_name, names));
    }
    head.remove_prefix(first + 1);
  }
  const std::size_t dot = head.find('.');
  const auto latency = service_latency_text.find(head.substr(0, dot));
  if (!latency || dot == std::string_view::npos)
    at.fail("a latency and a statistic such as ttft.p95, tpot.mean",
            nearest_name(std::string(head.substr(0, dot)), service_latency_text.names()));
  bound.latency = *latency;
  bound.percent = statistic_of(head.substr(dot + 1), at);
  bound.at_most = time_of(text.substr(equals + 1), at);
  return bound;
}

}  // namespace

ServiceTarget parse_target(std::string_view text, const std::string& flag,
                           const std::vector<std::string>& classes) {
  ServiceTarget target;
  for (;;) {
    const std::size_t comma = text.find(',');
    target.bounds.push_back(bound_of(text.substr(0, comma), flag, classes));
    if (comma == std::string_view::npos) return target;
    text.remove_prefix(comma + 1);
  }
}

std::string to_text(const ServiceTarget& target) {
  std::string text;
  for (const LatencyBound& b : target.bounds) {
    if (!text.empty()) text += ',';
    if (!b.class_name.empty()) text += b.class_name + '.';
    text += to_text(b.latency);
    text += b.percent == 0 ? std::string(".mean=") : fmt::format(".p{}=", b.percent);
    text += b.at_most.si() < 1 ? fmt::format("{:.6g}ms", b.at_most.si() * 1e3)
                               : fmt::format("{}s", b.at_most.si());
  }
  return text;
}

}  // namespace orrery
