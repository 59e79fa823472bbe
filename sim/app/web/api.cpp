// SPDX-License-Identifier: Apache-2.0
// Replies at once: files, the catalogue, settings, and questions that are quick.
#include "sim/app/web/api.h"

#include <algorithm>
#include <filesystem>

#include "hw_models/catalog.h"
#include "sim/app/answer/answer.h"
#include "sim/app/catalog/command.h"
#include "sim/app/page/assets.h"
#include "sim/app/questions/question.h"
#include "sim/question/plan/keys.h"
#include "sim/question/schedule/settings.h"
#include "sim/question/serve/serve.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

std::string type_of(const fs::path& file) {
  static const std::map<std::string, std::string> types = {
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".json", "application/json"}};
  const auto known = types.find(file.extension().string());
  return known == types.end() ? "" : known->second;
}

const char* kind_words(SettingKind kind) {
  switch (kind) {
    case SettingKind::text:
    case SettingKind::file:
      return "text";
    case SettingKind::integer:
      return "integer";
    case SettingKind::number:
      return "number";
    case SettingKind::quantity:
      return "quantity";
    case SettingKind::on_off:
      return "on_off";
    case SettingKind::list:
      return "list";
    case SettingKind::json:
    case SettingKind::settings:
      return "json";
  }
  return "";
}

// Keys that name files mean nothing here.
bool is_offered(const Setting& setting) { return setting.kind != SettingKind::file; }

Json settings_json(const std::vector<Setting>& list, SettingOf command) {
  Json out = Json::array();
  for (const Setting& s : list)
    if (is_offered(s) && (s.command == SettingOf::both || s.command == command))
      out.push_back({{"key", s.key},
                     {"kind", kind_words(s.kind)},
                     {"group", s.group},
                     {"help", s.help},
                     {"completes", s.completes}});
  return out;
}

Json plan_settings_json() {
  Json out = Json::array();
  for (const PlanKey& key : plan_keys())
    out.push_back({{"key", key.key},
                   {"kind", key.text == PlanText::json ? "json" : "values"},
                   {"group", key.group},
                   {"help", key.help},
                   {"completes", key.completes}});
  return out;
}

WebReply all_settings() {
  return {.body =
              indented_text({{"simulate", settings_json(settings(), SettingOf::simulate)},
                             {"advise", settings_json(settings(), SettingOf::advise)},
                             {"plan", plan_settings_json()},
                             {"serve", settings_json(serve_settings(), SettingOf::both)},
                             {"schedule", settings_json(schedule_settings(), SettingOf::both)}})};
}

WebReply not_found(const std::string& path) {
  return refusal_reply(404, "path", in_quotes(path), "one that /api/v1/openapi.json describes");
}

WebReply catalogue_list(const std::string& kind) {
  const Given given{.flags = {{"--json", ""}}, .words = {"list", kind}};
  try {
    return {.body = catalog_command().answer(given).text};
  } catch (const Error& error) {
    return error_reply(404, error);
  }
}

}  // namespace

WebFiles load_web_files() {
  WebFiles files;
  for (const auto& item : fs::directory_iterator(web_folder())) {
    const std::string type = type_of(item.path()), name = item.path().filename().string();
    if (type.empty()) continue;
    const std::string path = name == "app.html"       ? "/"
                             : name == "openapi.json" ? api_root + name
                                                      : "/assets/" + name;
    files[path] = {.type = type, .body = web_file(name)};
  }
  files["/assets/vega.js"] = {.type = type_of("vega.js"), .body = vega_script()};
  for (const fs::path& folder : {data_root() / "schema", data_root() / "docs/schema"}) {
    std::error_code none;
    for (const auto& item : fs::directory_iterator(folder, none))
      files[api_root + ("schema/" + item.path().filename().string())] = {
          .body = file_text(item.path())};
  }
  return files;
}

std::string command_of(const std::string& path) {
  if (!path.starts_with(api_root)) return "";
  const std::string name = path.substr(std::string(api_root).size());
  const std::vector<std::string>& known = settings_commands();
  return std::find(known.begin(), known.end(), name) == known.end() ? "" : name;
}

bool is_search(const ViewAsked& asked) {
  return asked.command != "simulate" || asked.question.find("network");
}

WebReply reply_at_once(const WebRequest& request, const WebFiles& files) {
  if (request.method == "POST") return not_found(request.path);
  const auto file = files.find(request.path);
  if (file != files.end()) return file->second;
  if (request.path == std::string(api_root) + "settings") return all_settings();
  const std::string catalogue = std::string(api_root) + "catalog/";
  if (request.path.starts_with(catalogue))
    return catalogue_list(request.path.substr(catalogue.size()));
  return not_found(request.path);
}

}  // namespace orrery
