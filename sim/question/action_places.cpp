// SPDX-License-Identifier: Apache-2.0
// Finds names of settings in the sentences of actions.
#include "sim/question/action_places.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

namespace orrery {
namespace {

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

// "--num-workers" and "num_workers" are one setting; of "zero_optimization.overlap_comm" the last
// part is what people call it.
std::string plain(std::string name) {
  name.erase(0, name.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}
std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// Names of settings behind "Here:": words that no sentence has otherwise, or that stand in quotes.
std::set<std::string> names_in(const std::string& sentence) {
  std::set<std::string> names;
  const std::size_t here = sentence.find(action_in_words);
  for (std::size_t at = std::min(here, sentence.size()); at < sentence.size();) {
    if (!is_of_name(sentence[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < sentence.size() && is_of_name(sentence[end])) ++end;
    std::string word = sentence.substr(at, end - at);
    const bool quoted = at > 0 && sentence[at - 1] == '"';
    at = end;
    while (word.ends_with('.')) word.pop_back();
    if (quoted || word.find_first_of("_-.") != std::string::npos) names.insert(plain(word));
  }
  return names;
}

}  // namespace

void add_places(std::vector<Action>& actions, const GivenRun& run) {
  for (Action& action : actions) {
    const std::set<std::string> names = names_in(action.sentence);
    for (const auto* items : {&run.understood, &run.without_effect, &run.not_understood})
      for (const GivenItem& item : *items) {
        const std::string name = plain(item.name);
        if (item.place.empty() || !(names.contains(name) || names.contains(last_part(name))))
          continue;
        action.now.push_back({item.place, item.name, item.value});
      }
  }
}

}  // namespace orrery
