// SPDX-License-Identifier: Apache-2.0
// Knows what answers for machines have in common: how they begin, how keys are spelled, how an
// error looks there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/app/answer/exit_code.h"
#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"
#include "sim/outcome/verdict.h"
#include "workloads/layout/layout.h"

namespace orrery {

// Words as a key: small letters, '_' in place of what divides them.
std::string json_key(std::string_view words);

// A figure of some, or null: of nobody it is not known.
Json figure_of(bool some, double figure);

// A layout as an object, the same in every command.
Json layout_json(const Layout& layout);

// What an answer was asked. `question` holds all that it depends on, files and overlays inline.
struct AnswerHead {
  std::string command;  // "simulate"
  SortedJson question = SortedJson::object();
  std::optional<std::uint64_t> seed = {};  // none: nothing was drawn
  std::string catalogue = {};              // its hash where it is known already
};

// Whether what was asked for can exist. A command that judges nothing leaves both open.
struct AnswerVerdict {
  std::optional<bool> fits = {}, runs = {};
  std::string why = {};  // one sentence; empty where it exists
  std::optional<double> probability = {};
};

AnswerVerdict answer_verdict(const Verdict& verdict);

// {orrery, question, verdict, ...body}.
Json answer_json(const AnswerHead& head, const AnswerVerdict& verdict, Json body);
// As text, with line breaks and indented.
std::string indented_text(const Json& json);
// Both at once.
std::string answer_text(const AnswerHead& head, const AnswerVerdict& verdict, Json body);

// Where Ctrl-C or a time limit ended each part of the work; null: the part came to its end.
Json stopped_json(const std::vector<std::optional<std::int64_t>>& parts);

// An answer for machines, and the exit code that goes with it.
struct MachineAnswer {
  Json json;
  ExitCode code = ExitCode::answer;
};

// {"error": {kind, file, path, found, expected, nearest}}; what an error leaves open is null.
Json error_json(const ErrorInfo& info, std::string_view kind);
// Whether a line of JSON is such an error.
bool is_error_text(std::string_view line);
// One line, with its break. Bytes of a user's text that are no UTF-8 are replaced.
std::string json_line(const Json& json);

}  // namespace orrery
