// SPDX-License-Identifier: Apache-2.0
// Writes judgements of kernels.
#include "sim/app/calibrate/kernel_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/app/answer/answer.h"
#include "sim/base/statistics.h"
#include "sim/base/text/words.h"
#include "sim/calibrate/kernel/feedback.h"
#include "sim/paper/tables.h"

namespace orrery {
namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json limit_json(const std::optional<KernelLimit>& limit) {
  if (!limit) return nullptr;
  return {{"flop", limit->flop},
          {"bytes", limit->bytes},
          {"time_s", limit->seconds},
          {"by", limit->memory ? "memory" : "tensor"}};
}

Json shape_json(const ShapeJudgement& s) {
  return {{"shape", s.shape},
          {"cold_s", s.cold},
          {"cold_low_s", s.low},
          {"cold_high_s", s.high},
          {"warm_s", s.warm > 0 ? Json(s.warm) : Json(nullptr)},
          {"clock_mhz", s.mhz > 0 ? Json(s.mhz) : Json(nullptr)},
          {"limit", limit_json(s.limit)},
          {"calibrated_s", or_null(s.calibrated)},
          {"present", s.present ? Json(s.present_name) : Json(nullptr)},
          {"present_s", or_null(s.present)}};
}

Json wrong_json(const KernelJudgement& k) {
  Json wrong = Json::array();
  for (const KernelCase& one : k.trial.cases)
    if (!one.ok)
      wrong.push_back({{"shape", one.shape}, {"data", one.data}, {"failure", one.failure}});
  for (const KernelTiming& one : k.trial.timed)
    if (!one.ok)
      wrong.push_back({{"shape", one.shape}, {"data", "timed"}, {"failure", one.failure}});
  return wrong;
}

Json resources_json(const BuiltKernel& built) {
  const KernelResources& r = built.resources;
  if (r.kernels == 0) return nullptr;
  return {{"registers", r.registers},
          {"shared_bytes", r.shared_bytes},
          {"spilled_bytes", r.spilled_bytes},
          {"warps", r.warps()}};
}

Json sandbox_json(const std::optional<KernelSandbox>& held) {
  if (!held) return nullptr;
  return {{"network", held->network},
          {"files", held->files},
          {"capabilities", held->capabilities},
          {"calls", held->calls}};
}

Json candidate_json(const KernelJudgement& k) {
  Json shapes = Json::array();
  for (const ShapeJudgement& shape : k.shapes) shapes.push_back(shape_json(shape));
  const bool ran = !k.trial.cases.empty() || !k.trial.timed.empty();
  return {{"file", k.file},
          {"compiled", k.compiled},
          {"correct", k.trial.no_device || !k.compiled ? Json(nullptr) : Json(k.correct)},
          {"worst_error", ran ? Json(k.trial.worst()) : Json(nullptr)},
          {"time_s", or_null(k.time)},
          {"warm_s", or_null(k.warm)},
          {"of_roofline", or_null(k.of_roofline)},
          {"speedup", k.speed ? Json(k.speed->middle) : Json(nullptr)},
          {"speedup_low", k.speed ? Json(k.speed->low) : Json(nullptr)},
          {"speedup_high", k.speed ? Json(k.speed->high) : Json(nullptr)},
          {"reward", k.reward},
          {"cases", k.trial.cases.size()},
          {"wrong", wrong_json(k)},
          {"shapes", shapes},
          {"resources", resources_json(k.built)},
          {"sandbox", sandbox_json(k.trial.sandbox)},
          {"feedback", k.feedback}};
}

Json present_json(const std::vector<PresentTimes>& present) {
  Json out = Json::array();
  for (const PresentTimes& kernel : present) {
    Json times = Json::array();
    for (const KernelTiming& timing : kernel.timed)
      if (timing.ok && !timing.cold.empty())
        times.push_back({{"shape", timing.shape}, {"cold_s", median(timing.cold)}});
    out.push_back({{"name", kernel.name},
                   {"failure", kernel.failure.empty() ? Json(nullptr) : Json(kernel.failure)},
                   {"times", times}});
  }
  return out;
}

AnswerHead head_of(const KernelAnswer& answer, const Given& given) {
  AnswerHead head{.command = "calibrate", .question = {{"action", "kernel"}}};
  head.question["spec"] = answer.spec.text;  // as it was then; the words say where it lay
  if (given.words.size() > 1) {
    head.question["files"] = SortedJson::array();
    head.question["files"].push_back(given.word(1));
  }
  if (answer.host) head.question["host"] = true;
  for (const char* flag : {"--candidate", "--device", "--tokens", "--job", "--question",
                           "--against", "--kept", "--timeout", "--nvcc", "--python"})
    if (given.has(flag)) head.question[std::string(flag).substr(2)] = given.text(flag);
  return head;
}

std::string of_optional(const std::optional<double>& value, const auto& text) {
  return value ? text(*value) : "";
}

}  // namespace

