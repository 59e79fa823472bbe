// SPDX-License-Identifier: Apache-2.0
// Reads files that people start programs with.
#include "sim/launch/configurations/configuration.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/base/errors/file_guard.h"
#include "sim/base/text/words.h"
#include "sim/launch/configurations/commands.h"
#include "sim/launch/programs/program_readers.h"
#include "sim/launch/source/given_text.h"
#include "sim/launch/source/marks.h"
#include "sim/launch/source/shell_script.h"
#include "sim/launch/source/trees.h"
#include "workloads/stack/stack.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

enum class Form : std::uint8_t { shell, yaml, toml, json, python };

// What is left of a line of a text without blanks and comments; empty lines are passed over.
std::string_view first_line(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view row = text.substr(at, end - at);
    at = end + 1;
    while (!row.empty() && (row.front() == ' ' || row.front() == '\t')) row.remove_prefix(1);
    while (!row.empty() && (row.back() == ' ' || row.back() == '\r')) row.remove_suffix(1);
    if (!row.empty() && row.front() != '#' && row != "---") return row;
  }
  return {};
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  });
}

// By its name where that tells, else by its first line.
Form form_of(const std::string& text, const std::string& file) {
  const auto ends = [&](std::initializer_list<const char*> extensions) {
    return std::any_of(extensions.begin(), extensions.end(),
                       [&](const char* extension) { return file.ends_with(extension); });
  };
  if (ends({".json"})) return Form::json;
  if (ends({".yaml", ".yml"})) return Form::yaml;
  if (ends({".toml"})) return Form::toml;
  if (ends({".py"})) return Form::python;
  if (ends({".sh", ".slurm", ".sbatch", ".bash"}) || text.starts_with("#!")) return Form::shell;
  const std::string_view row = first_line(text);
  if (row.starts_with('{')) return Form::json;
  if (row.starts_with('[') && row.ends_with(']')) return Form::toml;
  const std::size_t colon = row.find(':'), equals = row.find('=');
  if (colon != std::string_view::npos && is_name(row.substr(0, colon)) &&
      (colon + 1 == row.size() || row[colon + 1] == ' '))
    return Form::yaml;
  if (equals != std::string_view::npos && equals > 1 && row[equals - 1] == ' ' &&
      is_name(row.substr(0, equals - 1)))
    return row.substr(0, equals).find('.') == std::string_view::npos ? Form::toml : Form::python;
  return Form::shell;
}

std::vector<Said> sections(const std::string& text, const std::string& file, Form form) {
  switch (form) {
    case Form::yaml: {
      std::vector<Said> said = read_yaml(text, file);
      resolve_references(said);
      return said;
    }
    case Form::toml:
      return read_toml(text, file);
    case Form::json:
      return read_json_sections(text, file);
    case Form::python:
      return read_python(text, file);
    case Form::shell:
      break;
  }
  return {};
}

void read_program(GivenProgram program, GivenReading& reading, const GivenWords& words) {
  switch (program) {
    case GivenProgram::primus:
      return read_primus(reading, words);
    case GivenProgram::automodel:
      return read_automodel(reading, words);
    case GivenProgram::neuronx:
      return read_neuronx(reading, words);
    case GivenProgram::nanotron:
      return read_nanotron(reading, words);
    case GivenProgram::torchtitan:
      return read_titan(reading, words);
    case GivenProgram::nemo1:
      return read_nemo1(reading, words);
    case GivenProgram::nemo2:
      return read_nemo2(reading, words);
    case GivenProgram::megatron_bridge:
      return read_bridge(reading, words);
    case GivenProgram::maxtext:
      return read_maxtext(reading, words);
    case GivenProgram::deepspeed:
    case GivenProgram::trainer:
      return read_deepspeed(reading, words);
    case GivenProgram::trtllm:
      return read_trtllm(reading, words);
    case GivenProgram::megatron_lm:
      return read_megatron(reading, words);
    case GivenProgram::megatron_deepspeed:
      return read_megatron_deepspeed(reading, words);
    case GivenProgram::gaudi_script:
      return read_gaudi(reading, words);
    case GivenProgram::vllm:
      return read_vllm(reading, words);
    case GivenProgram::sglang:
      return read_sglang(reading, words);
  }
}

class Configuration {
 public:
  Configuration(std::string text, std::string file, const SortedJson& asked)
      : text_(std::move(text)), file_(std::move(file)), asked_(asked) {
    run_.file = file_;
  }

