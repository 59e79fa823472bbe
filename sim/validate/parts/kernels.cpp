// SPDX-License-Identifier: Apache-2.0
// Reads measured kernels and predicts each with its device's calibration.
#include "sim/validate/parts/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "hw_models/catalog.h"
#include "sim/calibrate/health/expected_time.h"
#include "sim/calibrate/log/measured_tables.h"
#include "sim/calibrate/log/measurement.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// Machines by name, each loaded once; without reductions in the switch where NCCL had none.
class Machines {
 public:
  const Machine& at(const std::string& device, bool multicast) {
    auto& machine = machines_[{device, multicast}];
    if (!machine) machine = std::make_unique<Machine>(load_machine(device, multicast));
    return *machine;
  }

 private:
  std::map<std::pair<std::string, bool>, std::unique_ptr<Machine>> machines_;
};

void score_tables(std::vector<OperatorTable> tables, const std::string& mode, Machines& machines,
                  std::vector<ScoredKernel>& out) {
  for (OperatorTable& table : tables) {
    const Machine& machine = machines.at(table.device, true);
    drop_cached(table, machine.device.l2_capacity, machine.device.memory_bandwidth);
    for (const OperatorRow& row : table.rows) {
      const Seconds time = expected_time(row, machine);
      out.push_back({.device = table.device,
                     .source = table.source,
                     .kind = std::string(to_text(table.kind)),
                     .format = std::string(to_text(table.format)),
                     .library = std::string(to_text(table.library)),
                     .shape = row.shape,
                     .mode = mode,
                     .held_out = mode == "sustained" || is_held_out(row),
                     .measured = row.measured.si(),
                     .predicted = time.si()});
    }
  }
}

// Collectives and launches: what is no kernel.
void score_questions(const MeasuredLog& log, const std::string& source, Machines& machines,
                     std::vector<ScoredKernel>& out) {
  for (const Sample& s : log.samples) {
    const auto collective = collective_kind_text.find(s.kind);
    if (s.time.si() <= 0 || (!collective && s.kind != "launch")) continue;
    const RunConditions& conditions = log.conditions[static_cast<std::size_t>(s.conditions)];
    const std::string device = catalogue_device(conditions.device);
    const auto nvls = conditions.libraries.find("nvls");
    const bool multicast = nvls == conditions.libraries.end() || nvls->second != "off";
    const auto time = expected_time(s, machines.at(device, multicast));
    // NCCL's own choice, inside a graph: forced protocols and eager launches are not what a job
    // runs. In a shift every rank sends and receives at once, which no model here answers.
    const bool chosen =
        s.text_or("protocol", "default") == "default" && s.mode != "stream" && s.variant != "shift";
    if (!time || (collective && !chosen)) continue;
    out.push_back({.device = device,
                   .source = source,
                   .kind = s.kind,
                   .format = collective ? fmt::format("of {}", s.number("ranks")) : "",
                   .library = collective ? s.library : s.variant,
                   .shape = s.shape,
                   .mode = "burst",
                   .held_out = is_held_out(s),
                   .measured = s.time.si(),
                   .predicted = time->si()});
  }
}

bool is_lines(const fs::path& file) {
  std::error_code status;
  return file.extension() == ".jsonl" || fs::is_directory(file, status);
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

bool is_kernel_file(const fs::path& file) {
  if (is_lines(file)) return true;
  const std::string stem = file.stem().string();
  const auto has = [&stem](const char* part) { return stem.find(part) != std::string::npos; };
  return file.extension() == ".csv" &&
         (has("_gemm_") || has("_attn_prefill_") || has("_attn_decode_") || has("_moe_") ||
          has("_mla_prefill_") || has("_mla_decode_") || has("_training_kernels"));
}

std::vector<fs::path> shipped_kernel_files() {
  std::vector<fs::path> files;
  std::error_code status;
  for (const fs::path& device : entries(data_root() / "hw_models/calibration"))
    if (fs::is_directory(device / "measured", status)) files.push_back(device / "measured");
  for (const fs::path& table : entries(data_root() / "validation/measurements/operators"))
    if (is_kernel_file(table)) files.push_back(table);
  return files;
}

std::vector<ScoredKernel> score_kernels(const std::vector<fs::path>& files) {
  std::vector<ScoredKernel> out;
  Machines machines;
  const auto check_more = [&out](std::size_t before, const fs::path& file) {
    if (out.size() == before)
      throw Error({.file = file.string(),
                   .found = "nothing to predict",
                   .expected = "rows or samples of kernels, collectives or launches"});
  };
  for (const fs::path& file : files) {
    const std::size_t before = out.size();
    if (!is_lines(file)) {
      score_tables(read_operator_tables(file), "burst", machines, out);
      check_more(before, file);
      continue;
    }
    const MeasuredLog log = read_measured_log({file});
    score_tables(measured_tables(log), "burst", machines, out);
    score_tables(sustained_tables(log), "sustained", machines, out);
    score_questions(log, measured_source(measured_device(log)), machines, out);
    check_more(before, file);
  }
  return out;
}

}  // namespace orrery
