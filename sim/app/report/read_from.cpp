// SPDX-License-Identifier: Apache-2.0
// Lists understood, defaulted and not understood lines of configurations.
#include "sim/app/report/read_from.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/base/text/words.h"
#include "sim/question/settings/given_file.h"

namespace orrery {
namespace {

constexpr std::size_t most_items = 8;  // of a list on a terminal

std::string as_written(const GivenItem& item) {
  std::string text = item.name;
  if (!item.value.empty() && item.value != "true") text += " " + item.value;
  return text;
}

std::string with_note(std::string text, const GivenItem& item) {
  if (!item.note.empty()) text += fmt::format(" ({})", item.note);
  return text;
}

void add_items(Document& document, const std::vector<GivenItem>& items, const char* label,
               std::string (*text)(const GivenItem&)) {
  if (items.empty()) return;
  document.label(label);
  const std::size_t shown = document.full() ? items.size() : std::min(most_items, items.size());
  for (std::size_t i = 0; i < shown; ++i) document.item(text(items[i]));
  if (shown < items.size())
    document.note(fmt::format("and {} more (--json has all)", items.size() - shown));
}

// What became of the lines: each setting once, with the lines behind it.
void add_understood(Document& document, const GivenRun& run) {
  std::map<std::string, std::string> values;
  std::vector<std::string> keys;
  for (const GivenItem& item : run.understood) {
    if (values.find(item.key) == values.end()) keys.push_back(item.key);
    if (!item.becomes.empty() || values.find(item.key) == values.end())
      values[item.key] = item.becomes;
  }
  std::vector<std::string> words;
  for (const std::string& key : keys)
    if (!values[key].empty()) words.push_back(fmt::format("{} {}", key, values[key]));
  if (words.empty()) return;
  document.paragraph(
      fmt::format("Understood, {} lines: {}.", run.understood.size(), joined(words, ", ")));
  if (!document.full()) return;
  for (const GivenItem& item : run.understood)
    document.item(with_note(fmt::format("{}: {}: {}{}", short_place(item.place), as_written(item),
                                        item.key, item.becomes.empty() ? "" : " " + item.becomes),
                            item));
}

void add_run(Document& document, const GivenRun& run, const std::string& what) {
  std::vector<std::string> files = {run.file};
  files.insert(files.end(), run.also.begin(), run.also.end());
  document.gap().heading(
      fmt::format("Read from {}{}: {}", joined(files, " and "), what, run.program));
  add_understood(document, run);
  add_items(
      document, run.defaulted, "Defaults, where the file says nothing:", [](const GivenItem& item) {
        return with_note(fmt::format("{} {}, by {}", item.key, item.becomes, item.name), item);
      });
  add_items(document, run.not_understood,
            "Not understood, and so not predicted:", [](const GivenItem& item) {
              return with_note(fmt::format("{}: {}", short_place(item.place), as_written(item)),
                               item);
            });
  if (run.not_understood.empty()) document.paragraph("Everything in it was understood.");
  if (!run.without_effect.empty())
    document.paragraph(
        fmt::format("{} more lines change nothing that is predicted.", run.without_effect.size()));
}

}  // namespace

std::string short_place(const std::string& place) { return place.substr(place.rfind('/') + 1); }

void add_read_from(Document& document, const JsonValue& settings) {
  if (const auto run = given_run_in(settings)) add_run(document, *run, "");
  const auto like = settings.find("like");
  if (!like || !like->is_object()) return;
  if (const auto run = given_run_in(*like)) add_run(document, *run, ", which runs now");
}

}  // namespace orrery
