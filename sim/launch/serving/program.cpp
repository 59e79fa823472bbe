// SPDX-License-Identifier: Apache-2.0
// Names programs, images and objects, and writes what must be known beside them.
#include "sim/launch/serving/program.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/base/text/words.h"
#include "sim/launch/object_name.h"
#include "sim/launch/serving/engine_writer.h"

namespace orrery {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find(' ', from), text.size());
    words.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return words;
}

// Tags of images: a release that two numbers name has a third, 0, unless another is named here.
// Those are the ones whose flags were read.
std::string tag_of(const Stack& stack, SchedulerKind kind) {
  const std::string release = stack.asked.empty() ? stack.release : stack.asked;
  if (std::count(release.begin(), release.end(), '.') != 1) return release;
  if (kind == SchedulerKind::sglang) {
    if (release == "0.5") return "0.5.6.post2";
    if (release == "0.4") return "0.4.10.post2";
  }
  return release + ".0";
}

}  // namespace

std::string engine_name(const ServedDeployment& d) { return std::string(to_text(d.kind())); }

std::string dynamo_image(const ServedDeployment& d) {
  const bool long_name = d.kind() == SchedulerKind::trtllm;
  return fmt::format("nvcr.io/nvidia/ai-dynamo/{}-runtime:{}",
                     long_name ? "tensorrtllm" : engine_name(d), dynamo_release);
}

EngineProgram engine_program(const ServedDeployment& d, EngineDialect dialect) {
  const SchedulerKind kind = d.kind();
  const std::string tag = tag_of(d.stack, kind);
  if (dialect == EngineDialect::dynamo)
    return {.start = split("python3 -m dynamo." + engine_name(d)),
            .model_flag = kind == SchedulerKind::sglang ? "--model-path" : "--model",
            .file_flag = kind == SchedulerKind::trtllm ? "--extra-engine-args" : "",
            .image = dynamo_image(d),
            .sources = {"dynamo-wheel"}};
  switch (kind) {
    case SchedulerKind::vllm: {
      // `vllm serve` came with 0.6.
      const bool old = engine_release(d.stack) < std::pair(0, 6);
      return {.start = split(old ? "python3 -m vllm.entrypoints.openai.api_server" : "vllm serve"),
              .model_flag = old ? "--model" : "",
              .file_flag = "",
              .image = "vllm/vllm-openai:v" + tag,
              .sources = {"vllm-several-hosts"}};
    }
    case SchedulerKind::sglang:
      return {.start = split("python3 -m sglang.launch_server"),
              .model_flag = "--model-path",
              .file_flag = "",
              .image = "lmsysorg/sglang:v" + tag,
              .sources = {"sglang-router"}};
    case SchedulerKind::trtllm:
      return {.start = split("trtllm-serve"),
              .model_flag = "",
              .file_flag = "--extra_llm_api_options",
              .image = "nvcr.io/nvidia/tensorrt-llm/release:" + tag,
              .sources = {"trtllm-disaggregated"}};
    case SchedulerKind::simple:
      break;
  }
  throw Error({.file = "--stack",
               .path = "",
               .found = d.stack.name,
               .expected = "an engine that others have: vLLM, SGLang or TensorRT-LLM"});
}

std::vector<std::string> command_words(const EngineProgram& program, const EngineCommand& command,
                                       const std::string& model, const std::string& file) {
  std::vector<std::string> words = program.start;
  if (!program.model_flag.empty()) words.push_back(program.model_flag);
  words.push_back(model);
  for (const LaunchFlag& flag : command.flags) {
    words.push_back(flag.name);
    if (!flag.value.empty()) words.push_back(flag.value);
  }
  if (!command.file.is_null()) {
    words.push_back(program.file_flag);
    words.push_back(file);
  }
  return words;
}

std::string object_name(const std::string& text, std::size_t most) {
  std::string name = object_label(text, most);
  // Names of Services begin with a letter.
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0)
    name = ("m" + name).substr(0, most);
  return name;
}

std::string deployment_name(const ServedDeployment& d) {
  return fmt::format("{}-{}", object_name(d.name, 30), engine_name(d));
}

namespace {

std::string layout_text(const ServedEngine& e) {
  const EngineLayout& l = e.layout;
  std::string text;
  const auto add = [&](const char* axis, std::int64_t size, bool always) {
    if (size > 1 || always) text += fmt::format("{}{}", axis, size);
  };
  add("DP", l.attention_dp, false);
  add("TP", l.tp, l.attention_dp == 1);
  add("PP", l.pp, false);
  add("EP", l.ep, false);
  return fmt::format("{} x {}{}", e.replicas, text,
                     e.role == EngineRole::whole ? "" : fmt::format(" ({})", to_text(e.role)));
}

void add_once(std::vector<std::string>& all, std::string sentence) {
  if (std::find(all.begin(), all.end(), sentence) == all.end()) all.push_back(std::move(sentence));
}

}  // namespace

std::vector<std::string> deployment_notes(const ServedDeployment& d,
                                          const std::vector<EngineCommand>& commands) {
  std::vector<std::string> engines;
  for (const ServedEngine& e : d.engines) engines.push_back(layout_text(e));
  std::vector<std::string> notes = {fmt::format("Orrery: {} on {}, {}: {}.", d.title, d.machine,
                                                commands.front().program, enumeration(engines))};
  notes.emplace_back(
      "It was predicted so and not run. Images, secrets, volumes and networks are yours to check.");
  if (d.checkpoint.empty())
    notes.emplace_back("The catalogue knows no checkpoint of the model: say which (MODEL).");
  for (const EngineCommand& command : commands) {
    for (const FlagNote& note : command.missing) add_once(notes, "Not said: " + note.sentence);
    for (const std::string& sentence : command.advice) add_once(notes, sentence);
  }
  for (const ServedEngine& e : d.engines)
    if (e.layout.gpus() > d.gpus_per_host && d.gpus_per_domain > d.gpus_per_host)
      add_once(notes,
               fmt::format("Hosts of an engine belong into one NVLink domain, of {} GPUs: ask "
                           "your scheduler for them so.",
                           d.gpus_per_domain));
  if (d.guessing && (d.guessing->kind == DraftKind::eagle3 || d.guessing->kind == DraftKind::draft))
    notes.emplace_back("DRAFT_MODEL is the checkpoint of the network that guesses tokens" +
                       (d.guessing->guesser.empty() ? "." : ": " + d.guessing->guesser + "."));
  return notes;
}

std::string as_comment(const std::vector<std::string>& sentences) {
  constexpr std::size_t width = 100;
  std::string out;
  for (const std::string& sentence : sentences) {
    std::string line = "#";
    for (const std::string& word : split(sentence)) {
      if (line.size() + 1 + word.size() > width && line.size() > 1) {
        out += line + "\n";
        line = "#  ";
      }
      line += " " + word;
    }
    out += line + "\n";
  }
  return out;
}

}  // namespace orrery
