// SPDX-License-Identifier: Apache-2.0
// Reads whole numbers as people write them.
#include "sim/question/settings/counts.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "sim/base/errors/check.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

constexpr double most_exact = 0x1p53;

struct Suffixed {
  double number = 0;
  char letter = 0;  // k, M or G
};

std::optional<Suffixed> suffixed_in(const std::string& text) {
  if (text.size() < 2 || text[0] < '0' || text[0] > '9') return std::nullopt;
  char letter = text.back();
  if (letter == 'K') letter = 'k';
  if (letter != 'k' && letter != 'M' && letter != 'G') return std::nullopt;
  std::string number = text.substr(0, text.size() - 1);
  if (number.back() == ' ') number.pop_back();
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (*end != '\0' || !std::isfinite(value)) return std::nullopt;
  return Suffixed{value, letter};
}

double binary(char letter) { return letter == 'k' ? 0x1p10 : letter == 'M' ? 0x1p20 : 0x1p30; }

// nullopt where k = 1,024 leaves a part of a token over.
std::optional<std::int64_t> binary_count(const Suffixed& s) {
  const double count = s.number * binary(s.letter);
  if (!(count <= most_exact) || std::trunc(count) != count) return std::nullopt;
  return static_cast<std::int64_t>(count);
}

bool counts_tokens(const std::string& key) {
  return key == "seq" || key == "context" || key == "mean_document";
}

std::string expected_of(const std::string& key, const Suffixed& s, const std::string& text) {
  if (key == "global_batch")
    return "sequences as a whole number, or tokens in M (1,048,576), as in 4M";
  const double thousands = s.letter == 'k' ? 1e3 : s.letter == 'M' ? 1e6 : 1e9;
  return fmt::format("a whole number: {} may mean {:.0f} or {:.0f}", text, s.number * thousands,
                     s.number * binary(s.letter));
}

// Sequences that hold the tokens of a batch such as "4M".
std::int64_t sequences_of(const std::string& text, const SortedJson& settings,
                          const std::string& file) {
  const ErrorInfo place{.file = file, .path = "global_batch", .found = in_quotes(text)};
  const auto tokens = binary_count(*suffixed_in(text));
  const auto seq = settings.find("seq");
  ErrorInfo info = place;
  info.expected = "a whole number of tokens";
  if (!tokens) throw Error(info);
  info.expected = "seq beside it: tokens are counted in sequences";
  if (seq == settings.end() || !seq->is_number() || !(seq->get<double>() >= 1)) throw Error(info);
  const auto length = static_cast<std::int64_t>(std::min(seq->get<double>(), most_exact));
  info.found = fmt::format("{}, {} tokens in sequences of {}", in_quotes(text), *tokens, length);
  info.expected = fmt::format("a whole number of sequences, such as {}",
                              std::max<std::int64_t>(*tokens / length, 1));
  if (*tokens % length != 0) throw Error(info);
  return *tokens / length;
}

}  // namespace

std::optional<std::int64_t> whole_in(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc() && end == text.data() + text.size()) return value;
  const bool scientific = text.find_first_of("eE") != std::string::npos &&
                          text.find_first_not_of("0123456789.eE+") == std::string::npos;
  if (!scientific) return std::nullopt;
  char* rest = nullptr;
  const double number = std::strtod(text.c_str(), &rest);
  if (*rest != '\0' || !(number <= most_exact) || std::trunc(number) != number) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

SortedJson count_in(const std::string& key, const std::string& text, const std::string& place) {
  const auto fail = [&](const std::string& expected) {
    const bool flag = place.starts_with("--");
    throw Error(
        {.file = place, .path = flag ? "" : key, .found = in_quotes(text), .expected = expected});
  };
  if (const auto whole = whole_in(text)) return *whole;
  const auto given = suffixed_in(text);
  if (!given)
    fail(counts_tokens(key) ? "a whole number of tokens, such as 8192 or 8k" : "a whole number");
  if (key == "global_batch" && given->letter != 'k') return text;
  if (!counts_tokens(key)) fail(expected_of(key, *given, text));
  const auto count = binary_count(*given);
  if (!count) fail("a whole number of tokens, such as 8192 or 8k (k is 1,024)");
  return *count;
}

SortedJson with_counts(SortedJson settings, const std::string& file) {
  if (!settings.is_object()) return settings;
  for (const Setting& setting : orrery::settings()) {
    const auto at = settings.find(setting.key);
    if (setting.kind == SettingKind::integer && at != settings.end() && at->is_string())
      *at = count_in(setting.key, at->get<std::string>(), file);
  }
  const auto batch = settings.find("global_batch");
  if (batch != settings.end() && batch->is_string())
    *batch = sequences_of(batch->get<std::string>(), settings, file);
  return settings;
}

}  // namespace orrery
