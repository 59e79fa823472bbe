// SPDX-License-Identifier: Apache-2.0
// Reads and writes engines as text.
#include "sim/question/serve/engine_text.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>

#include "sim/base/errors/check.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

constexpr const char* engines_form = "engines like TP8, 2xTP4, 4xTP4PP2, 2xDP8EP8 or DP32EP32+32";
constexpr std::int64_t largest = std::int64_t{1} << 30;  // of a number that is read
// Each rank of an engine, and each batch of its pipeline, takes some KiB of our memory.
constexpr std::int64_t most_engines = 65'536, most_batches = 4 * most_engines;

[[noreturn]] void refuse(std::string_view text, const std::string& flag) {
  throw Error(
      {.file = flag, .path = "", .found = fmt::format("\"{}\"", text), .expected = engines_form});
}

struct Reader {
  std::string_view text, left;
  const std::string& flag;

  std::int64_t number(std::int64_t least = 1) {
    std::int64_t value = 0;
    const auto [end, failed] = std::from_chars(left.data(), left.data() + left.size(), value);
    if (failed != std::errc() || value < least || value > largest) refuse(text, flag);
    left.remove_prefix(static_cast<std::size_t>(end - left.data()));
    return value;
  }
  std::string word() {
    std::string letters;
    while (!left.empty() && std::isalpha(static_cast<unsigned char>(left.front())) != 0) {
      letters += static_cast<char>(std::toupper(static_cast<unsigned char>(left.front())));
      left.remove_prefix(1);
    }
    return letters;
  }
};

}  // namespace

void check_engine(const EngineLayout& layout, const std::string& flag) {
  const std::int64_t ranks = layout.tp * layout.attention_dp;
  if (layout.ep * layout.etp == ranks) return;
  throw Error({.file = flag,
               .path = "",
               .found = fmt::format("ep {} x etp {}", layout.ep, layout.etp),
               .expected = fmt::format("{}, since tp {} x attention_dp {} ranks share the experts",
                                       ranks, layout.tp, layout.attention_dp)});
}

namespace {

void check_count(const EngineGroup& group, std::string_view text, const std::string& flag) {
  const auto want = [&](std::int64_t count, std::int64_t limit, const std::string& what) {
    if (count > limit)
      throw Error({.file = flag,
                   .path = "",
                   .found = fmt::format("\"{}\": {} {}", text, grouped(count), what),
                   .expected = fmt::format("at most {}", grouped(limit))});
  };
  const EngineLayout& l = group.layout;
  want(group.replicas, most_engines, "engines");
  for (const std::int64_t size : {l.tp, l.pp, l.attention_dp})
    want(size, most_batches, "ranks of one axis");
  want(group.replicas * l.attention_dp, most_batches, "ranks with requests of their own");
  want(group.replicas * l.attention_dp * l.pp, most_batches, "batches of pipelines");
}

}  // namespace

EngineGroup parse_engines(std::string_view text, const std::string& flag) {
  Reader reader{text, text, flag};
  EngineGroup group;
  EngineLayout& l = group.layout;
  if (!text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) != 0) {
    group.replicas = reader.number();
    if (reader.left.empty() || (reader.left.front() != 'x' && reader.left.front() != 'X'))
      refuse(text, flag);
    reader.left.remove_prefix(1);
  }
  std::int64_t ep = 0, etp = 0, tp = 0, pp = 0, dp = 0;
  if (reader.left.empty()) refuse(text, flag);
  while (!reader.left.empty()) {
    const std::string axis = reader.word();
    std::int64_t& size = axis == "TP"    ? tp
                         : axis == "PP"  ? pp
                         : axis == "DP"  ? dp
                         : axis == "EP"  ? ep
                         : axis == "ETP" ? etp
                                         : (refuse(text, flag), tp);
    if (size != 0) refuse(text, flag);
    size = reader.number();
    if (reader.left.empty() || reader.left.front() != '+') continue;
    if (axis != "EP") refuse(text, flag);
    reader.left.remove_prefix(1);
    l.expert_copies = reader.number(0);
  }
  l.tp = std::max<std::int64_t>(1, tp);
  l.pp = std::max<std::int64_t>(1, pp);
  l.attention_dp = std::max<std::int64_t>(1, dp);
  const std::int64_t ranks = l.tp * l.attention_dp;
  l.ep = ep > 0 ? ep : (etp > 0 ? std::max<std::int64_t>(1, ranks / etp) : 1);
  l.etp = etp > 0 ? etp : std::max<std::int64_t>(1, ranks / l.ep);
  check_engine(l, flag);
  check_count(group, text, flag);
  return group;
}

std::string to_text(const EngineLayout& l) {
  std::string text;
  const auto add = [&](const char* axis, std::int64_t size, bool always = false) {
    if (size > 1 || always) text += fmt::format("{}{}{}", text.empty() ? "" : " ", axis, size);
  };
  add("DP", l.attention_dp);
  add("TP", l.tp, l.attention_dp == 1);
  add("PP", l.pp);
  add("EP", l.ep, l.expert_copies.has_value());
  if (l.expert_copies) text += fmt::format("+{}", *l.expert_copies);
  return text;
}

std::string to_text(const EngineGroup& group) {
  if (group.replicas == 1) return to_text(group.layout);
  return fmt::format("{} x {}", group.replicas, to_text(group.layout));
}

}  // namespace orrery
