// SPDX-License-Identifier: Apache-2.0
// Knows how each house rule is checked, with scanners just good enough for this code's style.
#include "tests/base/tidy.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <set>

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr int most_file_lines = 500, most_function_lines = 70, most_columns = 100;

// The first line of every file of code; scripts have it after the line that names their shell.
constexpr std::string_view licence_line = " SPDX-License-Identifier: Apache-2.0";

bool is_header(std::string_view path) { return path.ends_with(".h"); }
// Characters of UTF-8 text.
std::ptrdiff_t columns(std::string_view line) {
  return std::count_if(line.begin(), line.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

// What an opening brace at namespace or class level begins, from the text before it.
enum class Block { scope, initialiser, function };

Block block_after(const std::string& head) {
  static const std::regex scope(R"(^\s*(inline\s+)?namespace\b|^\s*extern\s+$)");
  static const std::regex type(R"(\b(class|struct|union|enum)\b)");
  if (std::regex_search(head, scope)) return Block::scope;
  if (head.find(')') != std::string::npos) return Block::function;
  if (head.find('=') != std::string::npos) return Block::initialiser;
  return std::regex_search(head, type) ? Block::scope : Block::function;
}

// Bodies of functions that stand in namespaces and classes. A head starts after the last ';', '}'
// or '{' of its level, a body ends with its brace.
void check_functions(const std::string& path, const std::string& code, Complaints& complaints) {
  std::size_t head = 0;
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code[i] == ';' || code[i] == '}') head = i + 1;
    if (code[i] == '#' && (i == 0 || code[i - 1] == '\n'))  // a directive is no part of a head
      while (i + 1 < code.size() && (code[i + 1] != '\n' || code[i] == '\\')) head = ++i + 1;
    if (code[i] != '{') continue;
    const std::string head_text = code.substr(head, i - head);
    const Block block = block_after(head_text);
    if (block == Block::scope) {
      head = i + 1;
      continue;
    }
    int depth = 1;
    std::size_t end = i + 1;
    for (; end < code.size() && depth > 0; ++end)
      depth += code[end] == '{' ? 1 : code[end] == '}' ? -1 : 0;
    const std::size_t begin = std::min(code.find_first_not_of(" \t\n", head), i);
    const std::size_t length = line_at(code, end - 1) - line_at(code, begin) + 1;
    if (block == Block::function && length > most_function_lines)
      complaints.push_back(
          complaint(path, line_at(code, begin), fmt::format("a function of {} lines", length)));
    i = end - 1;
    head = end;
  }
}

// Names of variables that the code declares with an unordered type.
std::set<std::string> unordered_names(const std::string& code) {
  static const std::regex declaration(R"(std::unordered_\w+\s*<)");
  static const std::regex name(R"(^[\s&*]*(\w+))");
  std::set<std::string> names;
  for (auto match = std::sregex_iterator(code.begin(), code.end(), declaration);
       match != std::sregex_iterator(); ++match) {
    auto end = static_cast<std::size_t>(match->position() + match->length());
    for (int depth = 1; end < code.size() && depth > 0; ++end)
      depth += code[end] == '<' ? 1 : code[end] == '>' ? -1 : 0;
    std::smatch found;
    if (std::regex_search(code.begin() + static_cast<std::ptrdiff_t>(end), code.end(), found, name))
      names.insert(found[1].str());
  }
  return names;
}

void append(Complaints& all, Complaints more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// Layers of which the order of things reaches an answer.
bool is_on_the_way_out(std::string_view path) {
  constexpr std::string_view folders[] = {"sim/outcome/",  "sim/launch/", "sim/explain/",
                                          "sim/advise/",   "sim/plan/",   "sim/validate/",
                                          "sim/question/", "sim/paper/",  "sim/app/"};
  return std::any_of(std::begin(folders), std::end(folders),
                     [path](std::string_view folder) { return path.starts_with(folder); });
}

}  // namespace

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::vector<Include> includes_of(std::string_view text) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*"([^"]*)")re");
  std::vector<Include> includes;
  const std::vector<std::string_view> lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::match_results<std::string_view::const_iterator> match;
    if (std::regex_search(lines[i].begin(), lines[i].end(), match, pattern))
      includes.push_back({i + 1, match[1].str()});
  }
  return includes;
}

