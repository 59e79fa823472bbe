// SPDX-License-Identifier: Apache-2.0
// Tests that what pages name exists: files, functions, test cases, gates, keys and pictures.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <regex>
#include <set>

#include "sim/base/json/tree.h"
#include "tests/app/pages.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// On one line, so that a name may go over two of the page.
std::string joined_prose(const std::string& text) {
  std::string all;
  for (const std::string& line : test::prose_of(text)) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos) all += line.substr(begin) + ' ';
  }
  return all;
}

// All matches of `pattern`, by their first groups.
std::vector<std::vector<std::string>> matches(const std::string& text, const std::string& pattern) {
  const std::regex form(pattern);
  std::vector<std::vector<std::string>> found;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), form); at != std::sregex_iterator();
       ++at) {
    std::vector<std::string> groups;
    for (std::size_t g = 1; g < at->size(); ++g) groups.push_back((*at)[g].str());
    found.push_back(groups);
  }
  return found;
}

const std::string& file_text(const std::string& path) {
  static std::map<std::string, std::string> known;
  const auto at = known.find(path);
  if (at != known.end()) return at->second;
  return known[path] = test::read_file(test::source_folder() / path);
}

// A name of a test case may go over several literals.
std::string with_joined_literals(const std::string& code) {
  static const std::regex seam("\"\\s*\n\\s*\"");
  return std::regex_replace(code, seam, "");
}

// `sim/engine/step/tail.cpp:tail`
int check_functions(const std::string& prose) {
  const auto named = matches(prose, "`([\\w/.-]+/[\\w.-]+\\.(?:cpp|h)):(\\w+)`");
  for (const auto& at : named) {
    INFO("`" << at[0] << ":" << at[1] << "`");
    CHECK(fs::exists(test::source_folder() / at[0]));
    CHECK(std::regex_search(file_text(at[0]), std::regex("\\b" + at[1] + "\\b")));
  }
  return static_cast<int>(named.size());
}

// `tests/engine/step_test.cpp` "law 13: the labels of every stage sum to the step"
int check_cases(const std::string& prose) {
  const auto named = matches(prose, "`(tests/[\\w/.-]+\\.cpp)` \"([^\"]+)\"");
  for (const auto& at : named) {
    INFO("`" << at[0] << "` \"" << at[1] << "\"");
    CHECK(fs::exists(test::source_folder() / at[0]));
    CHECK(with_joined_literals(file_text(at[0])).find("\"" + at[1] + "\"") != std::string::npos);
  }
  return static_cast<int>(named.size());
}

// gate `all`: `speed_median`
int check_gates(const std::string& prose) {
  static const SortedJson file = SortedJson::parse(file_text("validation/gates.json"));
  std::set<std::pair<std::string, std::string>> gates;
  for (const auto& gate : file.at("gates"))
    gates.emplace(gate.at("group").get<std::string>(), gate.at("figure").get<std::string>());
  const auto named = matches(prose, "gate `([^`]+)`: `([^`]+)`");
  for (const auto& at : named) {
    INFO("gate `" << at[0] << "`: `" << at[1] << "`");
    CHECK(gates.contains({at[0], at[1]}));
  }
  return static_cast<int>(named.size());
}

// stack `overlap_cost`: a key of a file of the catalogues. Only the last part of a path is looked
// for.
const std::map<std::string, std::vector<std::string>> key_folders = {
    {"stack", {"workloads/catalog/stacks"}},
    {"model", {"workloads/catalog/models"}},
    {"cluster", {"sim/engine/catalog/clusters"}},
    {"fabric", {"topologies/catalog"}},
    {"accelerator", {"hw_models/catalog/accelerators"}},
    {"host", {"hw_models/catalog/hosts"}},
    {"calibration", {"hw_models/calibration"}},
    {"collectives", {"hw_models/calibration/collectives", "hw_models/calibration"}},
    {"reliability", {"hw_models/catalog/reliability"}},
    {"economics", {"hw_models/catalog/economics"}},
    {"site", {"hw_models/catalog/sites"}},
    {"model error", {"validation"}},
    {"RL program", {"workloads/catalog/rl_programs"}},
};

const std::string& catalogue_text(const std::string& kind) {
  static std::map<std::string, std::string> known;
  std::string& text = known[kind];
  if (!text.empty()) return text;
  for (const std::string& folder : key_folders.at(kind))
    for (const auto& entry : fs::recursive_directory_iterator(test::source_folder() / folder))
      if (entry.path().extension() == ".json") text += test::read_file(entry.path());
  return text;
}

int check_keys(const std::string& prose) {
  int keys = 0;
  for (const auto& [kind, folders] : key_folders) {
    for (const auto& at : matches(prose, "\\b" + kind + " `([\\w.]+)`")) {
      const std::string last = at[0].substr(at[0].rfind('.') + 1);
      INFO(kind << " `" << at[0] << "`");
      CHECK(catalogue_text(kind).find("\"" + last + "\"") != std::string::npos);
      ++keys;
    }
  }
  return keys;
}

// [text](path) and <img src="path">, from the page's own folder.
std::vector<fs::path> linked(const fs::path& page, const std::string& prose) {
  std::vector<fs::path> files;
  for (const std::string pattern : {"\\]\\(([^)#\\s]+)(?:#[^)]*)?\\)", "src=\"([^\"]+)\""})
    for (const auto& at : matches(prose, pattern))
      if (at[0].find("://") == std::string::npos) files.push_back(page.parent_path() / at[0]);
  return files;
}

