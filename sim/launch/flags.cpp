// SPDX-License-Identifier: Apache-2.0
// Knows which program a stack is started with, and how its settings are written down.
#include "sim/launch/flags.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "sim/base/json/tree.h"
#include "sim/base/text/words.h"
#include "sim/launch/flag_writer.h"

namespace orrery {
namespace {

bool plain(const std::string& text) {
  return !text.empty() && text.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "_-./+:") == std::string::npos;
}

std::string scalar(const SortedJson& value, FlagStyle style) {
  if (value.is_boolean() && style == FlagStyle::python) return value.get<bool>() ? "True" : "False";
  if (!value.is_string()) return value.dump();
  std::string text = value.get<std::string>();
  switch (style) {
    case FlagStyle::command_line:
    case FlagStyle::overrides:
      return plain(text) ? text : fmt::format("'{}'", text);
    case FlagStyle::yaml:
      return plain(text) ? text : value.dump();
    case FlagStyle::python:
    case FlagStyle::toml:
    case FlagStyle::json:
      return value.dump();
  }
  return text;
}

std::string value_text(const SortedJson& value, FlagStyle style) {
  if (!value.is_array()) return scalar(value, style);
  std::vector<std::string> items;
  for (const auto& item : value) items.push_back(value_text(item, style));
  if (style == FlagStyle::command_line) return joined(items, " ");
  if (style == FlagStyle::overrides) return fmt::format("'[{}]'", joined(items, ","));
  return fmt::format("[{}]", joined(items, ", "));
}

// Hydra has quotes of its own, inside those of the shell, for text with other signs than those of
// names (hydra.cc/docs/advanced/override_grammar/basic).
std::string override_text(const LaunchFlag& flag) {
  const std::string& value = flag.value;
  if (!value.starts_with('\'') || value.starts_with("'["))
    return fmt::format("{}={}", flag.name, value);
  return fmt::format("'{}=\"{}\"'", flag.name, value.substr(1, value.size() - 2));
}

void insert(Json& tree, const std::string& name, const SortedJson& value) {
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos)
    tree[name] = value;
  else
    insert(tree[name.substr(0, dot)], name.substr(dot + 1), value);
}

void write_yaml(const Json& tree, std::size_t indent, std::string& out) {
  for (const auto& [name, value] : tree.items()) {
    out += std::string(indent, ' ') + name + ":";
    if (value.is_object()) {
      out += "\n";
      write_yaml(value, indent + 2, out);
    } else {
      out += " " + value_text(value, FlagStyle::yaml) + "\n";
    }
  }
}

// Values of a table come before its tables.
void write_toml(const Json& tree, const std::string& path, std::string& out) {
  const bool values =
      std::any_of(tree.begin(), tree.end(), [](const Json& value) { return !value.is_object(); });
  if (!path.empty() && values) out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", path);
  for (const auto& [name, value] : tree.items())
    if (!value.is_object())
      out += fmt::format("{} = {}\n", name, value_text(value, FlagStyle::toml));
  for (const auto& [name, value] : tree.items())
    if (value.is_object()) write_toml(value, path.empty() ? name : path + "." + name, out);
}

std::string_view language(FlagStyle style) {
  switch (style) {
    case FlagStyle::command_line:
    case FlagStyle::overrides:
      return "sh";
    case FlagStyle::python:
      return "python";
    case FlagStyle::toml:
      return "toml";
    case FlagStyle::yaml:
      return "yaml";
    case FlagStyle::json:
      return "json";
  }
  return "";
}

LaunchFlags none(const Stack& stack, const std::string& why) {
  return {.note = fmt::format("{} has no flags to paste: {}.", stack.framework, why)};
}

}  // namespace

