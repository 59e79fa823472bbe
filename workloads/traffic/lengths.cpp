// SPDX-License-Identifier: Apache-2.0
// Draws lengths, and reads their texts.
#include "workloads/traffic/lengths.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "sim/base/errors/check.h"
#include "workloads/traffic/request.h"

namespace orrery {
namespace {

std::int64_t between(std::int64_t low, std::int64_t high, RandomStream& random) {
  if (low >= high) return low;
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

std::int64_t draw_from(const FixedLength& l, RandomStream&) { return l.tokens; }
std::int64_t draw_from(const UniformLength& l, RandomStream& random) {
  return between(l.low, l.high, random);
}
std::int64_t draw_from(const RatioLength& l, RandomStream& random) {
  const auto low = static_cast<std::int64_t>(static_cast<double>(l.nominal) * l.ratio);
  return between(std::max<std::int64_t>(low, 1), l.nominal, random);
}
std::int64_t draw_from(const LognormalLength& l, RandomStream& random) {
  const double drawn = l.median * std::exp(random.normal(0, l.sigma));
  return static_cast<std::int64_t>(std::clamp(std::round(drawn), 1.0, static_cast<double>(l.cap)));
}

constexpr std::string_view lengths_form =
    "tokens, uniform:LOW:HIGH, ratio:NOMINAL:SHARE or lognormal:MEDIAN:SIGMA:CAP";

class LengthText {
 public:
  LengthText(std::string_view text, const std::string& flag) : text_(text), flag_(flag) {
    for (std::string_view rest = text;;) {
      const std::size_t colon = rest.find(':');
      parts_.push_back(rest.substr(0, colon));
      if (colon == std::string_view::npos) break;
      rest.remove_prefix(colon + 1);
    }
  }

  bool is(std::string_view name, std::size_t numbers) const {
    return parts_.front() == name && parts_.size() == numbers + 1;
  }
  bool plain() const { return parts_.size() == 1; }
  double number(std::size_t part) const {
    double value = 0;
    const char* const end = parts_[part].data() + parts_[part].size();
    const auto read = std::from_chars(parts_[part].data(), end, value);
    if (read.ec != std::errc() || read.ptr != end || !std::isfinite(value)) fail(lengths_form);
    return value;
  }
  std::int64_t tokens(std::size_t part) const {
    const double value = number(part);
    if (value < 1 || value > static_cast<double>(most_request_tokens) || value != std::floor(value))
      fail("whole tokens between 1 and 10^9");
    return static_cast<std::int64_t>(value);
  }
  [[noreturn]] void fail(std::string_view expected) const {
    throw Error({.file = flag_, .found = in_quotes(text_), .expected = std::string(expected)});
  }

 private:
  std::string_view text_;
  const std::string& flag_;
  std::vector<std::string_view> parts_;
};

}  // namespace

std::int64_t draw(const Length& length, RandomStream& random) {
  return std::visit([&](const auto& one) { return draw_from(one, random); }, length);
}

Length parse_length(std::string_view text, const std::string& flag) {
  const LengthText parts(text, flag);
  if (parts.plain()) return FixedLength{parts.tokens(0)};
  if (parts.is("uniform", 2)) {
    const UniformLength length{parts.tokens(1), parts.tokens(2)};
    if (length.low > length.high) parts.fail("the lower length first");
    return length;
  }
  if (parts.is("ratio", 2)) {
    const RatioLength length{parts.tokens(1), parts.number(2)};
    if (length.ratio <= 0 || length.ratio > 1) parts.fail("a share above 0 and at most 1");
    return length;
  }
  if (parts.is("lognormal", 3)) {
    const LognormalLength length{parts.number(1), parts.number(2), parts.tokens(3)};
    if (length.median < 1 || length.sigma < 0)
      parts.fail("a median of 1 or more, no negative sigma");
    return length;
  }
  parts.fail(lengths_form);
}

}  // namespace orrery