bool is_code(std::string_view path) {
  return is_header(path) || path.ends_with(".cpp") || path.ends_with(".cxx");
}

std::string complaint(std::string_view path, std::size_t line, std::string_view what) {
  return fmt::format("{}:{}: {}", path, line, what);
}

std::size_t line_at(std::string_view text, std::size_t offset) {
  return static_cast<std::size_t>(
             std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n')) +
         1;
}

SourceTree read_source_tree(const fs::path& root) {
  static const std::set<std::string> kinds = {".h",  ".cpp", ".cxx", ".json",
                                              ".md", ".txt", ".cu",  ".py"};
  SourceTree tree;
  for (const char* folder :
       {"sim", "hw_models", "topologies", "workloads", "tests", "validation", "notebooks"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file() || !kinds.contains(entry.path().extension().string())) continue;
      std::ifstream stream(entry.path(), std::ios::binary);
      tree[entry.path().lexically_relative(root).generic_string()] = {
          std::istreambuf_iterator<char>(stream), {}};
    }
  }
  return tree;
}

std::string code_only(std::string_view text) {
  std::string code(text);
  const auto blank = [&code](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < std::min(end, code.size()); ++i)
      if (code[i] != '\n') code[i] = ' ';
  };
  const auto after = [text](std::string_view what, std::size_t from) {
    const std::size_t found = text.find(what, from);
    return found == std::string_view::npos ? text.size() : found + what.size();
  };
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    if (text.substr(i, 2) == "//") {
      end = after("\n", i) - 1;
      blank(i, std::max(end, i + 1));
    } else if (text.substr(i, 2) == "/*") {
      end = after("*/", i + 2);
      blank(i, end);
    } else if (text.substr(i, 2) == "R\"") {
      const std::size_t open = std::min(text.find('(', i), text.size() - 1);
      end = after(fmt::format("){}\"", text.substr(i + 2, open - i - 2)), open);
      blank(i, end);
    } else if (text[i] == '"' ||
               (text[i] == '\'' &&
                (i == 0 || !std::isalnum(static_cast<unsigned char>(text[i - 1]))))) {
      while (end < text.size() && text[end] != text[i] && text[end] != '\n')
        end += text[end] == '\\' ? 2 : 1;
      blank(i + 1, end);
      ++end;
    }
    i = std::max(end, i + 1);
  }
  return code;
}

Complaints check_includes(const SourceTree& tree) {
  Complaints complaints;
  for (const auto& [path, text] : tree) {
    if (!is_code(path)) continue;
    for (const Include& include : includes_of(text))
      if (!tree.contains(include.file))
        complaints.push_back(
            complaint(path, include.line, fmt::format("no file {} from the root", include.file)));
  }
  return complaints;
}

Complaints check_orphans(const SourceTree& tree) {
  std::set<std::string> included;
  for (const auto& [path, text] : tree)
    for (const Include& include : includes_of(text)) {
      // A module that only its own .cpp includes is used by nobody.
      const std::string own = include.file.substr(0, include.file.rfind('.')) + ".cpp";
      if (path != own && path != include.file) included.insert(include.file);
    }
  Complaints complaints;
  for (const auto& [path, text] : tree)
    if (is_header(path) && !included.contains(path))
      complaints.push_back(complaint(path, 1, "a header that nothing includes"));
  return complaints;
}

Complaints check_sizes(const SourceTree& tree) {
  Complaints complaints;
  for (const auto& [path, text] : tree) {
    if (!is_code(path)) continue;
    const std::vector<std::string_view> lines = lines_of(text);
    if (lines.size() > most_file_lines)
      complaints.push_back(complaint(path, 1, fmt::format("a file of {} lines", lines.size())));
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (columns(lines[i]) > most_columns)
        complaints.push_back(
            complaint(path, i + 1, fmt::format("a line of {} columns", columns(lines[i]))));
    check_functions(path, code_only(text), complaints);
  }
  return complaints;
}