std::pair<int, int> release_number(const std::string& release) {
  const std::size_t dot = std::min(release.find('.'), release.size());
  const auto number = [](std::string_view text) {
    int value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  const std::string_view all = release;
  return {number(all.substr(0, dot)), dot < all.size() ? number(all.substr(dot + 1)) : 0};
}

LaunchDevice launch_device(const Device& device) {
  if (!device.software) return {.name = device.name};
  const std::vector<std::string>& known = device.software->dispatchers;
  return {.name = device.name,
          .deepep = std::find(known.begin(), known.end(), "deepep") != known.end(),
          .one_queue = device.software->one_queue};
}

void FlagWriter::set(std::string_view key, const std::string& name, const SortedJson& value,
                     bool raw) {
  if (!key.empty()) covers(key);
  std::string text = raw ? value.get<std::string>() : value_text(value, style_);
  const bool is_switch = style_ == FlagStyle::command_line && value.is_boolean();
  if (is_switch && !value.get<bool>()) return;
  out_.flags.push_back({name, is_switch ? "" : std::move(text), std::string(key)});
  if (style_ == FlagStyle::toml || style_ == FlagStyle::yaml || style_ == FlagStyle::json)
    insert(tree_, name, value);
}

void FlagWriter::lacks(std::string_view key, const std::string& what) {
  missing(key, fmt::format("{} has no setting for {}.", out_.program, what));
}

void FlagWriter::missing(std::string_view key, std::string sentence) {
  covers(key);
  out_.missing.push_back({std::string(key), std::move(sentence)});
}

void FlagWriter::implied(std::string_view key, std::string sentence) {
  covers(key);
  out_.implied.push_back({std::string(key), std::move(sentence)});
}

std::string FlagWriter::text(const Layout& layout) const {
  const std::string ranks = fmt::format("{} accelerator{}: dp {} follows from the other sizes",
                                        layout.gpus(), layout.gpus() == 1 ? "" : "s", layout.dp);
  std::string out;
  switch (style_) {
    case FlagStyle::command_line:
    case FlagStyle::overrides: {
      std::vector<std::string> lines;
      for (const LaunchFlag& f : out_.flags)
        lines.push_back(style_ == FlagStyle::overrides ? override_text(f)
                        : f.value.empty()              ? f.name
                                                       : fmt::format("{} {}", f.name, f.value));
      for (std::size_t i = 0; i < when_.size(); ++i)
        out += fmt::format("export {}  # {}\n", out_.environment[i], when_[i]);
      return fmt::format("# {}\n{}{}\n", ranks, out, joined(lines, " \\\n"));
    }
    case FlagStyle::python:
      for (const LaunchFlag& f : out_.flags) out += fmt::format("{} = {}\n", f.name, f.value);
      return fmt::format("# {}\n{}", ranks, out);
    case FlagStyle::toml:
      write_toml(tree_, "", out);
      return fmt::format("# {}\n{}", ranks, out);
    case FlagStyle::yaml:
      write_yaml(tree_, 0, out);
      return fmt::format("# {}\n{}", ranks, out);
    case FlagStyle::json:
      return tree_.dump(2) + "\n";
  }
  return out;
}

LaunchFlags FlagWriter::finish(const Layout& layout, std::string note) && {
  const SortedJson is = to_json(layout), was = to_json(Layout());
  const auto in = [](const SortedJson& json, const std::string& key) {
    return json.contains(key) ? json.at(key) : SortedJson();
  };
  for (const std::string& key : layout_keys()) {
    if (covered_.count(key) > 0 || in(is, key) == in(was, key)) continue;
    missing(key, fmt::format("{} has no flag for {} {}.", out_.program, key,
                             value_text(in(is, key), FlagStyle::json)));
  }
  out_.language = language(style_);
  out_.text = text(layout);
  out_.note = std::move(note);
  return std::move(out_);
}

static LaunchFlags flags_of_launcher(const Layout& layout, const Model& model, const Job& job,
                                     const Stack& stack, const LaunchDevice& device) {
  if (!is_training(job.task)) return none(stack, "the job does not train");
  switch (stack.launcher) {
    case Launcher::megatron_lm:
    case Launcher::megatron_bridge:
    case Launcher::nemo2:
    case Launcher::nemo1:
      return megatron_flags(layout, model, job, stack, device);
    case Launcher::megatron_deepspeed:
      return megatron_deepspeed_flags(layout, model, job, stack);
    case Launcher::torchtitan:
      return torchtitan_flags(layout, model, job, stack);
    case Launcher::automodel:
      return automodel_flags(layout, model, job, stack, device);
    case Launcher::nanotron:
      return nanotron_flags(layout, model, job, stack);
    case Launcher::deepspeed:
      return deepspeed_flags(layout, model, job, stack);
    case Launcher::primus:
      return primus_flags(layout, model, job, stack, device);
    case Launcher::maxtext:
      return maxtext_flags(layout, model, job, stack);
    case Launcher::neuronx:
      return neuronx_flags(layout, model, job, stack);
    case Launcher::gaudi_megatron:
      return gaudi_megatron_flags(layout, model, job, stack);
    case Launcher::scripts:
      return none(stack, "its runs are set up in scripts of their own");
    case Launcher::unpublished:
      return none(stack, "it is not published");
  }
  return {};
}

LaunchFlags launch_flags(const Layout& layout, const Model& model, const Job& job,
                         const Stack& stack, const LaunchDevice& device) {
  LaunchFlags flags = flags_of_launcher(layout, model, job, stack, device);
  const bool drops = job.attention_dropout > 0 || job.hidden_dropout > 0;
  const bool told = std::any_of(flags.flags.begin(), flags.flags.end(), [](const auto& flag) {
    return flag.name.find("dropout") != std::string::npos;
  });
  if (drops && !told && !flags.flags.empty())
    flags.missing.push_back(
        {"", fmt::format("Dropout is set where {} describes the model.", flags.program)});
  if (!stack.launch_note.empty()) flags.note = stack.launch_note + " " + flags.note;
  return flags;
}

LaunchFlags launch_flags(const Scenario& s) {
  return launch_flags(s.layout, s.model, s.job, s.stack, launch_device(s.cluster.device));
}

}  // namespace orrery