// The text with its attributes empty: regular expressions recurse over each letter of a long path.
std::string without_values(std::string text) {
  for (std::size_t at = text.find("=\""); at != std::string::npos; at = text.find("=\"", at + 2)) {
    const std::size_t end = std::min(text.size(), text.find_first_of("\"<", at + 2));
    text.erase(at + 2, end - at - 2);
  }
  return text;
}

// Elements close in the order in which they open, and there is one at the top.
bool is_well_formed(const std::string& svg) {
  const std::string text = without_values(svg);
  static const std::regex tag("<(/?)([A-Za-z][\\w:-]*)((?:\\s+[\\w:-]+=\"[^\"<]*\")*)\\s*(/?)>");
  std::vector<std::string> open;
  int tops = 0;
  std::size_t seen = 0;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), tag); at != std::sregex_iterator();
       ++at, ++seen) {
    const bool closes = (*at)[1].length() > 0, single = (*at)[4].length() > 0;
    if (closes) {
      if (open.empty() || open.back() != (*at)[2].str()) return false;
      open.pop_back();
      continue;
    }
    tops += open.empty() ? 1 : 0;
    if (!single) open.push_back((*at)[2].str());
  }
  const auto brackets = static_cast<std::size_t>(std::count(text.begin(), text.end(), '<'));
  const bool declared = text.starts_with("<?xml");
  std::size_t comments = 0;
  for (std::size_t at = text.find("<!--"); at != std::string::npos; at = text.find("<!--", at + 1))
    ++comments;
  return open.empty() && tops == 1 && brackets == seen + comments + (declared ? 1 : 0);
}

std::vector<fs::path> physics_pages() {
  std::vector<fs::path> found;
  for (const fs::path& page : test::guide_pages())
    if (page.parent_path().filename() == "physics") found.push_back(page);
  return found;
}

}  // namespace

TEST_CASE("what a page of the physics names exists") {
  const std::set<std::string> lists = {"README.md", "laws.md"};
  REQUIRE(physics_pages().size() > 10);
  for (const fs::path& page : physics_pages()) {
    INFO(page);
    const std::string text = test::read_file(page), prose = joined_prose(text);
    const int functions = check_functions(prose), cases = check_cases(prose);
    const int gates = check_gates(prose), keys = check_keys(prose);
    CHECK(functions + cases > 0);
    if (lists.contains(page.filename().string())) continue;
    CHECK(functions >= 2);
    CHECK(cases >= 1);
    CHECK(keys >= 1);
    CHECK(prose.find("https://") != std::string::npos);
    CHECK((gates >= 1 || prose.find("No gate") != std::string::npos));
  }
}

TEST_CASE("files, functions and test cases that pages name exist") {
  const std::string folders = "(?:sim|hw_models|topologies|workloads|tests|validation|docs)";
  for (const fs::path& page : test::guide_pages()) {
    INFO(page);
    const std::string prose = joined_prose(test::read_file(page));
    for (const auto& at : matches(prose, "`(" + folders + "/[\\w/.-]+\\.\\w+)`")) {
      INFO(at[0]);
      CHECK(fs::exists(test::source_folder() / at[0]));
    }
    check_functions(prose);
    check_cases(prose);
  }
}

TEST_CASE("links of pages lead to files, and pictures are whole") {
  int pictures = 0;
  for (const fs::path& page : test::guide_pages()) {
    for (const fs::path& file : linked(page, joined_prose(test::read_file(page)))) {
      INFO(page << ": " << file);
      CHECK(fs::exists(file));
      if (file.extension() != ".svg") continue;
      ++pictures;
      CHECK(is_well_formed(test::read_file(file)));
      CHECK(fs::file_size(file) < 100'000);
    }
  }
  CHECK(pictures >= 6);
  CHECK(is_well_formed("<svg a=\"1\"><g/><!-- x --><text>t</text></svg>\n"));
  for (const char* broken :
       {"<svg><g></svg>", "<svg/><svg/>", "<svg a=1></svg>", "<svg>a < b</svg>", "<svg a=\"<\"/>"})
    CHECK_FALSE(is_well_formed(broken));
}

TEST_CASE("pages of the guide are lines that a reader takes in") {
  static const std::regex riddle("(^|[.:?!] )(- |\\* |#+ |\\d+\\. )?(Of|What) ");
  constexpr std::size_t longest = 120;
  for (const fs::path& page : test::guide_pages()) {
    int number = 0;
    std::string before;
    for (const std::string& line : test::prose_of(test::read_file(page))) {
      INFO(page.string() << ":" << ++number << ": " << line);
      const bool breaks = !line.starts_with("|") && !line.starts_with("<");
      CHECK((!breaks || line.find("](") != std::string::npos || line.size() <= longest));
      // A sentence that a line break cuts begins on an earlier line.
      const bool begins = before.empty() || before.ends_with(".") || line.starts_with("- ");
      std::smatch found;
      const bool riddles = std::regex_search(line, found, riddle);
      CHECK_FALSE((riddles && (begins || found.position() > 0)));
      before = line;
    }
  }
}

TEST_CASE("the front page is short") {
  const std::string text = test::read_file(test::source_folder() / "README.md");
  CHECK(test::lines(text) <= 130);
}

}  // namespace orrery
