// Parses the command line and runs the commands.
#include "sim/app/commands.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <unistd.h>

#include <fmt/format.h>

#include "sim/app/catalog_command.h"
#include "sim/app/report.h"
#include "sim/app/settings.h"
#include "sim/app/trace.h"
#include "sim/app/validate.h"
#include "sim/base/interrupt.h"
#include "sim/base/output_file.h"

namespace orrery {
namespace {

struct Globals {
  bool json = false, quiet = false;
  int threads = 0;
  std::uint64_t seed = 0;
};

// What a command's flags were set to.
struct CommonFlags {
  nlohmann::json values = nlohmann::json::object();
  std::string file;
};

void add_settings(CLI::App& command, CommonFlags& flags) {
  for (const Setting& setting : settings()) {
    command.add_option_function<std::string>(
        setting.flag(),
        [&flags, &setting](const std::string& text) {
          flags.values[setting.key] = setting_value(setting, text);
        },
        setting.help);
  }
  command.add_flag_callback(
      "--no-sequence-parallel", [&flags] { flags.values["sequence_parallel"] = false; },
      "the same as --sequence-parallel false");
  command.add_option("file", flags.file, "JSON file with settings; flags win over it");
}

void write_result(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// One line that is rewritten on a terminal; nothing elsewhere.
std::function<void(double, std::int64_t)> progress_line(const Globals& globals) {
  if (globals.quiet || isatty(STDERR_FILENO) == 0) return {};
  return [](double share, std::int64_t simulated) {
    std::fprintf(stderr, "\rsearching: %3.0f%%, %lld layouts simulated ", 100 * share,
                 static_cast<long long>(simulated));
    if (share >= 1) std::fprintf(stderr, "\r\033[K");
    std::fflush(stderr);
  };
}

int run_simulate(const CommonFlags& flags, const std::string& trace, const Globals& globals) {
  const JsonValue settings = merge_settings(flags.file, flags.values);
  const Scenario scenario = read_scenario(settings);
  const Prediction prediction = simulate(scenario, read_simulate_options(settings));
  if (!trace.empty()) write_file(trace, trace_json(scenario, prediction));
  write_result(globals.json ? prediction_json(scenario, prediction)
                            : prediction_report(scenario, prediction));
  return 0;
}

int run_advise(const CommonFlags& flags, AdviseOptions options, const Globals& globals) {
  const JsonValue settings = merge_settings(flags.file, flags.values);
  const Question question = read_question(settings);
  options.rental_per_gpu_hour = read_simulate_options(settings).rental_per_gpu_hour;
  options.threads = globals.threads;
  options.progress = progress_line(globals);
  install_interrupt_handler();
  const Advice advice = advise(question, options);
  if (options.progress) std::fprintf(stderr, "\r\033[K");
  write_result(globals.json ? advice_json(question, advice) : advice_report(question, advice));
  return 0;
}

void add_validate_options(CLI::App& command, ValidateOptions& options) {
  command.add_option("files", options.files, "CSV tables (default: our own measurements)");
  command.add_option("--leave-out", options.leave_out,
                     "fit without each source, model or release in turn, and predict it")
      ->check(CLI::IsMember({"source", "model", "release"}));
  command.add_flag("--fit", options.fit, "print step-level values fitted per stack");
  command.add_flag("--rows", options.rows, "a line for every row");
}

[[noreturn]] void not_part_of_this_version(const std::string& command) {
  throw Error({.file = command, .path = "", .found = "a command of a later version",
               .expected = "advise, simulate, validate or catalog", .nearest = ""});
}

// One line on stderr: CLI11's own messages name the flag; unknown ones get the nearest.
std::string parse_error_text(const CLI::ParseError& error, const CLI::App& app) {
  std::string text = error.what();
  std::replace(text.begin(), text.end(), '\n', ' ');
  for (const CLI::App* command : app.get_subcommands()) {
    std::vector<std::string> known;
    for (const CLI::Option* option : command->get_options()) known.push_back(option->get_name());
    for (const std::string& word : command->remaining()) {
      const std::string near = nearest_name(word, known);
      text = word + ": unknown argument of " + command->get_name() +
             (near.empty() ? "" : "; did you mean " + near + "?");
      return text;
    }
  }
  return text;
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  CLI::App app{"Orrery predicts AI training and inference on clusters and advises layouts.", "orrery"};
  app.require_subcommand(1);
  app.fallthrough();
  Globals globals;
  app.add_flag("--json", globals.json, "print the whole result as JSON");
  app.add_flag("--quiet", globals.quiet, "no progress on stderr");
  app.add_option("--threads", globals.threads, "threads to use (default: all cores)")
      ->check(CLI::Range(0, 4096));
  app.add_option("--seed", globals.seed, "seed of random streams");

  CommonFlags simulate_flags, advise_flags;
  std::string trace;
  AdviseOptions advise_options;
  CLI::App* advise_command = app.add_subcommand("advise", "find the best layouts of a training job");
  add_settings(*advise_command, advise_flags);
  advise_command->add_option("--top", advise_options.top, "layouts to list")
      ->check(CLI::Range(1, 1000));
  advise_command->add_flag("--pareto", advise_options.pareto, "also speed against memory");
  CLI::App* simulate_command = app.add_subcommand("simulate", "predict one layout, explained");
  add_settings(*simulate_command, simulate_flags);
  simulate_command->add_option("--trace", trace, "write a trace for Perfetto to this file");
  ValidateOptions validate_options;
  CLI::App* validate_app = app.add_subcommand("validate", "predictions against measured runs");
  add_validate_options(*validate_app, validate_options);
  CatalogOptions catalog_options;
  CLI::App* catalog_app = app.add_subcommand("catalog", "what is known, with sources");
  catalog_app->add_option("action", catalog_options.action, "list or show")->required();
  catalog_app->add_option("kind", catalog_options.kind, "model, accelerator, cluster, ...");
  catalog_app->add_option("name", catalog_options.name, "name in the catalogue");
  for (const char* later : {"plan", "topology", "calibrate"})
    app.add_subcommand(later, "comes with a later version")->prefix_command()->group("");

  try {
    app.parse(argc, argv);
    if (*advise_command) return run_advise(advise_flags, advise_options, globals);
    if (*simulate_command) return run_simulate(simulate_flags, trace, globals);
    if (*catalog_app) return run_catalog(catalog_options, globals.json);
    if (*validate_app) {
      validate_options.json = globals.json;
      validate_options.quiet = globals.quiet;
      validate_options.threads = globals.threads;
      return validate_command(validate_options);
    }
    not_part_of_this_version(app.get_subcommands().front()->get_name());
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "orrery: %s\n", parse_error_text(error, app).c_str());
  } catch (const Error& error) {
    std::fprintf(stderr, "orrery: %s\n", error.message().c_str());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "orrery: not enough memory for this question\n");
  }
  return 2;
}

}  // namespace orrery