Complaints check_openings(const SourceTree& tree) {
  static const std::regex sentence(R"(^// [A-Z].{10,})");
  Complaints complaints;
  for (const auto& [path, text] : tree) {
    const bool script = path.ends_with(".py") || path.ends_with(".cu");
    if (!is_code(path) && !script) continue;
    const std::vector<std::string_view> lines = lines_of(text);
    const std::size_t first = !lines.empty() && lines.front().starts_with("#!") ? 1 : 0;
    if (lines.size() <= first || !lines[first].ends_with(licence_line))
      complaints.push_back(complaint(path, first + 1, "does not name its licence"));
    if (script) continue;
    std::string opening;
    for (const std::string_view line : lines) {
      if (line.ends_with(licence_line)) continue;
      if (!line.starts_with("//")) break;
      opening += line;
    }
    if (!std::regex_search(opening, sentence) || opening.find('.') == std::string::npos)
      complaints.push_back(
          complaint(path, 1, "does not open with a sentence saying what it knows"));
    if (is_header(path) && text.find("#pragma once\n") == std::string::npos)
      complaints.push_back(complaint(path, 1, "has no #pragma once"));
  }
  return complaints;
}

Complaints check_backends(const SourceTree& tree) {
  static const std::regex backend(R"(\btbb::|#\s*include\s*<(oneapi/)?tbb/)");
  Complaints complaints;
  for (const auto& [path, text] : tree) {
    if (!is_code(path) || path == "sim/base/parallel.cpp") continue;
    const std::string code = code_only(text);
    std::smatch match;
    if (std::regex_search(code, match, backend))
      complaints.push_back(complaint(path,
                                     line_at(code, static_cast<std::size_t>(match.position())),
                                     "names oneTBB, which sim/base/parallel.cpp alone may"));
  }
  return complaints;
}

Complaints check_iteration(const SourceTree& tree) {
  static const std::regex loop(R"(\bfor\s*\([^;{}]*[^:;{}]:(?!:)\s*([\w.>-]*?)(\w+)\s*\))");
  Complaints complaints;
  for (const auto& [path, text] : tree) {
    if (!is_code(path) || !is_on_the_way_out(path)) continue;
    const std::string code = code_only(text);
    std::set<std::string> names = unordered_names(code);
    // Members are declared in the module's header.
    const auto header = tree.find(path.substr(0, path.rfind('.')) + ".h");
    if (header != tree.end()) names.merge(unordered_names(code_only(header->second)));
    for (auto match = std::sregex_iterator(code.begin(), code.end(), loop);
         match != std::sregex_iterator(); ++match)
      if (names.contains((*match)[2].str()))
        complaints.push_back(
            complaint(path, line_at(code, static_cast<std::size_t>(match->position())),
                      fmt::format("iterates over the unordered {}", (*match)[2].str())));
  }
  return complaints;
}

Complaints check_paths(const SourceTree& tree) {
  // A web address may have such a folder; a path starts after a quote, a blank or at the line.
  static const std::regex path_of_a_machine(R"((^|[^\w./:-])/(work|tmp|home|root)/)");
  Complaints complaints;
  for (const auto& [path, text] : tree) {
    if (path.starts_with("tests/")) continue;
    const std::vector<std::string_view> lines = lines_of(text);
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (std::regex_search(lines[i].begin(), lines[i].end(), path_of_a_machine))
        complaints.push_back(complaint(path, i + 1, "a path of somebody's machine"));
  }
  return complaints;
}

Complaints check_everything(const SourceTree& tree) {
  Complaints all;
  append(all, check_layers(tree));
  append(all, check_rooms(tree));
  append(all, check_folders(tree));
  append(all, check_includes(tree));
  append(all, check_orphans(tree));
  append(all, check_sizes(tree));
  append(all, check_types(tree));
  append(all, check_definitions(tree));
  append(all, check_openings(tree));
  append(all, check_backends(tree));
  append(all, check_iteration(tree));
  append(all, check_paths(tree));
  append(all, check_names(tree));
  append(all, check_claims(tree));
  return all;
}

}  // namespace orrery
