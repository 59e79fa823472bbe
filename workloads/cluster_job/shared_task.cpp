// SPDX-License-Identifier: Apache-2.0
// Reads hosts and tasks of a cluster whose accelerators are shared.
#include "workloads/cluster_job/shared_task.h"

#include <algorithm>

#include "sim/base/entry_file.h"
#include "sim/base/errors/check.h"
#include "sim/base/json/json.h"
#include "sim/base/text/csv.h"
#include "sim/base/text/lines.h"

namespace orrery {
namespace {

constexpr std::int64_t most_gpus_of_host = 64, most_figure = INT64_C(1'000'000'000'000);
constexpr std::size_t most_models = 64;

std::int64_t figure(const CsvRow& row, const char* column, std::int64_t most) {
  const std::int64_t value = row.integer(column).value_or(0);
  if (value < 0 || value > most) row.fail(column, "a whole number of 0 or more");
  return value;
}

std::int32_t model_number(std::vector<std::string>& models, const CsvRow& row) {
  const std::string& name = row.text("model");
  if (name.empty()) row.fail("model", "the model of the host's accelerators");
  const auto found = std::find(models.begin(), models.end(), name);
  if (found != models.end()) return static_cast<std::int32_t>(found - models.begin());
  if (models.size() == most_models) row.fail("model", "at most 64 models in all");
  models.push_back(name);
  return static_cast<std::int32_t>(models.size() - 1);
}

// "V100M16|V100M32", each once or more.
std::uint64_t models_of(const CsvRow& row, const std::vector<std::string>& models) {
  const std::string& text = row.text("gpu_spec");
  if (text.empty()) return ~0ULL;
  std::uint64_t mask = 0;
  for (const std::string_view model : fields_of(text, '|')) {
    const auto found = std::find(models.begin(), models.end(), model);
    if (found == models.end()) row.fail("gpu_spec", "models that the hosts have, with | between");
    mask |= 1ULL << (found - models.begin());
  }
  return mask;
}

}  // namespace

std::int64_t SharedHosts::gpus() const {
  std::int64_t sum = 0;
  for (const SharedHost& host : hosts) sum += host.gpus;
  return sum;
}

std::filesystem::path shared_file(const std::string& name_or_path, const std::string& kind,
                                  const std::filesystem::path& catalog_folder,
                                  const std::string& flag) {
  struct Listed {
    std::string name, file;
  };
  const std::filesystem::path folder = catalog_folder / "job_traces";
  const JsonValue index = JsonValue::load(folder / "index.json");
  std::vector<Listed> entries;
  for (const JsonValue& at : index.at(kind).items()) {
    at.expect_only({"name", "title", "file", "source"});
    entries.push_back({at.at("name").text(), at.at("file").text()});
  }
  return entry_file(entries, folder, name_or_path,
                    {.file = flag, .expected = "a file, or an entry of the catalogue"});
}

SharedHosts read_shared_hosts(const std::filesystem::path& file) {
  const CsvTable table = read_csv(file);
  require_columns(table, {"cpu_milli", "memory_mib", "gpu", "model"}, "docs/schedule/shares.md");
  SharedHosts cluster;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    SharedHost host;
    host.cpu_milli = figure(row, "cpu_milli", most_figure);
    host.memory_mib = figure(row, "memory_mib", most_figure);
    host.gpus = static_cast<std::int32_t>(figure(row, "gpu", most_gpus_of_host));
    if (host.gpus > 0) host.model = model_number(cluster.models, row);
    cluster.hosts.push_back(host);
  }
  if (cluster.gpus() == 0)
    throw Error({.file = file.string(),
                 .found = "no accelerators",
                 .expected = "hosts of which some have accelerators"});
  return cluster;
}

std::vector<SharedTask> read_shared_tasks(const std::filesystem::path& file,
                                          const SharedHosts& cluster) {
  const CsvTable table = read_csv(file);
  require_columns(table, {"cpu_milli", "memory_mib", "num_gpu", "gpu_milli"},
                  "docs/schedule/shares.md");
  std::vector<SharedTask> tasks;
  std::int64_t asked = 0;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    SharedTask task;
    task.cpu_milli = figure(row, "cpu_milli", most_figure);
    task.memory_mib = figure(row, "memory_mib", most_figure);
    task.gpus = static_cast<std::int32_t>(figure(row, "num_gpu", most_gpus_of_host));
    task.gpu_milli = static_cast<std::int32_t>(figure(row, "gpu_milli", whole_gpu));
    if (task.gpus == 0) task.gpu_milli = 0;
    if (task.gpus > 0 && task.gpu_milli == 0) row.fail("gpu_milli", "a part above 0");
    if (task.gpus > 1 && task.gpu_milli < whole_gpu)
      row.fail("gpu_milli", "1000 where a task asks for several accelerators");
    if (task.gpus > 0) task.models = models_of(row, cluster.models);
    asked += task.total_milli();
    tasks.push_back(task);
  }
  if (asked == 0)
    throw Error({.file = file.string(),
                 .found = "no task that asks for accelerators",
                 .expected = "tasks of which some do"});
  return tasks;
}

}  // namespace orrery
