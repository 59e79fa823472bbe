// SPDX-License-Identifier: Apache-2.0
// Runs the command `diagnose`.
#include "sim/app/diagnose/command.h"

#include "sim/app/answer/failure.h"
#include "sim/app/ask/answers.h"
#include "sim/app/diagnose/runs.h"
#include "sim/app/line/result.h"
#include "sim/app/line/setting_flags.h"
#include "sim/app/report/refusal.h"

namespace orrery {
namespace {

constexpr const char* observed_group = "What the run left";

// What a line says: what ran, and what the run left.
struct Asked {
  DiagnoseFiles files;
  std::string like;  // "": flags alone
};

// Files that stand without a flag are told by their content: one says what ran, the others are of
// the run.
Asked asked_of(const Given& given) {
  Asked out{.files = {.step = given.text("--step")}};
  if (given.has("--like")) out.like = given.place("--like");
  for (const std::string& word : given.words) {
    if (!is_configuration(word)) {
      out.files.files.push_back({word});
      continue;
    }
    if (!out.like.empty())
      throw Error({.file = word,
                   .found = "a second configuration",
                   .expected = "one that says what ran: " + out.like + " does"});
    out.like = word;
  }
  for (const RunFlag& one : run_flags())
    if (given.has(one.flag))
      for (const JsonValue& file : JsonValue::from(given.text(one.flag), one.flag).listed())
        out.files.files.push_back({file.text(), one.flag});
  return out;
}

GivenSettings like_of(const Given& given, const std::string& like) {
  Given rest = given;
  rest.words.clear();
  if (!like.empty()) rest.words.push_back(like);
  rest.flags.erase("--like");  // it is no setting of the run
  return settings_of(rest);
}

Json whole_json(const Diagnosed& asked, const DiagnoseFiles& files) {
  const Simulated& s = asked.simulated;
  SortedJson question = s.settings.raw();
  SortedJson names = SortedJson::array();
  for (const RunFile& file : files.files) names.push_back(file.name);
  question["files"] = std::move(names);
  if (!files.step.empty()) question["step"] = files.step;
  AnswerVerdict verdict = answer_verdict(verdict_of(s.prediction.memory));
  return answer_json({.command = "diagnose", .question = question, .catalogue = s.catalogue},
                     verdict, diagnosis_json(asked));
}

ExitCode answer(const DiagnoseFiles& files, const GivenSettings& like, const CommonFlags& common) {
  Catalogues catalogues;
  const Diagnosed asked = diagnose_settings(like.merged(), files,
                                            {.catalogues = catalogues, .threads = common.threads});
  if (!asked.diagnosis) {
    if (common.json)
      write_result(indented_text(to_json(asked.simulated)));
    else
      write_result(page(refusal_document(*asked.simulated.refused), common));
    return ExitCode::cannot_exist;
  }
  if (common.json)
    write_result(indented_text(whole_json(asked, files)));
  else
    write_result(page(diagnosis_document(asked, common.markdown, terminal_width()), common));
  return asked.diagnosis->healthy ? ExitCode::answer : ExitCode::check_failed;
}

ExitCode answer_runs(const Given& given, const CommonFlags& common) {
  Catalogues catalogues;
  const std::vector<FaultRun> runs =
      diagnose_runs(given.place("--runs"), {.catalogues = catalogues, .threads = common.threads});
  if (common.json)
    write_result(answer_text({.command = "diagnose", .question = {{"runs", given.place("--runs")}}},
                             {}, runs_json(runs)));
  else
    write_result(page(runs_document(runs, common.markdown, terminal_width()), common));
  return ExitCode::answer;
}

ExitCode run(const Given& given) {
  const CommonFlags common = common_of(given);
  if (given.has("--runs")) return answer_runs(given, common);
  const Asked asked = asked_of(given);
  const GivenSettings like = like_of(given, asked.like);
  return naming_flags(
      [&] { return answer(asked.files, like, common); },
      [&](const Error& error) { return named_by_flag(error, like.file, like.flags); });
}

}  // namespace

Command diagnose_command() {
  std::vector<Flag> flags = {
      {"--like", "FILE", observed_group,
       "what ran: a file of settings, or a program's configuration", "file"},
      {"--step", "TIME", observed_group, "time of a step: \"21.3 s\""},
      {"--log", "FILE", observed_group, "the program's log", "file"},
      {"--profile", "FILE,FILE", observed_group,
       "traces of PyTorch's profiler, one a rank; nsys exports", "file"},
      {"--dcgm", "FILE,FILE", observed_group, "counters: DCGM, Prometheus, nvidia-smi", "file"},
      {"--runs", "DIR", observed_group, "runs with known faults: how often each is found",
       "folder"}};
  for (Flag& flag : setting_flags(SettingOf::simulate)) flags.push_back(std::move(flag));
  flags.push_back(markdown_flag());
  return {.name = "diagnose",
          .summary = "hold a real run against its prediction: what is wrong, what to do",
          .arguments = {{"files",
                         "logs, profiles and counters of one run, or a folder of them; what ran, "
                         "in place of --like",
                         "file", true}},
          .flags = std::move(flags),
          .examples = {{"orrery diagnose --like train.sh --cluster dgx-h100 --gpus 64 train.log "
                        "rank0.json.gz",
                        "where the time goes, and why"},
                       {"orrery diagnose --like running.json --step 21.3s",
                        "how far a step is from the prediction"}},
          .run = run};
}

}  // namespace orrery
