// SPDX-License-Identifier: Apache-2.0
// Lists the readers of strangers' texts, and makes seeds of what the catalogues hold.
#include "tests/fuzz/readers.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/base/json/json.h"
#include "sim/calibrate/log/measured_log.h"
#include "sim/calibrate/log/measured_tables.h"
#include "sim/launch/configurations/configuration.h"
#include "sim/observe/observed.h"
#include "sim/question/plan/question.h"
#include "sim/question/settings/settings.h"
#include "sim/validate/rows/rows.h"
#include "sim/validate/rows/step_table.h"
#include "sim/validate/rows/training_columns.h"
#include "tests/base/scratch_folder.h"
#include "workloads/cluster_job/job_mix_file.h"
#include "workloads/job_traces/job_trace.h"
#include "workloads/model/model_catalog.h"
#include "workloads/traffic/trace.h"

namespace orrery::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_refusal = 4000;

// Readers of tables take files.
fs::path as_file(const std::string& name, std::string_view text) {
  static const ScratchFolder folder("fuzz");
  return folder.add(name, text);
}

JsonValue parsed(std::string_view text) { return JsonValue::parse(text, "fuzz.json"); }

// The text as an entry that stands inline.
std::string entry(std::string_view text) {
  const JsonValue value = parsed(text);
  if (!value.is_object()) value.fail("an object");
  return value.reference();
}

// Throws where the refusal of a text is not what people can read.
void check_refusal(const Error& error) {
  const std::string message = error.message();
  if (message.empty() || message.find('\n') != std::string::npos ||
      message.size() > longest_refusal)
    throw std::logic_error("a refusal that is no single line: " + message);
}

template <class Read>
bool is_taken(Read&& read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    check_refusal(error);
    return false;
  }
}

// Reads every value below this one as a quantity and as a figure with a source.
void read_figures(const JsonValue& value) {
  is_taken([&] { value.si(Bytes::dimension); });
  is_taken([&] { read_sourced<BytesPerSecond>(value); });
  is_taken([&] { read_sourced<std::int64_t>(value); });
  is_taken([&] { value.integer(1, 100); });
  if (value.is_array())
    for (const JsonValue& item : value.items()) read_figures(item);
  if (value.is_object())
    for (const auto& [key, member] : value.members()) read_figures(member);
}

void read_json(std::string_view text) {
  const JsonValue value = parsed(text);
  read_figures(value);
  const std::string written = value.raw().dump();
  ORRERY_CHECK(parsed(written).raw() == value.raw(), "JSON that is written is read as it was");
}

void read_runs(std::string_view text) {
  static const Aliases aliases = load_aliases(data_root() / "validation/aliases.json");
  CsvTable table = parse_csv(text, "fuzz.csv");
  if (is_step_table(table)) table = training_runs_of(table, aliases);
  RowReader(aliases).read_training(table);
}

void read_measurements(std::string_view text) {
  const MeasuredLog log = read_measured_log({as_file("part.jsonl", text)});
  measured_tables(log);
}

// A table of one operator lacks the columns of another: one of them has to take it.
void read_operators(std::string_view text) {
  constexpr std::array<const char*, 6> names = {"h200_gemm_vllm_fp8.csv",
                                                "h200_attn_prefill_vllm_bfloat16.csv",
                                                "h200_attn_decode_vllm_bfloat16.csv",
                                                "h200_moe_vllm_fp8.csv",
                                                "h200_mla_decode_sglang.csv",
                                                "h200_training_kernels.csv"};
  std::size_t taken = 0;
  for (const char* name : names)
    taken += is_taken([&] { read_operator_tables(as_file(name, text)); }) ? 1 : 0;
  if (taken == 0) read_operator_tables(as_file(names[0], text));
}

void read_model_entry(std::string_view text) {
  count_parameters(load_model(entry(text), data_root() / "workloads/catalog/models"));
}

void read_stack(std::string_view text) {
  const fs::path stacks = data_root() / "workloads/catalog/stacks";
  for (const bool moe : {false, true})
    load_stack(entry(text), {.architecture = "hopper", .moe = moe}, stacks);
}

void read_device_entry(std::string_view text) { load_calibration(load_device(entry(text))); }

void read_cluster_entry(std::string_view text) { load_cluster(entry(text), 64); }

JsonValue settings_in(std::string_view text) {
  return merge_line(parsed(text), SortedJson::object(), {}, SortedJson::object());
}

void read_simulate(std::string_view text) {
  const JsonValue settings = settings_in(text);
  read_simulate_options(settings);
  read_scenario(settings);
}

void read_advise(std::string_view text) {
  const JsonValue settings = settings_in(text);
  read_advise_options(settings);
  read_question(settings);
}

void read_plan_question(std::string_view text) {
  read_plan(merge_plan_flags(parsed(text), SortedJson::object()));
}

template <const char* const& file>
void read_launch(std::string_view text) {
  if (!read_configuration_text(std::string(text), file, SortedJson::object()))
    throw Error({.file = file, .found = "a file of ours", .expected = "a configuration"});
}
constexpr const char* launch_script = "fuzz.sh";
constexpr const char* launch_yaml = "fuzz.yaml";
constexpr const char* launch_toml = "fuzz.toml";
constexpr const char* launch_json = "fuzz.json";
constexpr const char* launch_python = "fuzz.py";

void read_requests(std::string_view text) { parse_trace(text, format_of(text), "fuzz.csv"); }

void read_job_list(std::string_view text) { parse_jobs(text, job_format_of(text), "fuzz.txt"); }
void read_mix_of_jobs(std::string_view text) {
  figures_of(load_job_mix(entry(text), data_root() / "workloads/catalog"));
}

