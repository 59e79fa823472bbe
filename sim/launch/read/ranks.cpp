// SPDX-License-Identifier: Apache-2.0
// Counts accelerators of launch commands.
#include "sim/launch/read/ranks.h"

#include <algorithm>

#include "sim/launch/source/marks.h"

namespace orrery {
namespace {

constexpr std::int64_t most_nodes = 1'000'000;

std::string dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// "gpu:8", "gpu:a100:8", "8".
Said count_of(Said said) {
  const std::string text = said.value.is_string() ? said.value.text() : said.value.dump();
  said.value = text.substr(text.rfind(':') + 1);
  return said;
}

}  // namespace

void RankCounter::take(const Said& said, Count& count) {
  const std::string text = said.value.is_string() ? said.value.text() : "";
  if (has_mark(text)) return reading_.not_understood(said, unknown_reason(text));
  // Elastic jobs ("2:4", "2-4"), and torchrun's words for all of a host.
  const std::size_t sign = text.find_first_of(":-");
  const bool elastic = sign != std::string::npos && sign > 0 && sign + 1 < text.size() &&
                       text.find_first_not_of("0123456789:-") == std::string::npos;
  if (elastic || text == "gpu" || text == "auto")
    return reading_.not_understood(said, "it is counted where the job starts");
  if (count.said) reading_.without_effect(*count.said, "it is said again in " + said.place());
  count.value = whole_of(said, 1, most_nodes);
  count.said = said;
}

void RankCounter::launcher(const std::vector<Said>& words, const ShellScript& script) {
  const auto one = [&](const Said& said) {
    const std::string name = dashes(said.name);
    const auto is = [&](std::initializer_list<const char*> names) {
      return std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; });
    };
    if (is({"--nnodes", "--nodes", "-N", "--num-nodes", "--num-machines"}))
      nodes(said);
    else if (is({"--nproc-per-node", "--ntasks-per-node", "--num-gpus", "--gpus-per-node", "--gres",
                 "--gpus-per-task"}))
      per_node(count_of(said));
    else if (is({"--ntasks", "-n", "-np", "--np", "--num-processes"}))
      total(said);
  };
  // What Slurm starts of a node may be one torchrun: its own count comes last and wins.
  const bool counts_itself = std::any_of(words.begin(), words.end(), [](const Said& said) {
    return dashes(said.name) == "--nproc-per-node" || dashes(said.name) == "--num-gpus";
  });
  for (const Said& said : script.batch) {
    const std::string& name = said.name;
    const bool tasks = name == "--ntasks-per-node" || name == "--ntasks" || name == "-n";
    const bool devices = name == "--gres" || name == "--gpus-per-node";
    if (tasks && (counts_itself || per_node_.value)) continue;
    if (tasks && (name != "--ntasks-per-node")) continue;
    if (devices && counts_itself) continue;
    one(said);
  }
  for (const Said& said : words) {
    const bool tasks = said.name == "--ntasks-per-node" || said.name == "--gres" ||
                       said.name == "--ntasks" || said.name == "-n";
    if (tasks && counts_itself) continue;
    one(said);
  }
}

void RankCounter::settle() {
  std::optional<std::int64_t> gpus;
  if (total_.value)
    gpus = total_.value;
  else if (per_node_.value)
    gpus = *per_node_.value * nodes_.value.value_or(1);
  for (const Count* count : {&nodes_, &per_node_, &total_}) {
    if (!count->said) continue;
    if (!gpus || (count != &total_ && total_.value))
      reading_.without_effect(
          *count->said, gpus ? "the number of all is said" : "accelerators of a node are not said");
    else
      reading_.set(*count->said, "gpus", *gpus);
  }
}

}  // namespace orrery
