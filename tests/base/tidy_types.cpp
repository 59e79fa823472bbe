// SPDX-License-Identifier: Apache-2.0
// Finds types that hold too much: data members, and lines of code between their braces.
#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>

#include "tests/base/tidy.h"

namespace orrery {
namespace {

constexpr std::size_t most_members = 25, most_struct_lines = 40, most_class_lines = 120;

// Types that were larger when the rule came, each with what it had. It may shrink, not grow.
struct Exception {
  std::string_view file, type;
  std::size_t members = 0, lines = 0;  // 0: within the limit
};
constexpr Exception exceptions[] = {
    {"hw_models/calibration.h", "Curve", 45, 44},
    {"hw_models/device.h", "Device", 30, 0},
    {"sim/app/topology/picture.cpp", "NetworkPicture", 0, 288},
    {"sim/base/json/quick.cpp", "QuickReader", 0, 138},
    {"sim/calibrate/fit/collective_fit.cpp", "KindFit", 0, 140},
    {"sim/calibrate/fit/software_fit.cpp", "SoftwareFitter", 0, 240},
    {"sim/launch/megatron_flags.h", "MegatronFlags", 0, 133},
    {"sim/outcome/money/inputs.h", "BillPass", 0, 42},
    {"sim/outcome/months/goodput.h", "GoodputCase", 30, 0},
    {"sim/outcome/months/simulation.cpp", "Trial", 0, 166},
    {"sim/plan/count.cpp", "CountSearch", 0, 170},
    {"sim/plan/plan.cpp", "Planner", 0, 160},
    {"sim/plan/plan.h", "PlanPoint", 30, 0},
    {"topologies/graph.cpp", "Builder", 0, 212},
    {"topologies/routing/routing.h", "Router", 37, 177},
    {"workloads/layout/layout.h", "Layout", 28, 64},
};

// A type and what stands between its braces, without comments and texts.
struct Type {
  std::string name;
  bool is_class = false;
  std::size_t line = 0;
  std::string body;
};

// Past the brace that closes the one at `open`.
std::size_t after_braces(std::string_view code, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < code.size(); ++i) {
    depth += code[i] == '{' ? 1 : code[i] == '}' ? -1 : 0;
    if (depth == 0) return i + 1;
  }
  return code.size();
}

std::vector<Type> types_of(const std::string& code) {
  static const std::regex head(
      R"((enum\s+)?\b(struct|class|union)\s+(\w+)\s*(<[^;{}]*>\s*)?(final\s*)?(:[^;{}()]*)?\{)");
  std::vector<Type> types;
  for (auto match = std::sregex_iterator(code.begin(), code.end(), head);
       match != std::sregex_iterator(); ++match) {
    if ((*match)[1].matched) continue;
    const auto begin = static_cast<std::size_t>(match->position());
    const std::size_t open = begin + static_cast<std::size_t>(match->length()) - 1;
    const std::size_t end = after_braces(code, open);
    types.push_back({.name = (*match)[3].str(),
                     .is_class = (*match)[2].str() == "class",
                     .line = line_at(code, begin),
                     .body = code.substr(open + 1, end - open - 2)});
  }
  return types;
}

// Lines with code on them: comments and blank lines cost a reader nothing.
std::size_t lines_with_code(std::string_view body) {
  const std::vector<std::string_view> lines = lines_of(body);
  return static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(), [](std::string_view line) {
        return line.find_first_not_of(" \t") != std::string_view::npos;
      }));
}

// Without the arguments of templates: '<' right behind a name, as clang-format leaves them.
std::string without_template_arguments(const std::string& text) {
  std::string kept;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool opens =
        text[i] == '<' && i > 0 &&
        (std::isalnum(static_cast<unsigned char>(text[i - 1])) || text[i - 1] == '_');
    if (!opens) {
      kept += text[i];
      continue;
    }
    for (int depth = 0; i < text.size(); ++i) {
      depth += text[i] == '<' ? 1 : text[i] == '>' && text[i - 1] != '-' ? -1 : 0;
      if (depth == 0) break;
    }
  }
  return kept;
}

// Data members that one statement of a body declares. Braces in it are empty.
std::size_t members_in(const std::string& statement) {
  static const std::regex label(R"(\b(public|private|protected)\s*:(?!:))");
  static const std::regex none(R"(^\s*(using|typedef|friend|static|template|enum)\b|\boperator\b)"
                               R"(|^\s*(struct|class)\s+\w+\s*$)");
  std::string text = std::regex_replace(without_template_arguments(statement), label, " ");
  if (text.find_first_not_of(" \t\n") == std::string::npos || std::regex_search(text, none))
    return 0;
  if (text.substr(0, text.find('=')).find('(') != std::string::npos) return 0;  // a function
  std::size_t members = 1;
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) ++members;
  }
  return members;
}

// Statements of a body end with ';', and functions and types with their braces. Members of types
// inside of it are theirs.
std::size_t members_of(const std::string& body) {
  static const std::regex type(R"(^\s*(template\s*|)(class|struct|union|enum)\b[^=]*$)");
  static const std::regex label(R"(\b(public|private|protected)\s*:(?!:))");
  std::size_t members = 0;
  std::string statement;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] == ';') {
      members += members_in(statement);
      statement.clear();
    } else if (body[i] == '{') {
      const std::string head =
          std::regex_replace(without_template_arguments(statement), label, " ");
      const bool is_function = head.substr(0, head.find('=')).find('(') != std::string::npos;
      i = after_braces(body, i) - 1;
      if (is_function || std::regex_search(head, type)) {
        statement.clear();
        if (!is_function) statement = "struct inner ";  // what follows may be a member of that type
      } else {
        statement += "{}";
      }
    } else {
      statement += body[i];
    }
  }
  return members;
}

const Exception* exception_of(std::string_view path, std::string_view type) {
  const auto found =
      std::find_if(std::begin(exceptions), std::end(exceptions),
                   [&](const Exception& e) { return e.file == path && e.type == type; });
  return found == std::end(exceptions) ? nullptr : found;
}

}  // namespace

Complaints check_types(const SourceTree& tree) {
  Complaints complaints;
  std::set<std::string_view> gone;  // types of exceptions, of files that are there
  for (const Exception& e : exceptions)
    if (tree.contains(std::string(e.file))) gone.insert(e.type);
  for (const auto& file : tree) {
    const std::string& path = file.first;
    if (!is_code(path) || path.starts_with("tests/")) continue;
    for (const Type& type : types_of(code_only(file.second))) {
      const Exception* known = exception_of(path, type.name);
      if (known != nullptr) gone.erase(known->type);
      const auto check = [&](std::size_t number, std::size_t most, std::size_t Exception::*had,
                             const char* what) {
        const std::size_t before = known == nullptr ? 0 : known->*had;
        if (number > std::max(most, before))
          complaints.push_back(
              complaint(path, type.line, fmt::format("{} has {} {}", type.name, number, what)));
        if (number <= most && before > 0)
          complaints.push_back(complaint(
              path, type.line, fmt::format("{} needs no exception for its {}", type.name, what)));
      };
      check(members_of(type.body), most_members, &Exception::members, "data members");
      check(lines_with_code(type.body), type.is_class ? most_class_lines : most_struct_lines,
            &Exception::lines, "lines");
    }
  }
  for (const Exception& e : exceptions)
    if (gone.contains(e.type))
      complaints.push_back(complaint(e.file, 1, fmt::format("has no {}, an exception", e.type)));
  return complaints;
}

}  // namespace orrery
