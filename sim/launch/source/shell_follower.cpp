// SPDX-License-Identifier: Apache-2.0
// Walks through the commands of a script: conditions, loops, lists and assignments.
#include "sim/launch/source/shell_follower.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/launch/source/marks.h"
#include "sim/launch/source/shell_test.h"

namespace orrery {
namespace {

constexpr int deepest_scripts = 4;  // of texts that are scripts themselves
constexpr std::size_t deepest_blocks = 100;
constexpr std::size_t most_commands = 20'000, most_words = 400'000;

bool is_name(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

// The variable that a word assigns to; empty: none.
struct Assigned {
  std::string name;
  bool appends = false;
  std::vector<WordPart> value;
};
Assigned assigned(const ShellToken& token) {
  if (token.kind != ShellToken::Kind::word || token.parts.empty()) return {};
  const WordPart& first = token.parts.front();
  if (first.kind != WordPart::Kind::literal || first.quoted) return {};
  const std::size_t equals = first.text.find('=');
  if (equals == std::string::npos || equals == 0) return {};
  const bool appends = first.text[equals - 1] == '+';
  const std::string name = first.text.substr(0, equals - (appends ? 1 : 0));
  if (!is_name(name)) return {};
  Assigned out{name, appends, token.parts};
  out.value.front().text = first.text.substr(equals + 1);
  if (out.value.front().text.empty()) out.value.erase(out.value.begin());
  return out;
}

class Follower {
 public:
  Follower(const std::vector<ShellToken>& tokens, const std::string& file,
           ShellVariables& variables, ShellScript& out, int depth)
      : tokens_(tokens), file_(file), variables_(variables), out_(out), depth_(depth) {}

  void all();

 private:
  enum class Block : std::uint8_t { condition, loop, choice, group };
  struct Frame {
    Block block;
    std::string opened;
    std::int64_t line;
    Holds outer, here, none_before = Holds::yes;
    std::string subject = {};
    bool in_condition = false;
  };
  [[noreturn]] void fail(std::int64_t line, const std::string& found) const;
  const ShellToken& token() const { return tokens_[at_]; }
  bool more() const { return at_ < tokens_.size(); }
  Holds now() const { return blocks_.empty() ? Holds::yes : blocks_.back().here; }

  void open(Block block, const std::string& word, Holds here);
  Frame& top(Block block, const std::string& word);
  void close(Block block, const std::string& word);
  void step();
  void sign();
  void pattern_end() { ++at_; }

  // After a command that ran as far as `runs_` says.
  void ended(Holds status);
  bool reserved(const std::string& word);

  // name() {
  bool function_head();
  void begin_for();
  void begin_case();
  // Up to the ")" behind the patterns of one way, or to the end of all.
  void patterns();
  void double_bracket();

  // A list behind NAME=(; stands at the word that opens it.
  std::vector<ShellWord> list_values();
  void count_words(std::size_t more_words, std::int64_t line);

  // Reads NAME=VALUE or NAME=( .. ) at the current word.
  void assignment(const Assigned& to, Holds active);

  // Words up to the next sign that ends a command, and where its output goes.
  struct Simple {
    std::vector<ShellWord> words;
    std::string document, target;
    bool has_document = false, expands = true;
  };
  void command();
  void declare(Holds active);
  Simple rest_of_command();
  Holds run(const Simple& simple, Holds active, std::int64_t line);

  // cat > FILE <<END, and tee FILE <<END.
  void keep_document(const Simple& simple);

  // sh -c TEXT and eval TEXT, wherever in the command they stand (srun bash -c "...").
  bool inner_script(const Simple& simple, std::int64_t line);

  const std::vector<ShellToken>& tokens_;
  const std::string& file_;
  ShellVariables& variables_;
  ShellScript& out_;
  int depth_;
  std::size_t at_ = 0, words_ = 0;
  std::vector<Frame> blocks_;
  Holds status_ = Holds::yes;  // of the list of commands so far
  Holds runs_ = Holds::yes;    // whether the next command runs, by && and ||
};

void Follower::all() {
  while (at_ < tokens_.size()) step();
  if (!blocks_.empty())
    fail(blocks_.back().line, fmt::format("\"{}\" without its end", blocks_.back().opened));
}

[[noreturn]] void Follower::fail(std::int64_t line, const std::string& found) const {
  throw Error({.file = fmt::format("{}:{}", file_, line),
               .found = found,
               .expected = "a shell script whose if, for, case and brackets end"});
}

void Follower::open(Block block, const std::string& word, Holds here) {
  if (blocks_.size() >= deepest_blocks)
    fail(token().line, fmt::format("more than {} blocks in each other", deepest_blocks));
  blocks_.push_back({block, word, token().line, now(), both(now(), here)});
}

Follower::Frame& Follower::top(Block block, const std::string& word) {
  if (blocks_.empty() || blocks_.back().block != block)
    fail(token().line, fmt::format("\"{}\" without its begin", word));
  return blocks_.back();
}

void Follower::close(Block block, const std::string& word) {
  top(block, word);
  blocks_.pop_back();
  status_ = Holds::yes;
}

void Follower::step() {
  const ShellToken& t = token();
  if (t.kind == ShellToken::Kind::sign) return sign();
  if (reserved(t.plain())) return;
  command();
}

void Follower::sign() {
  const std::string& s = token().sign;
  if (s == "((") {
    const auto value = variables_.number(token().text, token().line);
    ended(value ? (*value != 0 ? Holds::yes : Holds::no) : Holds::maybe);
  } else if (s == "&&") {
    runs_ = status_;
  } else if (s == "||") {
    runs_ = opposite(status_);
  } else if (s == "(") {
    open(Block::group, "(", runs_);
  } else if (s == ")") {
    if (!blocks_.empty() && blocks_.back().block == Block::choice) return pattern_end();
    close(Block::group, ")");
  } else if (s == ";;") {
    if (!blocks_.empty() && blocks_.back().block == Block::choice) {
      ++at_;
      return patterns();
    }
    fail(token().line, "\";;\" outside of case");
  } else {
    runs_ = Holds::yes;
  }
  ++at_;
}

void Follower::ended(Holds status) {
  if (runs_ == Holds::yes)
    status_ = status;
  else if (runs_ == Holds::maybe)
    status_ = Holds::maybe;
  runs_ = Holds::yes;
}

bool Follower::reserved(const std::string& word) {
  if (word == "if") {
    open(Block::condition, word, runs_);
    blocks_.back().in_condition = true;
  } else if (word == "then") {
    Frame& frame = top(Block::condition, word);
    frame.in_condition = false;
    frame.here = both(both(frame.outer, frame.none_before), status_);
    frame.none_before = both(frame.none_before, opposite(status_));
  } else if (word == "elif" || word == "else") {
    Frame& frame = top(Block::condition, word);
    frame.in_condition = word == "elif";
    frame.here = both(frame.outer, frame.none_before);
  } else if (word == "fi") {
    close(Block::condition, word);
  } else if (word == "while" || word == "until") {
    open(Block::loop, word, runs_);
    blocks_.back().in_condition = true;
  } else if (word == "for") {
    return begin_for(), true;
  } else if (word == "do") {
    Frame& frame = top(Block::loop, word);
    frame.in_condition = false;
    const Holds enters = frame.opened == "for"     ? Holds::maybe
                         : frame.opened == "while" ? status_
                                                   : opposite(status_);
    frame.here = both(frame.outer, both(enters, Holds::maybe));
    if (enters == Holds::no) frame.here = Holds::no;
  } else if (word == "done") {
    close(Block::loop, word);
  } else if (word == "case") {
    return begin_case(), true;
  } else if (word == "esac") {
    close(Block::choice, word);
  } else if (word == "{") {
    open(Block::group, word, runs_);
  } else if (word == "}") {
    close(Block::group, word);
  } else if (word == "function") {
    ++at_;  // its name follows
  } else if (word == "[[") {
    return double_bracket(), true;
  } else if (word != "!") {
    return function_head();
  }
  ++at_;
  runs_ = Holds::yes;
  return true;
}

bool Follower::function_head() {
  if (at_ + 2 >= tokens_.size() || !tokens_[at_ + 1].is("(") || !tokens_[at_ + 2].is(")"))
    return false;
  at_ += 3;
  return true;
}

void Follower::begin_for() {
  open(Block::loop, "for", runs_);
  ++at_;
  if (more() && token().kind == ShellToken::Kind::word) {
    const std::string name = token().plain();
    if (is_name(name)) variables_.forget(name, fmt::format("${}, a loop's variable", name));
  }
  while (more() && !(token().kind == ShellToken::Kind::word && token().plain() == "do")) ++at_;
  if (!more()) fail(blocks_.back().line, "\"for\" without \"do\"");
}

void Follower::begin_case() {
  open(Block::choice, "case", runs_);
  ++at_;
  if (more() && token().kind == ShellToken::Kind::word)
    blocks_.back().subject = variables_.word(token().parts, token().line);
  while (more() && !(token().kind == ShellToken::Kind::word && token().plain() == "in")) ++at_;
  if (!more()) fail(blocks_.back().line, "\"case\" without \"in\"");
  ++at_;
  patterns();
}

void Follower::patterns() {
  Frame& frame = blocks_.back();
  Holds holds = Holds::no;
  while (more() && token().is("\n")) ++at_;
  if (more() && token().plain() == "esac") return;
  for (; more() && !token().is(")"); ++at_)
    if (token().kind == ShellToken::Kind::word)
      holds = either(holds, matches(frame.subject, variables_.word(token().parts, token().line)));
  if (!more()) fail(frame.line, "\"case\" without \"esac\"");
  ++at_;
  frame.here = both(frame.outer, both(frame.none_before, holds));
  frame.none_before = both(frame.none_before, opposite(holds));
  runs_ = Holds::yes;
}

void Follower::double_bracket() {
  const std::int64_t line = token().line;
  std::vector<std::string> words;
  for (++at_; more() && token().plain() != "]]"; ++at_) {
    if (token().is("\n")) continue;
    if (token().kind == ShellToken::Kind::sign)
      words.push_back(token().sign);
    else
      words.push_back(variables_.word(token().parts, token().line));
  }
  if (!more()) fail(line, "\"[[\" without its end");
  ++at_;
  ended(test_holds(words));
}

std::vector<ShellWord> Follower::list_values() {
  const std::int64_t line = token().line;
  std::vector<ShellWord> values;
  for (++at_; more() && !token().is(")"); ++at_) {
    if (token().kind != ShellToken::Kind::word) continue;
    for (ShellWord& word : variables_.words(token().parts, token().line, true))
      values.push_back(std::move(word));
  }
  if (!more()) fail(line, "a list without its \")\"");
  count_words(values.size(), line);
  return values;
}

void Follower::count_words(std::size_t more_words, std::int64_t line) {
  words_ += more_words;
  if (words_ > most_words)
    throw Error({.file = fmt::format("{}:{}", file_, line),
                 .found = fmt::format("more than {} words", most_words),
                 .expected = "a launch script"});
}

void Follower::assignment(const Assigned& to, Holds active) {
  const ShellToken& t = token();
  const bool list = t.text == "(";
  std::vector<ShellWord> values =
      list ? list_values() : std::vector<ShellWord>{{variables_.word(to.value, t.line), t.line}};
  if (active == Holds::maybe)
    variables_.set_under_condition(to.name, values, {list, to.appends});
  else if (active == Holds::yes && to.appends)
    variables_.append(to.name, values, list);
  else if (active == Holds::yes)
    variables_.set(to.name, std::move(values), list);
  ++at_;
}

void Follower::command() {
  const Holds active = both(now(), runs_);
  const std::int64_t line = token().line;
  bool assigns = false;
  while (more() && token().kind == ShellToken::Kind::word) {
    const Assigned to = assigned(token());
    if (to.name.empty()) break;
    assignment(to, active);
    assigns = true;
  }
  static constexpr std::array<std::string_view, 5> declaring = {"export", "declare", "local",
                                                                "readonly", "typeset"};
  const std::string first = more() && token().kind == ShellToken::Kind::word ? token().plain() : "";
  if (std::find(declaring.begin(), declaring.end(), first) != declaring.end()) {
    ++at_;
    declare(active);
    return ended(Holds::yes);
  }
  const Simple simple = rest_of_command();
  if (simple.words.empty() && assigns) return ended(Holds::yes);
  ended(active == Holds::no ? Holds::yes : run(simple, active, line));
}

void Follower::declare(Holds active) {
  while (more() && token().kind == ShellToken::Kind::word) {
    const Assigned to = assigned(token());
    if (to.name.empty())
      ++at_;
    else
      assignment(to, active);
  }
}

Follower::Simple Follower::rest_of_command() {
  Simple out;
  while (more()) {
    const ShellToken& t = token();
    if (t.kind == ShellToken::Kind::sign) {
      if (t.sign == "<<") {
        out.document = t.text;
        out.has_document = true;
        out.expands = !t.quoted;
        ++at_;
        continue;
      }
      const bool redirects = t.sign.find_first_of("<>") != std::string::npos;
      if (!redirects) break;
      const bool writes = t.sign == ">" || t.sign == ">|";
      ++at_;
      if (more() && token().kind == ShellToken::Kind::word) {
        const std::string name = variables_.word(token().parts, token().line);
        if (writes) out.target = name;
        ++at_;
      }
      continue;
    }
    for (ShellWord& word : variables_.words(t.parts, t.line, true))
      out.words.push_back(std::move(word));
    count_words(1, t.line);
    ++at_;
  }
  count_words(out.words.size(), out.words.empty() ? 1 : out.words.front().line);
  return out;
}

Holds Follower::run(const Simple& simple, Holds active, std::int64_t line) {
  if (simple.words.empty()) return Holds::yes;
  const std::string name = simple.words.front().text;
  const auto texts = [&](std::size_t from, std::size_t to) {
    std::vector<std::string> out;
    for (std::size_t i = from; i < to; ++i) out.push_back(simple.words[i].text);
    return out;
  };
  const std::size_t count = simple.words.size();
  if (name == "[" && simple.words.back().text == "]") return test_holds(texts(1, count - 1));
  if (name == "test") return test_holds(texts(1, count));
  if (name == "false") return Holds::no;
  if (name == "true" || name == ":") return Holds::yes;
  // A script goes on as if its commands succeed; where it asks whether one does, nobody can tell.
  const bool asks = !blocks_.empty() && blocks_.back().in_condition;
  const Holds succeeds = asks ? Holds::maybe : Holds::yes;
  if (name == "read")
    for (const std::string& variable : texts(1, count))
      if (is_name(variable)) variables_.forget(variable, "$" + variable + ", which is read in");
  keep_document(simple);
  if (inner_script(simple, line)) return succeeds;
  if (out_.commands.size() >= most_commands)
    throw Error({.file = fmt::format("{}:{}", file_, line),
                 .found = fmt::format("more than {} commands", most_commands),
                 .expected = "a launch script"});
  out_.commands.push_back({simple.words, active == Holds::yes});
  return succeeds;
}

void Follower::keep_document(const Simple& simple) {
  if (!simple.has_document) return;
  std::string target = simple.target;
  if (target.empty() && simple.words.front().text == "tee" && simple.words.size() > 1)
    target = simple.words.back().text;
  if (target.empty()) return;
  std::string text = simple.document;
  if (simple.expands) text = variables_.word(shell_parts(text, true, file_, 1), 1);
  out_.files[target] = std::move(text);
}

bool Follower::inner_script(const Simple& simple, std::int64_t line) {
  std::string text;
  std::vector<ShellWord> arguments;  // behind the text: its name, then "$@"
  for (std::size_t i = 0; i < simple.words.size() && text.empty(); ++i) {
    const std::string& word = simple.words[i].text;
    const std::string program = word.substr(word.rfind('/') + 1);
    if (i == 0 && word == "eval")
      for (std::size_t k = 1; k < simple.words.size(); ++k) text += simple.words[k].text + " ";
    if (program != "bash" && program != "sh") continue;
    for (std::size_t k = i + 1; k + 1 < simple.words.size() && text.empty(); ++k) {
      const std::string& option = simple.words[k].text;
      if (!option.starts_with('-')) break;
      if (!option.ends_with('c') || option.starts_with("--")) continue;
      text = simple.words[k + 1].text;
      const std::size_t rest = std::min(k + 3, simple.words.size());
      arguments.assign(simple.words.begin() + static_cast<std::ptrdiff_t>(rest),
                       simple.words.end());
      // What starts it counts nodes and tasks.
      ShellCommand starter{simple.words, true};
      starter.words.resize(i);
      if (!starter.words.empty()) out_.commands.push_back(std::move(starter));
    }
  }
  if (text.empty() || depth_ >= deepest_scripts) return false;
  for (const char* all : {"@", "*"}) variables_.set(all, arguments, true);
  follow_shell(shell_tokens(text, file_, line), file_, variables_, out_, depth_ + 1);
  for (const char* all : {"@", "*"}) variables_.set(all, {}, true);
  return true;
}

}  // namespace

void follow_shell(const std::vector<ShellToken>& tokens, const std::string& file,
                  ShellVariables& variables, ShellScript& out, int depth) {
  Follower(tokens, file, variables, out, depth).all();
}

}  // namespace orrery