  std::optional<GivenRun> read() {
    const Form form = form_of(text_, file_);
    if (form == Form::shell)
      read_script();
    else if (!read_sections(form))
      return std::nullopt;
    finish();
    return std::move(run_);
  }

 private:
  bool read_sections(Form form);
  void read_script();
  void read_variables(const ShellScript& script);
  void add_named_files();
  void add_named_file(const Said& said);
  void finish();
  void name_stack(GivenReading& reading);
  [[noreturn]] void refuse() const;

  std::string text_, file_;
  const SortedJson& asked_;
  GivenRun run_;
  std::optional<GivenProgram> program_;
  GivenWords words_;
  int others_ = 0;
  std::vector<GivenItem> absent_;  // files that it names and that are not here
};

void Configuration::refuse() const {
  throw Error({.file = file_,
               .found = "no settings of a program that is known",
               .expected =
                   "Megatron-LM, NeMo, Megatron-Bridge, TorchTitan, DeepSpeed, MaxText, "
                   "nanotron, vLLM, SGLang or TensorRT-LLM, or settings of orrery in JSON"});
}

bool Configuration::read_sections(Form form) {
  if (form == Form::json && first_line(text_).substr(0, 1) != "{") return false;
  words_.said = sections(text_, file_, form);
  const auto known = program_of(words_.said);
  if (!known && form == Form::json) return false;
  if (!known) refuse();
  program_ = known->program;
  add_named_files();
  return true;
}

void Configuration::read_variables(const ShellScript& script) {
  for (const auto& [name, value] : script.variables)
    if (name.starts_with("HL_")) words_.said.push_back({file_, value.line, name, value.text});
  if (words_.said.empty()) refuse();
  program_ = GivenProgram::gaudi_script;
}

void Configuration::read_script() {
  words_.script = read_shell(text_, file_);
  auto started = started_command(words_.script, file_, others_);
  const auto is_gaudi = [](const auto& one) { return one.first.starts_with("HL_TP"); };
  const auto& variables = words_.script.variables;
  if (std::any_of(variables.begin(), variables.end(), is_gaudi) && (!started || started->score < 3))
    return read_variables(words_.script);
  if (!started) refuse();
  program_ = started->program;
  words_.said = std::move(started->said);
  words_.launcher = std::move(started->launcher);
  for (Said& said : words_.said) {
    if (!said.name.empty() || !said.value.is_string()) continue;
    // The first word of a server's command is its model.
    if (program_ && is_server(*program_) && &said == &words_.said.front()) said.name = "--model";
  }
  add_named_files();
  if (const auto known = program_of(words_.said); !program_ && known) program_ = known->program;
  const auto has = [&](const char* name) {
    return std::any_of(words_.said.begin(), words_.said.end(), [&](const Said& said) {
      std::string dashed = said.name;
      std::replace(dashed.begin(), dashed.end(), '_', '-');
      return dashed == name;
    });
  };
  if (program_ == GivenProgram::megatron_lm &&
      (has("--deepspeed") || has("--zero-stage") || has("--deepspeed-config")))
    program_ = GivenProgram::megatron_deepspeed;
  if (program_ == GivenProgram::trainer && (has("--deepspeed") || has("zero-optimization.stage")))
    program_ = GivenProgram::deepspeed;
  if (!program_) refuse();
}

// Flags and keys whose value is another file of settings, and words that are one.
void Configuration::add_named_files() {
  static const std::vector<std::string> names = {
      "deepspeed",   "deepspeed_config",
      "ds_config",   "job.config_file",
      "config_file", "config",
      "-c",          "extra_llm_api_options",
      "config_yml",  "deepspeed_config.deepspeed_config_file"};
  std::vector<Said> said;
  std::swap(said, words_.said);
  for (Said& one : said) {
    std::string plain = one.name.starts_with("--") ? one.name.substr(2) : one.name;
    std::replace(plain.begin() + (plain.starts_with('-') ? 1 : 0), plain.end(), '-', '_');
    const std::string value = one.value.is_string() ? one.value.text() : "";
    const bool file = value.ends_with(".json") || value.ends_with(".yaml") ||
                      value.ends_with(".yml") || value.ends_with(".toml");
    const bool written = words_.script.files.count(value) > 0;
    const bool names_one =
        one.name.empty() || std::find(names.begin(), names.end(), plain) != names.end();
    if ((file || written) && names_one)
      add_named_file(one);
    else
      words_.said.push_back(std::move(one));
  }
  std::erase_if(words_.said, [](const Said& one) { return one.name.empty(); });
  for (Said& one : words_.said)
    if (one.name.starts_with("deepspeed.")) one.name = one.name.substr(10);
}

