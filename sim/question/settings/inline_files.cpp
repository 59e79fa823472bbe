// SPDX-License-Identifier: Apache-2.0
// Puts the contents of files in place of their names.
#include "sim/question/settings/inline_files.h"

#include <array>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <string_view>

#include "sim/question/settings/given_file.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// Keys of questions that may name a file, and keys of such files that may name another.
constexpr std::array<std::string_view, 10> question_keys = {
    "model", "cluster", "stack",       "like",      "fabric",
    "site",  "storage", "reliability", "economics", "failures"};
constexpr std::array<std::string_view, 7> entry_keys = {"based_on", "accelerator", "fabric", "host",
                                                        "model",    "stack",       "cluster"};

bool names_file(const SortedJson& value) {
  if (!value.is_string()) return false;
  const std::string text = value.get<std::string>();
  std::error_code ignored;
  if (text.empty() || text.front() == '{' || text.find(',') != std::string::npos) return false;
  return (text.find('/') != std::string::npos || text.ends_with(".json")) &&
         fs::exists(text, ignored);
}

// A model may be named by the folder of its config.json.
bool is_folder_of_model(const SortedJson& value) {
  if (!value.is_string()) return false;
  std::error_code ignored;
  return fs::exists(fs::path(value.get<std::string>()) / "config.json", ignored);
}

// What an entry without a name of its own is called: as its readers call it.
std::string name_of(const fs::path& file) {
  const std::string stem = file.stem().string();
  const std::string folder = file.parent_path().filename().string();
  return stem == "config" && !folder.empty() ? folder : stem;
}

// Replaces file names in one value; `replaced` counts them. Depth: files that name each other in a
// circle were refused before.
class Inliner {
 public:
  SortedJson value(const SortedJson& given, const fs::path& beside) {
    if (given.is_array()) {
      SortedJson list = SortedJson::array();
      for (const SortedJson& item : given) list.push_back(value(item, beside));
      return list;
    }
    if (given.is_object()) return entry(given, beside);
    if (!given.is_string()) return given;
    const fs::path name(given.get<std::string>());
    const fs::path file = name.is_absolute() || beside.empty() ? name : beside / name;
    // An entry is based on a file beside it; a stack on one as the shell would find it.
    fs::path found = names_file(file.string()) ? file : name;
    std::error_code ignored;
    if (fs::is_directory(found, ignored)) found /= "config.json";  // as models are read
    if (!names_file(given) && !(names_file(file.string()) && is_path(name))) return given;
    ++replaced_;
    SortedJson contents = JsonValue::load(found).raw();
    if (!contents.is_object()) return given;
    if (!contents.contains("name") && !is_settings(contents)) contents["name"] = name_of(found);
    return entry(contents, found.parent_path());
  }
  int replaced() const { return replaced_; }

 private:
  static bool is_path(const fs::path& name) {
    return name.string().find('/') != std::string::npos || name.extension() == ".json";
  }
  // A file of settings, what `like` names, has no name of its own.
  static bool is_settings(const SortedJson& contents) {
    return contents.contains("tp") || contents.contains("gpus") || contents.contains("dp") ||
           contents.contains("pp");
  }
  SortedJson entry(SortedJson object, const fs::path& beside) {
    for (const std::string_view key : entry_keys)
      if (const auto at = object.find(key); at != object.end()) *at = value(*at, beside);
    return object;
  }

  int replaced_ = 0;
};

}  // namespace

// A configuration that `like` names runs the question's model on its machine.
static JsonValue with_like_read(const JsonValue& question) {
  const auto like = question.find("like");
  if (!like || !like->is_string() || like->text().starts_with('{')) return question;
  SortedJson asked = SortedJson::object();
  for (const char* key : {"model", "cluster", "gpus", "stack"})
    if (const auto at = question.find(key)) asked[key] = at->raw();
  const auto read = settings_of_configuration(like->text(), asked, GivenFor::training);
  if (!read) return question;
  SortedJson whole = question.raw();
  whole["like"] = *read;
  return JsonValue::from(std::move(whole), question.file());
}

JsonValue with_input_inline(const JsonValue& asked) {
  const JsonValue question = with_like_read(asked);
  const auto model = question.find("model");
  if (!model || !model->is_string() || model->text() != "-") return question;
  const std::string name = "standard input";
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  SortedJson contents = JsonValue::parse(text, name).raw();
  if (contents.is_object() && !contents.contains("name")) contents["name"] = name;
  SortedJson whole = question.raw();
  whole["model"] = std::move(contents);
  return JsonValue::from(std::move(whole), question.file());
}

std::optional<JsonValue> with_files_inline(const JsonValue& question) {
  Inliner inliner;
  SortedJson whole = question.raw();
  if (const auto at = whole.find("model"); at != whole.end() && is_folder_of_model(*at))
    *at = (fs::path(at->get<std::string>()) / "config.json").string();
  for (const std::string_view key : question_keys)
    if (const auto at = whole.find(key); at != whole.end()) *at = inliner.value(*at, {});
  if (inliner.replaced() == 0) return std::nullopt;
  return JsonValue::from(std::move(whole), question.file());
}

}  // namespace orrery
