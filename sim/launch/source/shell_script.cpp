// SPDX-License-Identifier: Apache-2.0
// Follows a shell script as far as its own text decides what it would start.
#include "sim/launch/source/shell_script.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/launch/source/marks.h"
#include "sim/launch/source/shell_follower.h"

namespace orrery {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// "#SBATCH --nodes=16 --exclusive", its options one by one.
void read_batch_line(std::string_view text, const std::string& file, std::int64_t line,
                     std::vector<Said>& out) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == '#' && words.back().empty()) break;
    if (!is_blank(c) && c != '\r')
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with('-')) continue;
    Said said{.file = file, .line = line, .name = words[i], .value = true};
    const std::size_t equals = words[i].find('=');
    if (equals != std::string::npos) {
      said.name = words[i].substr(0, equals);
      said.value = words[i].substr(equals + 1);
    } else if (i + 1 < words.size() && !words[i + 1].empty() && words[i + 1][0] != '-') {
      said.value = words[i + 1];
    }
    out.push_back(std::move(said));
  }
}

std::vector<Said> batch_lines(std::string_view text, const std::string& file) {
  std::vector<Said> out;
  std::int64_t line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view row = text.substr(at, end - at);
    ++line;
    constexpr std::string_view head = "#SBATCH ";
    if (row.starts_with(head)) read_batch_line(row.substr(head.size()), file, line, out);
    at = end + 1;
  }
  return out;
}

// What Slurm tells the script of its own options.
void set_slurm_variables(const std::vector<Said>& batch, ShellVariables& variables) {
  const auto set = [&](const Said& said, const char* name) {
    if (!said.value.is_string()) return;
    const std::string text = said.value.text();
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    if (digits) variables.set(name, {{text, said.line}}, false);
  };
  for (const Said& said : batch) {
    if (said.name == "--nodes" || said.name == "-N") {
      for (const char* name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}) set(said, name);
    } else if (said.name == "--ntasks-per-node") {
      for (const char* name : {"SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) set(said, name);
    } else if (said.name == "--ntasks" || said.name == "-n") {
      for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS"}) set(said, name);
    } else if (said.name == "--gpus-per-node") {
      for (const char* name : {"SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"}) set(said, name);
    }
  }
}

}  // namespace

ShellScript read_shell(const std::string& text, const std::string& file) {
  ShellScript out;
  out.batch = batch_lines(text, file);
  ShellVariables variables(file);
  // Nobody gives it arguments here.
  variables.set("#", {{"0", 0}}, false);
  for (const char* all : {"@", "*"}) variables.set(all, {}, true);
  set_slurm_variables(out.batch, variables);
  follow_shell(shell_tokens(text, file), file, variables, out, 0);
  for (const auto& [name, value] : variables.all())
    if (!value.values.empty() && value.values.front().line > 0)
      out.variables[name] = {value.text(), value.values.front().line};
  return out;
}

}  // namespace orrery
