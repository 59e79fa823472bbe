// SPDX-License-Identifier: Apache-2.0
// Finds entries by other names than their own.
#include "hw_models/catalog_names.h"

#include <algorithm>
#include <set>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/base/sorting.h"

namespace orrery {
namespace {

// An entry as people may call it.
struct Called {
  std::string name;
  std::vector<std::string> aliases;  // plain
  std::set<std::string> words;       // of all its names and of its title
};

std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : plain_name(text) + "-") {
    const bool inside = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
    if (inside) {
      word += c;
    } else if (!word.empty()) {
      words.insert(word);
      word.clear();
    }
  }
  return words;
}

// Entries that cannot be read have their own name alone: whoever loads them says what is wrong.
std::vector<std::string> texts_of(const JsonValue& entry, const char* key) {
  std::vector<std::string> texts;
  if (!entry.is_object() || !entry.has(key)) return texts;
  const JsonValue value = entry.at(key);
  if (value.is_string()) return {value.text()};
  if (!value.is_array()) return texts;
  for (const JsonValue& item : value.items()) {
    if (item.is_string()) texts.push_back(item.text());
    if (item.is_object() && item.has("name")) texts.push_back(item.at("name").text());
  }
  return texts;
}

Called called(const std::string& folder, const std::string& name) {
  Called all{.name = name, .words = words_of(name)};
  try {
    const JsonValue entry = JsonValue::load(data_root() / folder / (name + ".json"));
    for (const std::string& alias : texts_of(entry, "aliases")) {
      all.aliases.push_back(plain_name(alias));
      all.words.merge(words_of(alias));
    }
    for (const char* key : {"title", "accelerator"})
      for (const std::string& text : texts_of(entry, key)) all.words.merge(words_of(text));
  } catch (const Error&) {
    all.aliases.clear();
  }
  return all;
}

std::vector<Called> all_called(const std::string& folder) {
  std::vector<Called> all;
  for (const std::string& name : catalog_names(folder)) all.push_back(called(folder, name));
  // Those with most names first: they are what people mean.
  sort_stably(all,
              [](const Called& a, const Called& b) { return a.aliases.size() > b.aliases.size(); });
  return all;
}

// Letters of the words that both share.
std::size_t shared_letters(const std::set<std::string>& wanted, const Called& entry) {
  std::size_t letters = 0;
  for (const std::string& word : wanted)
    if (word.size() > 1 && entry.words.contains(word)) letters += word.size();
  return letters;
}

}  // namespace

std::string plain_name(const std::string& name) {
  std::string plain = name;
  for (char& c : plain) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == ' ' || c == '_') c = '-';
  }
  return plain;
}

std::vector<std::string> driver_names_of(const std::string& accelerator) {
  const auto file = data_root() / "hw_models/catalog/accelerators" / (accelerator + ".json");
  return texts_of(JsonValue::load(file), "driver_names");
}

std::vector<std::string> aliases_of(const std::string& folder, const std::string& entry) {
  return texts_of(JsonValue::load(data_root() / folder / (entry + ".json")), "aliases");
}

std::optional<std::string> known_as(const std::string& folder, const std::string& name) {
  constexpr std::size_t longest = 200;
  if (name.empty() || name.size() > longest) return std::nullopt;
  const std::string plain = plain_name(name);
  for (const std::string& entry : catalog_names(folder))
    if (plain_name(entry) == plain) return entry;
  for (const Called& entry : all_called(folder))
    if (std::find(entry.aliases.begin(), entry.aliases.end(), plain) != entry.aliases.end())
      return entry.name;
  return std::nullopt;
}

std::string meant_name(const std::string& folder, const std::string& name) {
  const std::string plain = plain_name(name);
  const std::vector<Called> all = all_called(folder);
  std::vector<std::string> texts, owners;
  for (const Called& entry : all) {
    texts.push_back(entry.name);
    owners.push_back(entry.name);
    for (const std::string& alias : entry.aliases) {
      texts.push_back(alias);
      owners.push_back(entry.name);
    }
  }
  if (plain.size() >= 3)
    for (std::size_t i = 0; i < texts.size(); ++i)
      if (texts[i].starts_with(plain)) return owners[i];
  const std::string near = nearest_name(plain, texts);
  const auto at = std::find(texts.begin(), texts.end(), near);
  if (!near.empty()) return owners[static_cast<std::size_t>(at - texts.begin())];
  const std::set<std::string> wanted = words_of(plain);
  std::size_t most = 2;  // two letters in common mean nothing
  std::string best;
  for (const Called& entry : all)
    if (const std::size_t shared = shared_letters(wanted, entry); shared > most) {
      most = shared;
      best = entry.name;
    }
  return best;
}

}  // namespace orrery