// Its settings come before those of the command, which win.
void Configuration::add_named_file(const Said& said) {
  const std::string name = said.value.text();
  std::string text, place = name;
  if (const auto written = words_.script.files.find(name); written != words_.script.files.end()) {
    text = written->second;
    place = fmt::format("{}, in {}", shown(name), file_);
    if (has_mark(text)) {
      absent_.push_back({said.place(), said.name, shown(name), "", "", unknown_reason(text)});
      return;
    }
    check_given_text(text, place);
  } else {
    const fs::path path = fs::path(file_).parent_path() / name;
    check_file_allowed(path);
    std::error_code ignored;
    if (has_mark(name) || !fs::is_regular_file(path, ignored)) {
      const std::string why =
          has_mark(name) ? unknown_reason(name) : "the file that it names is not there";
      // A word without a flag is the file of the program's own defaults, or of its data.
      if (!said.name.empty())
        absent_.push_back({said.place(), said.name, shown(name), "", "", why});
      return;
    }
    text = given_text(path);
    place = path.string();
  }
  const Form form = form_of(text, name);
  if (form == Form::shell) return;
  std::vector<Said> more = sections(text, place, form);
  run_.also.push_back(place);
  words_.said.insert(words_.said.begin(), more.begin(), more.end());
}

void Configuration::name_stack(GivenReading& reading) {
  if (asked_.contains("stack") || reading.has("stack") || reading.facts().stack.empty()) return;
  const std::string& usual = reading.facts().stack;
  const std::string release = named_release(words_.script, *program_);
  const std::string name = usual.substr(0, usual.find('@'));
  const fs::path folder = data_root() / "workloads/catalog/stacks";
  if (!release.empty() && !known_release(name + "@" + release, folder).empty()) {
    run_.understood.push_back({.place = file_,
                               .name = "the release",
                               .value = release,
                               .key = "stack",
                               .becomes = name + "@" + release});
    run_.settings["stack"] = name + "@" + release;
    return;
  }
  reading.assume("the release", "stack", usual,
                 "the file names none: the newest that is known of this program");
}

void Configuration::finish() {
  const auto more = program_of(words_.said);
  if (program_ == GivenProgram::trainer && more && more->program == GivenProgram::deepspeed)
    program_ = GivenProgram::deepspeed;
  GivenReading reading(run_, program_facts(*program_), asked_);
  read_program(*program_, reading, words_);
  const bool whole = absent_.empty();
  for (GivenItem& item : absent_) run_.not_understood.push_back(std::move(item));
  if (others_ > 0)
    reading.missing("other commands", fmt::format("{} more command{} of this program: the first "
                                                  "with the most settings is read",
                                                  others_, others_ == 1 ? "" : "s"));
  // What another file says that is not here is no default of the program.
  if (whole) reading.apply_defaults();
  name_stack(reading);
  if (run_.settings.contains("vpp") && reading.size_or_one("vpp") == 1) run_.settings.erase("vpp");
  if (reading.size_or_one("cp") == 1)
    for (const char* key : {"context_parallel", "context_inner"}) run_.settings.erase(key);
  // What the question says wins, and what follows from it is left to it.
  const auto asks = [&](const char* key) { return asked_.contains(key); };
  if (asks("gpus") || asks("tp") || asks("pp") || asks("cp")) run_.settings.erase("dp");
  for (const auto& [key, value] : asked_.items()) run_.settings.erase(key);
}

}  // namespace

std::optional<GivenRun> read_configuration_text(const std::string& text, const std::string& file,
                                                const SortedJson& asked) {
  return Configuration(text, file, asked).read();
}

std::optional<GivenRun> read_configuration(const fs::path& file, const SortedJson& asked) {
  check_file_allowed(file);
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return std::nullopt;
  // JSON may be a question of our own, whose reader says what is wrong with it.
  if (file.extension() == ".json") {
    const JsonValue document = JsonValue::load(file);
    if (!document.is_object() || !program_of(json_sections(document.raw(), file.string())))
      return std::nullopt;
  }
  return read_configuration_text(given_text(file), file.string(), asked);
}

}  // namespace orrery
