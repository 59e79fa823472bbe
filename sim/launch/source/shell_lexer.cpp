// SPDX-License-Identifier: Apache-2.0
// Splits shell scripts into words and signs.
#include "sim/launch/source/shell_lexer.h"

#include <array>
#include <cctype>

#include <fmt/format.h>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

constexpr int deepest_brackets = 40;  // nested ${..}, $(..) and quotes

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& file, std::int64_t line)
      : text_(text), file_(file), line_(line) {}

  std::vector<ShellToken> tokens();
  std::vector<WordPart> parts(bool quoted);

 private:
  struct Document {
    std::size_t token;
    std::string end;
    bool strip, quoted;
    std::int64_t line;
  };
  [[noreturn]] void fail(std::int64_t line, const std::string& found) const;
  bool next_is(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  char look(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  char take();

  void skip(std::size_t count) { at_ += count; }
  void skip_break(std::size_t count);
  void sign(std::string what, std::string text = "");
  void step();
  bool begins_word() const;
  bool begins_command() const;
  void skip_comment() {
    while (at_ < text_.size() && look() != '\n') ++at_;
  }
  void end_of_line() { sign("\n"); }

  void arithmetic_command();
  bool operator_at();
  void begin_document(bool strip);
  void read_documents();
  void word();
  static void add(std::vector<WordPart>& parts, char c, bool quoted);
  static void open_quotes(std::vector<WordPart>& parts);
  bool copy_mark(std::vector<WordPart>& parts, bool quoted);
  void bare_sign(std::vector<WordPart>& parts);
  void single_quotes(std::vector<WordPart>& parts);
  void double_quotes(std::vector<WordPart>& parts);
  void quoted_sign(std::vector<WordPart>& parts);
  void expansion(std::vector<WordPart>& parts, bool quoted);
  void expand(std::vector<WordPart>& parts, bool quoted);

  // What stands up to the closing sign, brackets and quotes in it whole.
  std::string until_parenthesis(std::int64_t first) { return until(first, '(', ')'); }
  std::string until_brace(std::int64_t first) { return until(first, '{', '}'); }
  std::string until(std::int64_t first, char open, char close);
  std::string until_double_parenthesis(std::int64_t first);

  std::string_view text_;
  const std::string& file_;
  std::int64_t line_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<ShellToken> out_;
  std::vector<Document> documents_;
};

std::vector<ShellToken> Lexer::tokens() {
  while (at_ < text_.size()) step();
  end_of_line();
  if (!documents_.empty()) fail(documents_.front().line, "a document (<<) without its last line");
  return std::move(out_);
}

std::vector<WordPart> Lexer::parts(bool quoted) {
  std::vector<WordPart> all;
  while (at_ < text_.size()) {
    if (quoted)
      quoted_sign(all);
    else
      bare_sign(all);
  }
  return all;
}

[[noreturn]] void Lexer::fail(std::int64_t line, const std::string& found) const {
  throw Error({.file = fmt::format("{}:{}", file_, line),
               .found = found,
               .expected = "a shell script whose quotes and brackets end"});
}

char Lexer::take() {
  const char c = text_[at_++];
  if (c == '\n') ++line_;
  return c;
}

void Lexer::skip_break(std::size_t count) {
  at_ += count;
  ++line_;
}

void Lexer::sign(std::string what, std::string text) {
  out_.push_back({.kind = ShellToken::Kind::sign,
                  .line = line_,
                  .sign = std::move(what),
                  .text = std::move(text)});
}

void Lexer::step() {
  const char c = look();
  if (c == ' ' || c == '\t' || c == '\r' || c == '\f') return skip(1);
  if (next_is("\\\n")) return skip_break(2);
  if (next_is("\\\r\n")) return skip_break(3);
  if (c == '#' && begins_word()) return skip_comment();
  if (c == '\n') {
    end_of_line();
    take();
    return read_documents();
  }
  if (next_is("((") && begins_command()) return arithmetic_command();
  if (operator_at()) return;
  word();
}

bool Lexer::begins_word() const {
  return at_ == 0 ||
         std::string_view(" \t\n\r\f;&|(").find(text_[at_ - 1]) != std::string_view::npos;
}

bool Lexer::begins_command() const {
  if (out_.empty()) return true;
  const ShellToken& last = out_.back();
  if (last.kind == ShellToken::Kind::word) {
    const std::string plain = last.plain();
    return plain == "if" || plain == "while" || plain == "for" || plain == "then" ||
           plain == "do" || plain == "else" || plain == "elif" || plain == "!";
  }
  return last.sign != "(";
}

void Lexer::arithmetic_command() {
  const std::int64_t first = line_;
  at_ += 2;
  std::string inside = until_double_parenthesis(first);
  sign("((", std::move(inside));
}

bool Lexer::operator_at() {
  static constexpr std::array<std::string_view, 20> signs = {
      "<<<", "<<-", "&>>", "&&", "||", ";;", "<<", ">>", ">&", "<&",
      "&>",  ">|",  "<>",  ";",  "&",  "|",  "(",  ")",  "<",  ">"};
  if (next_is("<(") || next_is(">(")) return false;  // a word: the name of a pipe
  for (const std::string_view one : signs) {
    if (!next_is(one)) continue;
    const std::int64_t before = line_;
    at_ += one.size();
    if (one == "<<" || one == "<<-") {
      line_ = before;
      begin_document(one == "<<-");
    } else {
      sign(std::string(one));
    }
    return true;
  }
  return false;
}

void Lexer::begin_document(bool strip) {
  while (look() == ' ' || look() == '\t') ++at_;
  std::string end;
  bool quoted = false;
  while (at_ < text_.size() &&
         std::string_view(" \t\n\r;&|<>()").find(look()) == std::string_view::npos) {
    const char c = take();
    if (c == '\'' || c == '"' || c == '\\')
      quoted = true;
    else
      end += c;
  }
  if (end.empty()) fail(line_, "a document (<<) without the word that ends it");
  sign("<<");
  out_.back().quoted = quoted;
  documents_.push_back({out_.size() - 1, end, strip, quoted, line_});
}

void Lexer::read_documents() {
  for (const Document& d : documents_) {
    std::string body;
    bool ended = false;
    while (at_ < text_.size() && !ended) {
      std::size_t end = text_.find('\n', at_);
      if (end == std::string_view::npos) end = text_.size();
      std::string row(text_.substr(at_, end - at_));
      at_ = std::min(end + 1, text_.size());
      ++line_;
      if (!row.empty() && row.back() == '\r') row.pop_back();
      if (d.strip) row.erase(0, std::min(row.find_first_not_of('\t'), row.size()));
      ended = row == d.end;
      if (!ended) body += row + "\n";
    }
    if (!ended) fail(d.line, "a document (<<) without its last line");
    out_[d.token].text = std::move(body);
  }
  documents_.clear();
}

void Lexer::word() {
  ShellToken token;
  token.line = line_;
  const std::size_t from = at_;
  while (at_ < text_.size()) {
    const char c = look();
    if (std::string_view(" \t\n\r\f;&|)").find(c) != std::string_view::npos) break;
    if (c == '(') {
      // NAME=( begins a list; name( a function.
      const bool list = !token.parts.empty() &&
                        token.parts.back().kind == WordPart::Kind::literal &&
                        !token.parts.back().quoted && token.parts.back().text.ends_with('=');
      if (!list) break;
      at_ += 1;
      token.text = "(";
      break;
    }
    if (c == '<' || c == '>') {
      if ((next_is("<(") || next_is(">(")) && from == at_) {
        at_ += 2;
        token.parts.push_back({WordPart::Kind::command, until_parenthesis(line_), false});
        continue;
      }
      break;
    }
    bare_sign(token.parts);
  }
  if (at_ == from) fail(line_, fmt::format("\"{}\"", take()));
  // A number before < or > is the stream that is redirected.
  const std::string plain = token.plain();
  const bool number = !plain.empty() && plain.find_first_not_of("0123456789") == std::string::npos;
  if (number && (look() == '<' || look() == '>')) return;
  out_.push_back(std::move(token));
}

void Lexer::add(std::vector<WordPart>& parts, char c, bool quoted) {
  if (parts.empty() || parts.back().kind != WordPart::Kind::literal ||
      parts.back().quoted != quoted)
    parts.push_back({WordPart::Kind::literal, "", quoted});
  parts.back().text += c;
}

void Lexer::open_quotes(std::vector<WordPart>& parts) {
  if (parts.empty() || parts.back().kind != WordPart::Kind::literal || !parts.back().quoted)
    parts.push_back({WordPart::Kind::literal, "", true});
}

// A mark (marks.h) of what was expanded before is kept whole.
bool Lexer::copy_mark(std::vector<WordPart>& parts, bool quoted) {
  if (look() != '\x01') return false;
  while (at_ < text_.size() && look() != '\x02') add(parts, take(), quoted);
  if (at_ < text_.size()) add(parts, take(), quoted);
  return true;
}

void Lexer::bare_sign(std::vector<WordPart>& parts) {
  if (copy_mark(parts, false)) return;
  const char c = look();
  if (c == '\'') return single_quotes(parts);
  if (c == '"') return double_quotes(parts);
  if (c == '$' || c == '`') return expansion(parts, false);
  if (c == '\\') {
    take();
    if (at_ >= text_.size()) return;
    if (next_is("\r\n")) at_ += 1;
    const char next = take();
    if (next != '\n') add(parts, next, true);
    return;
  }
  add(parts, take(), false);
}

void Lexer::single_quotes(std::vector<WordPart>& parts) {
  const std::int64_t first = line_;
  take();
  open_quotes(parts);
  while (at_ < text_.size() && look() != '\'') add(parts, take(), true);
  if (at_ >= text_.size()) fail(first, "a quote (') that does not end");
  take();
}

void Lexer::double_quotes(std::vector<WordPart>& parts) {
  const std::int64_t first = line_;
  take();
  open_quotes(parts);
  while (at_ < text_.size() && look() != '"') quoted_sign(parts);
  if (at_ >= text_.size()) fail(first, "a quote (\") that does not end");
  take();
}

void Lexer::quoted_sign(std::vector<WordPart>& parts) {
  if (copy_mark(parts, true)) return;
  if (look() == '$' || look() == '`') return expansion(parts, true);
  if (look() == '\\' && at_ + 1 < text_.size()) {
    const char next = look(1);
    if (next == '\n') return skip_break(2);
    if (std::string_view("$`\"\\").find(next) != std::string_view::npos) ++at_;
  }
  add(parts, take(), true);
}

void Lexer::expansion(std::vector<WordPart>& parts, bool quoted) {
  if (++depth_ > deepest_brackets)
    fail(line_, fmt::format("more than {} levels of brackets", deepest_brackets));
  expand(parts, quoted);
  --depth_;
}

void Lexer::expand(std::vector<WordPart>& parts, bool quoted) {
  const std::int64_t first = line_;
  if (look() == '`') {
    take();
    std::string inside;
    while (at_ < text_.size() && look() != '`') {
      if (look() == '\\') take();
      if (at_ < text_.size()) inside += take();
    }
    if (at_ >= text_.size()) fail(first, "a backquote (`) that does not end");
    take();
    return parts.push_back({WordPart::Kind::command, inside, quoted});
  }
  take();
  if (next_is("((")) {
    at_ += 2;
    return parts.push_back({WordPart::Kind::arithmetic, until_double_parenthesis(first), quoted});
  }
  if (look() == '(') {
    take();
    return parts.push_back({WordPart::Kind::command, until_parenthesis(first), quoted});
  }
  if (look() == '{') {
    take();
    return parts.push_back({WordPart::Kind::variable, until_brace(first), quoted});
  }
  if (!quoted && (look() == '\'' || look() == '"'))
    return look() == '"' ? double_quotes(parts) : single_quotes(parts);
  const char c = look();
  if (std::string_view("@*#?$!-").find(c) != std::string_view::npos && c != '\0') {
    take();
    return parts.push_back({WordPart::Kind::variable, std::string(1, c), quoted});
  }
  std::string name;
  const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
  while (is_name_sign(look()) && !(digit && !name.empty())) name += take();
  if (name.empty()) return add(parts, '$', quoted);
  parts.push_back({WordPart::Kind::variable, name, quoted});
}

std::string Lexer::until(std::int64_t first, char open, char close) {
  std::string inside;
  int level = 1;
  char quote = '\0';
  while (at_ < text_.size()) {
    const char c = take();
    if (c == '\\' && quote != '\'' && at_ < text_.size()) {
      inside += c;
      inside += take();
      continue;
    }
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || (c == '\'' && open == '(')) {
      quote = c;
    } else if (c == open) {
      if (++level > deepest_brackets)
        fail(first, fmt::format("more than {} levels of brackets", deepest_brackets));
    } else if (c == close && --level == 0) {
      return inside;
    }
    inside += c;
  }
  fail(first, open == '(' ? "$( that does not end" : "${ that does not end");
}

std::string Lexer::until_double_parenthesis(std::int64_t first) {
  std::string inside = until(first, '(', ')');
  if (look() != ')') fail(first, "(( that does not end");
  take();
  return inside;
}

}  // namespace

bool is_name_sign(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string ShellToken::plain() const {
  if (kind != Kind::word || parts.size() != 1) return "";
  return parts[0].kind == WordPart::Kind::literal && !parts[0].quoted ? parts[0].text : "";
}

std::vector<ShellToken> shell_tokens(std::string_view text, const std::string& file,
                                     std::int64_t first_line) {
  return Lexer(text, file, first_line).tokens();
}

std::vector<WordPart> shell_parts(std::string_view text, bool quoted, const std::string& file,
                                  std::int64_t line) {
  return Lexer(text, file, line).parts(quoted);
}

}  // namespace orrery
