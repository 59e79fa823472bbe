// SPDX-License-Identifier: Apache-2.0
// Reads the flags of `validate`.
#include "sim/app/validate/command.h"

#include <filesystem>

#include "sim/app/line/result.h"
#include "sim/app/shards/sharing.h"
#include "sim/app/validate/validate.h"
#include "sim/base/content_hash.h"

namespace orrery {
namespace {

ValidateOptions options_of(const Given& given) {
  const CommonFlags common = common_of(given);
  return {.files = given.words,
          .leave_out = given.text("--leave-out"),
          .model_error = given.place("--model-error"),
          .write_nested = given.place("--write-nested"),
          .nested = given.has("--nested"),
          .free = given.has("--free"),
          .fit = given.has("--fit"),
          .json = common.json,
          .rows = given.has("--rows"),
          .regions = given.has("--regions"),
          .kernels = given.has("--kernels"),
          .details = given.has("--details"),
          .advise = given.has("--advise"),
          .gates = given.place("--gates"),
          .write_gates = given.place("--write-gates"),
          .looks = look_files(given),
          .quiet = common.quiet,
          .threads = common.threads};
}

// Its tables are known by their names and contents: every process reads them where they are.
SharedRun run_of(const ValidateOptions& options) {
  if (options.leave_out.empty())
    throw Error({.file = results_flag,
                 .found = "no --leave-out",
                 .expected = "both: the fits of what is left out are shared"});
  SharedRun run{.command = "validate", .name = "", .question = SortedJson::object()};
  run.question["leave_out"] = options.leave_out;
  run.question["files"] = SortedJson::array();
  for (const std::string& file : options.files)
    run.question["files"].push_back(
        {{"file", std::filesystem::absolute(file).string()}, {"hash", hash_text(file_hash(file))}});
  return run;
}

ExitCode share(const SharedRun& run, SharedWork& work, const Given& given) {
  ValidateOptions options = options_of(given);
  options.leave_out = run.question.at("leave_out").text();
  options.files.clear();
  for (const SortedJson& file : run.question.at("files"))
    options.files.push_back(file.at("file").text());
  options.tasks = &work;
  const Printed printed = validate_tables(options);
  if (!work.whole()) return end_part(work, common_of(given));
  write_result(printed.text);
  return unless_stopped(printed.code);
}

Printed answer(const Given& given) {
  const ValidateOptions options = options_of(given);
  if (!is_shared(given)) return validate_tables(options);
  const SharedRun run = run_of(options);
  const ExitCode code =
      begin_shared(given, run, "", [&](SharedWork& work) { return share(run, work, given); });
  return {.text = "", .code = code};
}

std::vector<Flag> flags() {
  constexpr const char *shown = "What is printed", *judged = "Gates", *fitted = "Fits";
  std::vector<Flag> all = {
      {"--rows", "", shown, "a line for every row"},
      {"--details", "", shown, "rows that are farthest off and why, errors by scale, ..."},
      {"--kernels", "", shown, "of our own measurements only single kernels"},
      {"--regions", "", shown, "small, medium and large kernels apart"},
      {"--advise", "", shown,
       "advise every published job anew, compare with what was run (minutes)"},
      {"--gates", "FILE", judged, "judge this file of gates; exit code 1 if one fails", "file"},
      {"--write-gates", "FILE", judged, "make or tighten this file of gates", "file"},
      {"--free", "", fitted,
       "print the values of stacks that are no facts, and how many runs each rests on"},
      {"--fit", "", fitted, "print step-level values fitted per stack"},
      {"--leave-out", "KIND", fitted,
       "fit without each source, model or release, and predict it; nested or blind",
       "source model release nested blind"},
      {"--model-error", "FILE", fitted,
       "with --leave-out nested: write the left-out errors to this file", "file"},
      {"--write-nested", "FILE", fitted, "with --leave-out nested: write its tables to this file",
       "file"},
      {"--nested", "", fitted, "the tables of --leave-out nested as shipped, at once"}};
  for (Flag& flag : look_flags()) all.push_back(std::move(flag));
  for (Flag& flag : shard_flags()) all.push_back(std::move(flag));
  return all;
}

}  // namespace

Command validate_command() {
  return {.name = "validate",
          .summary = "predictions against measured runs",
          .arguments = {{"files",
                         "CSV tables, lines of calibrate measure (default: our own measurements)",
                         "file", true}},
          .flags = flags(),
          .examples = {{"orrery validate", "every measured run that we know, by group"},
                       {"orrery validate runs.csv --rows", "your own runs, row by row"}},
          .renamed = {{"--report", "--html"}},
          .answer = answer,
          .share = share};
}

}  // namespace orrery