std::string kernel_json(const KernelAnswer& answer, const Given& given) {
  const KernelJudgement& best = answer.candidates.back();
  Json body = candidate_json(best);
  body["worth"] = answer.worth;
  body["operation"] = answer.spec.operation;
  body["ran_on"] = answer.host     ? Json("host")
                   : answer.device ? Json(answer.device->name)
                                   : Json(nullptr);
  body["device"] = answer.catalogue_device.empty() ? Json(nullptr) : Json(answer.catalogue_device);
  body["present"] = present_json(answer.present);
  Json all = Json::array();
  for (const KernelJudgement& k : answer.candidates) all.push_back(candidate_json(k));
  body["candidates"] = all;
  AnswerVerdict verdict{.runs = best.compiled && !best.trial.no_device};
  if (!best.compiled)
    verdict.why = "It does not compile.";
  else if (best.trial.no_device)
    verdict.why = best.trial.failure.empty() ? "There is no GPU to run it on."
                                             : "It cannot run here: " + best.trial.failure + ".";
  else if (!best.correct)
    verdict.why = "It is wrong: " + best.wrong + ".";
  return answer_text(head_of(answer, given), verdict, std::move(body));
}

std::string kernel_text(const KernelAnswer& answer) {
  Table table({"candidate", "compiled", "right", "worst", "time", "warm", "of limit", "speedup",
               "range", "reward"},
              {Align::left, Align::left, Align::left});
  for (const KernelJudgement& k : answer.candidates) {
    const bool ran = !k.trial.cases.empty() || !k.trial.timed.empty();
    const bool counted = ran && k.trial.worst() < 1e6;
    table.add({std::filesystem::path(k.file).filename().string(), k.compiled ? "yes" : "no",
               ran ? (k.correct ? "yes" : "no") : "",
               counted ? fmt::format("{:.2f}", k.trial.worst()) : "",
               of_optional(k.time, [](double t) { return short_time(t); }),
               of_optional(k.warm, [](double t) { return short_time(t); }),
               of_optional(k.of_roofline, [](double share) { return percent(share); }),
               k.speed ? fmt::format("{:.3f}", k.speed->middle) : "",
               k.speed ? fmt::format("{:.3f} to {:.3f}", k.speed->low, k.speed->high) : "",
               fmt::format("{:.3f}", k.reward)});
  }
  std::string text = fmt::format("{}, on {}\n", answer.spec.title,
                                 answer.host     ? "the host"
                                 : answer.device ? answer.device->name
                                                 : "no device");
  text += table.text();
  for (const PresentTimes& kernel : answer.present)
    if (!kernel.failure.empty())
      text += wrap(fmt::format("{} was not timed: {}", kernel.name, kernel.failure), page_width, "",
                   "  ");
  for (const KernelJudgement& k : answer.candidates)
    text += "\n" + wrap(std::filesystem::path(k.file).filename().string() + ": " + k.feedback,
                        page_width, "", "  ");
  if (!answer.worth.is_null()) {
    text += "\n";
    if (answer.host) text += "As if a GPU gained what the host did, which says nothing of a GPU:\n";
    text += worth_text(answer.worth);
  }
  return text;
}

}  // namespace orrery
