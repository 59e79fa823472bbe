// SPDX-License-Identifier: Apache-2.0
// Writes what answers for machines have in common.
#include "sim/app/answer/answer.h"

#include "sim/app/answer/version.h"

namespace orrery {
namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

std::string json_key(std::string_view words) {
  std::string key;
  for (const char c : words) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool kept = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (kept)
      key += upper ? static_cast<char>(c - 'A' + 'a') : c;
    else if (!key.empty() && key.back() != '_')
      key += '_';
  }
  return key;
}

Json figure_of(bool some, double figure) { return some ? Json(figure) : Json(nullptr); }

Json layout_json(const Layout& layout) { return Json::parse(to_json_text(layout)); }

AnswerVerdict answer_verdict(const Verdict& v) {
  return {.fits = v.fits, .runs = v.runs, .why = v.why, .probability = v.probability};
}

Json answer_json(const AnswerHead& head, const AnswerVerdict& verdict, Json body) {
  Json out = {{"orrery",
               {{"version", program_version()},
                {"catalogue", head.catalogue.empty() ? catalogue_version() : head.catalogue},
                {"command", head.command},
                {"seed", or_null(head.seed)}}},
              {"question", head.question},
              {"verdict",
               {{"fits", or_null(verdict.fits)},
                {"runs", or_null(verdict.runs)},
                {"why", verdict.why},
                {"probability", or_null(verdict.probability)}}}};
  for (auto& [key, value] : body.items()) out[key] = std::move(value);
  return out;
}

Json stopped_json(const std::vector<std::optional<std::int64_t>>& parts) {
  Json stopped = Json::array();
  for (const auto& part : parts) stopped.push_back(part ? Json(*part) : Json(nullptr));
  return stopped;
}

std::string indented_text(const Json& json) { return json.dump(2) + "\n"; }

std::string answer_text(const AnswerHead& head, const AnswerVerdict& verdict, Json body) {
  return indented_text(answer_json(head, verdict, std::move(body)));
}

std::string json_line(const Json& json) { return json.dump() + "\n"; }

Json error_json(const ErrorInfo& info, std::string_view kind) {
  return {{"error",
           {{"kind", kind},
            {"file", text_or_null(info.file)},
            {"path", text_or_null(info.path)},
            {"found", text_or_null(info.found)},
            {"expected", text_or_null(info.expected)},
            {"nearest", text_or_null(info.nearest)}}}};
}

bool is_error_text(std::string_view line) { return line.starts_with("{\"error\":"); }

}  // namespace orrery
