// SPDX-License-Identifier: Apache-2.0
// Finds claims of speed in headers that name no bench which measures them.
#include <fmt/format.h>

#include <regex>

#include "tests/base/tidy.h"

namespace orrery {
namespace {

// The bench that a comment names, "(bench_parts: memory)": whether it is there.
bool is_bench(const SourceTree& tree, const std::string& program, const std::string& name) {
  const auto source = tree.find(fmt::format("tests/bench/{}.cpp", program));
  return source != tree.end() &&
         (source->second.find(fmt::format("BENCHMARK({})", name)) != std::string::npos ||
          source->second.find(fmt::format("BENCHMARK_CAPTURE({},", name)) != std::string::npos);
}

void check_comment(const SourceTree& tree, const std::string& path, std::size_t line,
                   const std::string& text, Complaints& complaints) {
  static const std::regex claim(
      R"(\b([Nn]ano|[Mm]icro|[Mm]illi)seconds?\b(?!')|\b[Uu]nder [0-9.]+ (ns|ms)\b)");
  static const std::regex bench(R"(\((bench_\w+): (\w+)\))");
  std::smatch found;
  if (std::regex_search(text, found, bench)) {
    if (!is_bench(tree, found[1], found[2]))
      complaints.push_back(complaint(
          path, line,
          fmt::format("no bench {} in tests/bench/{}.cpp", found[2].str(), found[1].str())));
  } else if (std::regex_search(text, claim)) {
    complaints.push_back(complaint(path, line, "a claim of speed that names no bench"));
  }
}

}  // namespace

Complaints check_claims(const SourceTree& tree) {
  Complaints complaints;
  for (const auto& [path, text] : tree) {
    if (!path.ends_with(".h") || path.starts_with("tests/")) continue;
    std::string comment;
    std::size_t begin = 0, line = 0;
    for (std::string_view one : lines_of(text)) {
      ++line;
      one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
      if (one.starts_with("//")) {
        if (comment.empty()) begin = line;
        comment += one.substr(2);
        continue;
      }
      if (!comment.empty()) check_comment(tree, path, begin, comment, complaints);
      comment.clear();
    }
  }
  return complaints;
}

}  // namespace orrery