void read_log(std::string_view text) { observe::read_run_log(as_file("run.log", text)); }
void read_kineto_trace(std::string_view text) { observe::read_kineto(as_file("trace.json", text)); }
void read_export(std::string_view text) { observe::read_nsight(as_file("run.sqlite", text)); }
void read_collective_table(std::string_view text) {
  observe::read_collective_tests(as_file("nccl.txt", text));
}
void read_counter_table(std::string_view text) {
  observe::read_counters(as_file("counters.txt", text));
}
void read_any_measurement(std::string_view text) { observe::read_observed(as_file("any", text)); }

std::string text_of(const fs::path& file, std::size_t lines) {
  std::ifstream stream(file, std::ios::binary);
  if (lines == 0) return {std::istreambuf_iterator<char>(stream), {}};
  std::string text, line;
  for (std::size_t i = 0; i < lines && std::getline(stream, line); ++i) text += line + '\n';
  return text;
}

// The files that "folder/*.json" means; those that tests expect are no seeds.
std::vector<fs::path> files_of(const std::string& pattern) {
  const fs::path like = fs::path(ORRERY_SOURCE_DIR) / pattern;
  const std::string name = like.filename().string();
  const std::size_t star = name.find('*');
  const std::string head = name.substr(0, star), tail = name.substr(star + 1);
  std::vector<fs::path> files;
  for (const auto& found : fs::directory_iterator(like.parent_path()))
    if (const std::string file = found.path().filename().string();
        file.starts_with(head) && file.ends_with(tail) && !file.ends_with(".expected.json"))
      files.push_back(found.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

const std::vector<Reader>& readers() {
  static const std::vector<Reader> all = {
      {"json", {"hw_models/catalog/nics/*.json", "topologies/catalog/*.json"}, 0, read_json},
      {"runs",
       {"validation/measurements/training/*.csv", "validation/measurements/steps/*.csv"},
       20,
       read_runs},
      {"measurements",
       {"validation/measurements/*_power.jsonl", "validation/measurements/off_grid/*.jsonl"},
       12,
       read_measurements},
      {"operators", {"validation/measurements/operators/h200*.csv"}, 12, read_operators},
      {"config", {"tests/workloads/configs/*.json"}, 0, read_model_entry},
      {"model", {"workloads/catalog/models/*.json"}, 0, read_model_entry},
      {"stack", {"workloads/catalog/stacks/*.json"}, 0, read_stack},
      {"device", {"hw_models/catalog/accelerators/*.json"}, 0, read_device_entry},
      {"cluster", {"sim/engine/catalog/clusters/*.json"}, 0, read_cluster_entry},
      {"simulate", {"tests/scenarios/*.json"}, 0, read_simulate},
      {"advise", {"tests/scenarios/advise*.json"}, 0, read_advise},
      {"plan", {"workloads/catalog/questions/*.json"}, 0, read_plan_question},
      {"launch-script", {"tests/launch/configurations/*.sh"}, 0, read_launch<launch_script>},
      {"launch-yaml", {"tests/launch/configurations/*.yaml"}, 0, read_launch<launch_yaml>},
      {"launch-toml", {"tests/launch/configurations/*.toml"}, 0, read_launch<launch_toml>},
      {"launch-json", {"tests/launch/configurations/*.json"}, 0, read_launch<launch_json>},
      {"launch-python", {"tests/launch/configurations/*.py"}, 0, read_launch<launch_python>},
      {"trace",
       {"workloads/catalog/traces/*.jsonl", "workloads/catalog/traces/*.csv"},
       12,
       read_requests},
      {"jobs",
       {"tests/workloads/jobs/*", "workloads/catalog/job_traces/philly*.csv"},
       40,
       read_job_list},
      {"mix", {"workloads/catalog/job_mixes/*.json"}, 0, read_mix_of_jobs},
      {"runlog", {"tests/observe/files/*.log"}, 0, read_log},
      {"kineto", {"tests/observe/files/kineto*.json"}, 0, read_kineto_trace},
      {"nsight", {"tests/observe/files/*.sqlite"}, 0, read_export},
      {"collectives", {"tests/observe/files/nccl*.txt"}, 0, read_collective_table},
      {"counters",
       {"tests/observe/files/*.csv", "tests/observe/files/smi*.txt"},
       0,
       read_counter_table},
      {"observed", {"tests/observe/files/*"}, 0, read_any_measurement}};
  return all;
}

const Reader& reader_named(const std::string& name) {
  for (const Reader& reader : readers())
    if (reader.name == name) return reader;
  std::string names;
  for (const Reader& reader : readers()) names += (names.empty() ? "" : ", ") + reader.name;
  throw Error({.file = "fuzz", .found = '"' + name + '"', .expected = "one of " + names});
}

std::vector<std::string> seed_texts(const Reader& reader) {
  std::vector<std::string> texts;
  for (const std::string& pattern : reader.seeds)
    for (const fs::path& file : files_of(pattern)) texts.push_back(text_of(file, reader.lines));
  return texts;
}

std::string dictionary(const std::vector<std::string>& texts) {
  std::set<std::string> words;
  for (const std::string& text : texts) {
    std::string word;
    for (const char c : text + ' ') {
      const bool within = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
      if (within) {
        word += c;
        continue;
      }
      if (word.size() > 2 && word.size() < 40) words.insert(word);
      word.clear();
    }
  }
  std::string lines;
  for (const std::string& word : words) lines += '"' + word + "\"\n";
  return lines;
}

bool accepts(const Reader& reader, std::string_view text) {
  return is_taken([&] { reader.read(text); });
}

}  // namespace orrery::fuzz
