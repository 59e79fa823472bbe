// SPDX-License-Identifier: Apache-2.0
// Computes what $((..)) stands for.
#include <array>
#include <cctype>
#include <charconv>

#include "sim/launch/source/shell_variables.h"

namespace orrery {
namespace {

using Whole = std::optional<std::int64_t>;
constexpr int deepest_terms = 64;

// Operators by how tightly they bind, loosest first.
constexpr std::array<std::array<std::string_view, 4>, 6> levels = {
    {{"||"}, {"&&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"}}};

Whole joined(Whole a, std::string_view sign, Whole b) {
  if (!a || !b) return std::nullopt;
  std::int64_t out = 0;
  if (sign == "||") return *a != 0 || *b != 0;
  if (sign == "&&") return *a != 0 && *b != 0;
  if (sign == "==") return *a == *b;
  if (sign == "!=") return *a != *b;
  if (sign == "<=") return *a <= *b;
  if (sign == ">=") return *a >= *b;
  if (sign == "<") return *a < *b;
  if (sign == ">") return *a > *b;
  if (sign == "+" && !__builtin_add_overflow(*a, *b, &out)) return out;
  if (sign == "-" && !__builtin_sub_overflow(*a, *b, &out)) return out;
  if (sign == "*" && !__builtin_mul_overflow(*a, *b, &out)) return out;
  const bool divides = *b != 0 && *b != -1;
  if (sign == "/" && divides) return *a / *b;
  if (sign == "%" && divides) return *a % *b;
  return std::nullopt;
}

class Expression {
 public:
  Expression(std::string_view text,
             const std::function<std::optional<std::int64_t>(const std::string&)>& value)
      : left_(text), value_(value) {}

  Whole whole() {
    const Whole result = level(0, 0);
    blanks();
    return left_.empty() ? result : std::nullopt;
  }

 private:
  void blanks() {
    while (!left_.empty() && std::isspace(static_cast<unsigned char>(left_.front())) != 0)
      left_.remove_prefix(1);
  }
  std::string_view sign_of(std::size_t at) {
    blanks();
    for (const std::string_view sign : levels[at])
      if (!sign.empty() && left_.starts_with(sign)) return sign;
    return {};
  }

  Whole level(std::size_t at, int depth) {
    if (at == levels.size()) return atom(depth);
    Whole result = level(at + 1, depth);
    for (std::string_view sign = sign_of(at); !sign.empty(); sign = sign_of(at)) {
      if (left_.starts_with("**")) return std::nullopt;
      left_.remove_prefix(sign.size());
      result = joined(result, sign, level(at + 1, depth));
    }
    return result;
  }

  Whole atom(int depth) {
    blanks();
    if (left_.empty() || depth > deepest_terms) return std::nullopt;
    const char c = left_.front();
    if (c == '(' || c == '-' || c == '+' || c == '!') {
      left_.remove_prefix(1);
      const Whole inside = c == '(' ? level(0, depth + 1) : atom(depth + 1);
      if (c == '(') {
        blanks();
        if (!left_.starts_with(')')) return std::nullopt;
        left_.remove_prefix(1);
      }
      if (!inside) return std::nullopt;
      return c == '-' ? joined(0, "-", inside) : c == '!' ? Whole(*inside == 0) : inside;
    }
    std::size_t end = 0;
    while (end < left_.size() &&
           (std::isalnum(static_cast<unsigned char>(left_[end])) != 0 || left_[end] == '_'))
      ++end;
    if (end == 0) return std::nullopt;
    const std::string_view token = left_.substr(0, end);
    left_.remove_prefix(end);
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) return value_(std::string(token));
    std::int64_t number = 0;
    const auto [stop, failed] = std::from_chars(token.data(), token.data() + token.size(), number);
    if (failed != std::errc() || stop != token.data() + token.size()) return std::nullopt;
    return number;
  }

  std::string_view left_;
  const std::function<std::optional<std::int64_t>(const std::string&)>& value_;
};

}  // namespace

std::optional<std::int64_t> shell_arithmetic(
    std::string_view text,
    const std::function<std::optional<std::int64_t>(const std::string&)>& value) {
  return Expression(text, value).whole();
}

}  // namespace orrery
