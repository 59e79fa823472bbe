// SPDX-License-Identifier: Apache-2.0
// Runs the command `fill`.
#include "sim/app/schedule/fill_command.h"

#include <fmt/format.h>

#include "sim/app/answer/answer.h"
#include "sim/app/line/result.h"
#include "sim/base/errors/check.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/text/words.h"
#include "sim/question/schedule/filled.h"

namespace orrery {
namespace {

constexpr const char *hosts_flag = "--hosts", *tasks_flag = "--tasks", *rule_flag = "--rule",
                     *demand_flag = "--demand", *seeds_flag = "--seeds";

Document filled_document(const Filled& filled, bool full, std::size_t width) {
  Document document(full, width);
  document.title(fmt::format("{} and {} of {}", plural(filled.gpus, "GPU"),
                             plural(filled.tasks, "task"), plural(filled.hosts, "host")));
  document.paragraph(fmt::format(
      "The tasks ask for {} of the GPUs. They come in a random order and stay; more are drawn from "
      "them until {} is asked for. Means of {}, with the least and the most of the last column.",
      percent(filled.asked), percent(filled.demand, 0), plural(filled.seeds, "run")));
  if (filled.stopped) document.paragraph("Stopped early: runs that came to their end count alone.");
  if (filled.points.empty()) return document;
  std::vector<std::string> head = {"rule"};
  std::vector<Align> align = {Align::left};
  for (const FilledMark& mark : filled.points.front().marks) {
    head.push_back("at " + percent(mark.demand, 0));
    align.push_back(Align::right);
  }
  head.insert(head.end(), {"range", "refused %"});
  align.insert(align.end(), {Align::right, Align::right});
  Table table(head, align);
  for (const FilledPoint& point : filled.points) {
    std::vector<std::string> row = {std::string(fill_rule_text[point.rule])};
    for (const FilledMark& mark : point.marks) row.push_back(percent(mark.mean));
    row.push_back(percent(point.marks.back().low) + " to " + percent(point.marks.back().high));
    row.push_back(percent_figure(point.refused));
    table.add(row);
  }
  document.gap();
  document.table(table);
  document.note("GPUs handed out when so much was asked for. refused: tasks that found no place.");
  return document;
}

Json filled_json(const Filled& filled) {
  Json points = Json::array();
  for (const FilledPoint& point : filled.points) {
    Json marks = Json::array();
    for (const FilledMark& mark : point.marks)
      marks.push_back({{"demand", mark.demand},
                       {"allocated", mark.mean},
                       {"low", mark.low},
                       {"high", mark.high}});
    points.push_back({{"rule", fill_rule_text[point.rule]},
                      {"marks", marks},
                      {"refused", point.refused},
                      {"runs", point.runs}});
  }
  return {{"hosts", filled.hosts}, {"gpus", filled.gpus},      {"tasks", filled.tasks},
          {"asked", filled.asked}, {"seeds", filled.seeds},    {"points", points},
          {"best", filled.best},   {"stopped", filled.stopped}};
}

Printed answer(const Given& given) {
  install_interrupt_handler();
  const CommonFlags common = common_of(given);
  FillWords words;
  words.hosts = given.needed(hosts_flag, "hosts: an entry of the catalogue, or a file");
  words.tasks = given.needed(tasks_flag, "tasks: an entry of the catalogue, or a file");
  if (given.has(rule_flag)) words.rules = given.text(rule_flag);
  if (given.has(demand_flag)) words.demand = given.text(demand_flag);
  if (given.has(seeds_flag)) words.seeds = given.text(seeds_flag);
  const std::uint64_t seed = common.seed.value_or(0);
  const Filled filled = fill_hosts(words, seed, common.threads);
  const ExitCode code = unless_stopped(ExitCode::answer);
  if (!common.json)
    return {page(filled_document(filled, common.markdown, terminal_width()), common), code};
  const SortedJson question = question_of_flags(
      given, {hosts_flag, tasks_flag, rule_flag, demand_flag, seeds_flag, "--seed"});
  return {
      answer_text({.command = "fill", .question = question, .seed = seed}, {}, filled_json(filled)),
      code};
}

}  // namespace

Command fill_command() {
  return {.name = "fill",
          .summary = "hand out shared accelerators until more is asked for than there is",
          .flags = {{hosts_flag, "NAME|FILE", "Machine",
                     "hosts: openb, or a CSV of cpu_milli, memory_mib, gpu, model", "file"},
                    {tasks_flag, "NAME|FILE", "Jobs",
                     "tasks: openb-default, or a CSV of cpu_milli, memory_mib, num_gpu, gpu_milli "
                     "and perhaps gpu_spec",
                     "file"},
                    {demand_flag, "X", "Jobs", "what is asked for, over the accelerators (1.3)"},
                    {rule_flag, "LIST", "Policy",
                     "random, best-fit, dot-product, packing, clustering, fragmentation (best-fit)",
                     "random best-fit dot-product packing clustering fragmentation"},
                    {seeds_flag, "N", output_group, "runs, each with a seed of its own (10)"},
                    seed_flag(),
                    markdown_flag()},
          .examples = {{"orrery fill --hosts openb --tasks openb-default "
                        "--rule best-fit,fragmentation",
                        "what a rule that looks at fragments wins"},
                       {"orrery fill --hosts hosts.csv --tasks tasks.csv --rule packing --seeds 3",
                        "on hosts and tasks of your own"}},
          .answer = answer};
}

}  // namespace orrery
