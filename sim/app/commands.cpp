// Parses the command line and runs the commands.
#include "sim/app/commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>

#include "sim/app/calibrate_command.h"
#include "sim/app/catalog_command.h"
#include "sim/app/exit_code.h"
#include "sim/app/plan_command.h"
#include "sim/app/plan_keys.h"
#include "sim/app/report.h"
#include "sim/app/settings.h"
#include "sim/app/topology_command.h"
#include "sim/app/trace.h"
#include "sim/app/validate.h"
#include "sim/base/cannot_exist.h"
#include "sim/base/interrupt.h"
#include "sim/base/output_file.h"

namespace orrery {
namespace {

constexpr const char* known_commands =
    "advise, simulate, plan, validate, calibrate, topology or catalog";

struct Globals {
  bool json = false, quiet = false, markdown = false;
  int threads = 0;
  std::optional<std::uint64_t> seed;
};

// What a command's flags were set to.
struct CommonFlags {
  nlohmann::json values = nlohmann::json::object();
  std::string file;
};

const char* type_name(SettingKind kind) {
  switch (kind) {
    case SettingKind::text:
      return "NAME";
    case SettingKind::integer:
      return "N";
    case SettingKind::number:
      return "X";
    case SettingKind::on_off:
      return "true|false";
    case SettingKind::list:
      return "A,B";
    case SettingKind::file:
      return "FILE";
    case SettingKind::json:
      return "JSON";
    case SettingKind::settings:
      return "FILE|JSON";
  }
  return "";
}

void add_settings(CLI::App& command, SettingOf own, CommonFlags& flags) {
  for (const Setting& setting : settings()) {
    if (setting.command != SettingOf::both && setting.command != own) continue;
    command
        .add_option_function<std::string>(
            setting.flag(),
            [&flags, &setting](const std::string& text) {
              flags.values[setting.key] = setting_value(setting, text);
            },
            setting.help)
        ->type_name(type_name(setting.kind));
  }
  command.add_flag_callback(
      "--no-sequence-parallel", [&flags] { flags.values["sequence_parallel"] = false; },
      "the same as --sequence-parallel false");
  command.add_option("file", flags.file, "JSON file with settings; flags win over it")
      ->type_name("FILE");
}

void write_result(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0)
    throw Error({.file = "stdout",
                 .found = std::strerror(errno),
                 .expected = "a place that takes the result"});
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

std::string page(const Document& document, const Globals& globals) {
  return globals.markdown ? document.markdown() : document.text();
}

// A seed where nothing is drawn would change nothing.
void refuse_seed(const Globals& globals, const std::string& expected) {
  if (globals.seed)
    throw Error(
        {.file = "--seed", .found = fmt::format("{}", *globals.seed), .expected = expected});
}

ExitCode run_simulate(const CommonFlags& flags, const Globals& globals) {
  const JsonValue settings = merge_settings(flags.file, flags.values);
  Scenario scenario = read_scenario(settings);
  if (scenario.network == NetworkMode::ideal)
    refuse_seed(globals, "nothing without --network flow, which draws hashes");
  scenario.conditions.seed = globals.seed.value_or(scenario.conditions.seed);
  const ModelError error = load_model_error(data_root() / "validation/model_error.json");
  SimulateOptions options = read_simulate_options(settings);
  options.model_error = &error;
  const auto trace = settings.find("trace");
  if (trace) check_writable_file(trace->text());
  const Prediction prediction = simulate(scenario, options);
  if (trace) write_file(trace->text(), trace_json(scenario, prediction));
  const Reasons reasons = reasons_for(scenario, {.memory_reserve = read_memory_reserve(settings)});
  write_result(
      globals.json
          ? prediction_json(scenario, prediction, reasons)
          : page(prediction_document(scenario, prediction, reasons, globals.markdown), globals));
  return verdict_of(prediction.memory).exists() ? ExitCode::answer : ExitCode::cannot_exist;
}

ExitCode run_advise(const CommonFlags& flags, const Globals& globals) {
  install_interrupt_handler();  // from the start: what is known by then is printed
  const JsonValue settings = merge_settings(flags.file, flags.values);
  const Question question = read_question(settings);
  check_wiring(question.cluster);
  AdviseOptions options = read_advise_options(settings);
  options.like = read_like(settings, question.job);
  options.threads = globals.threads;
  options.progress = progress_line(globals);
  const ModelError error = load_model_error(data_root() / "validation/model_error.json");
  options.model_error = &error;
  const Advice advice = advise(question, options);
  if (options.progress) std::fprintf(stderr, "\r\033[K");
  // Nothing to advise, whatever the memory.
  if (advice.best.empty() && advice.considered == 0 && !advice.stopped_early)
    throw CannotExist({.file = "advise",
                       .found = "no layout to search: " + advice.why,
                       .expected = "limits that leave at least one layout"});
  write_result(globals.json ? advice_json(question, advice)
                            : page(advice_document(question, advice, globals.markdown), globals));
  const bool found = !advice.best.empty() || advice.stopped_early;
  return found ? ExitCode::answer : ExitCode::cannot_exist;
}

void run_topology(TopologyOptions& options, const Globals& globals) {
  if (options.traffic.pattern.empty())
    refuse_seed(globals, "nothing without --traffic, which draws hashes");
  options.traffic.seed = globals.seed.value_or(0);
  write_result(topology_text(options, globals.json));
}

// A flag that names a file or a folder: an empty name would read as a flag that was not given.
void add_path(CLI::App& command, const char* flag, std::string& path, const char* help,
              const char* type = "FILE") {
  command
      .add_option_function<std::string>(
          flag,
          [flag, &path, type](const std::string& text) {
            if (text.empty())
              throw Error({.file = flag,
                           .found = in_quotes(text),
                           .expected = type == std::string("DIR") ? "a folder" : "a file"});
            path = text;
          },
          help)
      ->type_name(type);
}

void add_plan_options(CLI::App& command, PlanCommand& options) {
  command.add_option("question", options.question,
                     "JSON file, or a name that `orrery catalog list question` prints; flags win "
                     "over it. Lists: a,b. Ranges: 1024..16384 (each twice the last), "
                     "1024..16384x4, \"10 MW..50 MW+20 MW\"");
  for (const PlanKey& key : plan_keys())
    command
        .add_option_function<std::string>(
            key.flag(),
            [&options, &key](const std::string& text) {
              options.flags[key.key] = plan_flag_value(key, text);
            },
            key.help)
        ->type_name(key.text == PlanText::json ? "JSON" : "VALUES");
}

void add_validate_options(CLI::App& command, ValidateOptions& options) {
  command.add_option("files", options.files,
                     "CSV tables, lines of calibrate measure (default: our own measurements)");
  command.add_option_function<std::string>(
      "--leave-out",
      [&options](const std::string& text) {
        const std::vector<std::string> groups = {"source", "model", "release", "blind"};
        if (std::find(groups.begin(), groups.end(), text) == groups.end())
          throw Error({.file = "--leave-out",
                       .found = in_quotes(text),
                       .expected = "one of source, model, release, blind",
                       .nearest = nearest_name(text, groups)});
        options.leave_out = text;
      },
      "fit without each source, model or release, and predict it; or blind");
  add_path(command, "--model-error", options.model_error,
           "with --leave-out blind: write the left-out errors to this file");
  command.add_flag("--fit", options.fit, "print step-level values fitted per stack")
      ->disable_flag_override();
  command.add_flag("--rows", options.rows, "a line for every row")->disable_flag_override();
  command
      .add_flag("--details", options.details,
                "rows that are farthest off and why, errors by scale, batch, ...")
      ->disable_flag_override();
  command
      .add_flag("--advise", options.advise,
                "advise every published job anew, compare with what was run (minutes)")
      ->disable_flag_override();
  add_path(command, "--gates", options.gates, "judge this file of gates; exit code 1 if one fails");
  add_path(command, "--write-gates", options.write_gates, "make or tighten this file of gates");
  add_path(command, "--report", options.report, "write a page with pictures into this folder",
           "DIR");
  command.add_flag("--kernels", options.kernels, "of our own measurements only single kernels")
      ->disable_flag_override();
  command.add_flag("--regions", options.regions, "small, medium and large kernels apart")
      ->disable_flag_override();
}

void add_catalog_options(CLI::App& command, CatalogOptions& options) {
  command.add_option("action", options.action, "list or show");
  command.add_option("kind", options.kind, "model, accelerator, cluster, ...");
  command.add_option("name", options.name, "name in the catalogue, or a file");
}

void add_calibrate_options(CLI::App& command, CalibrateOptions& options) {
  command.add_option("action", options.action,
                     "measure (flags of validation/microbench/measure), fit, show or compare");
  command.add_option("files", options.files,
                     "fit, show: measured lines or tables; compare: one or two of a measured "
                     "folder, a calibration file, a device");
  command.add_option("--device", options.device, "accelerator of the catalogue");
  command.add_option("--based-on", options.based_on,
                     "calibration whose curves stand where no table is given");
  add_path(command, "--output", options.output, "calibration file to write");
  add_path(command, "--stack-output", options.stack_output,
           "overlay of plain PyTorch to write: what it costs the host and the memory");
  add_path(command, "--plots", options.plots, "folder for pictures of measured and fitted curves",
           "DIR");
}

void add_traffic_options(CLI::App& command, TrafficQuestion& traffic) {
  command
      .add_option("--traffic", traffic.pattern,
                  "print what routing does to it instead: ring, crossing-ring, all-to-all, "
                  "spread-all-to-all or all-to-all-all")
      ->type_name("PATTERN");
  const auto number = [&command](const char* flag, const char* help, auto&& set) {
    command
        .add_option_function<std::string>(
            flag,
            [flag, set](const std::string& text) {
              set(whole_number(flag, text, 1, INT64_C(1) << 20));
            },
            help)
        ->type_name("N");
  };
  number("--group", "accelerators in an all-to-all (default: 64)",
         [&traffic](std::int64_t n) { traffic.group = n; });
  command.add_option("--routing", traffic.routing, "ecmp, adaptive or spray (default: compare)")
      ->type_name("NAME");
  number("--paths-per-flow", "queue pairs of a flow under ecmp (default: 1, 4 and 16)",
         [&traffic](std::int64_t n) { traffic.paths = n; });
  number("--rounds", "draws of the hash (default: 4 to 16, by size)",
         [&traffic](std::int64_t n) { traffic.rounds = n; });
}

void add_topology_options(CLI::App& command, TopologyOptions& options) {
  command.add_option("name", options.name,
                     "cluster or fabric of the catalogue (a name of both: the cluster), or a file; "
                     "one with scale_up or scale_out is a fabric");
  command
      .add_option_function<std::string>(
          "--gpus",
          [&options](const std::string& text) {
            options.gpus = whole_number("--gpus", text, 1, INT64_C(1) << 40);
          },
          "accelerators (default: one full group of the largest tier that has a size)")
      ->type_name("N");
  add_path(command, "--dot", options.dot_file, "write the scheme for Graphviz");
  add_path(command, "--svg", options.svg_file, "write a picture of the scheme");
  add_traffic_options(command, options.traffic);
}

void add_globals(CLI::App& app, Globals& globals) {
  app.add_flag("--json", globals.json, "print the whole result as JSON")->disable_flag_override();
  app.add_flag("--quiet", globals.quiet, "no progress on stderr")->disable_flag_override();
  app.add_option_function<std::string>(
         "--threads",
         [&globals](const std::string& text) {
           globals.threads = static_cast<int>(whole_number("--threads", text, 0, 4096));
         },
         "threads to use (default: all cores)")
      ->type_name("N");
  app.add_option_function<std::string>(
         "--seed",
         [&globals](const std::string& text) {
           globals.seed = static_cast<std::uint64_t>(
               whole_number("--seed", text, 0, std::numeric_limits<std::int64_t>::max()));
         },
         "of random draws (plan, network flow, --traffic)")
      ->type_name("N");
}

void add_markdown(CLI::App& command, Globals& globals) {
  command
      .add_flag("--markdown", globals.markdown, "print the whole report as markdown, tables uncut")
      ->disable_flag_override();
}

// The first word that no command took.
[[noreturn]] void unknown_word(const std::string& word, const CLI::App& app) {
  const bool is_flag = word.starts_with("-") && word.size() > 1;
  const std::vector<CLI::App*> commands = app.get_subcommands();
  if (commands.empty() && !is_flag) {
    throw Error({.found = in_quotes(word),
                 .expected = known_commands,
                 .nearest = nearest_name(word, {"advise", "simulate", "plan", "validate",
                                                "calibrate", "topology", "catalog"})});
  }
  const std::string owner = commands.empty() ? "" : commands.front()->get_name();
  const std::string help = fmt::format("`orrery {}{}--help`", owner, owner.empty() ? "" : " ");
  if (!is_flag)
    throw Error({.file = owner,
                 .found = in_quotes(word) + ", an argument too many",
                 .expected = "what " + help + " lists"});
  const std::string flag = word.substr(0, word.find('='));
  for (const CLI::App* other : app.get_subcommands({}))
    if (!owner.empty() && other->get_option_no_throw(flag) != nullptr)
      throw Error({.file = owner,
                   .found = flag + ", a flag of " + other->get_name(),
                   .expected = "what " + help + " lists"});
  std::vector<std::string> known;
  for (const CLI::App* part : {&app, commands.empty() ? &app : commands.front()})
    for (const CLI::Option* option : part->get_options())
      if (option->get_name().starts_with("--")) known.push_back(option->get_name());
  throw Error({.file = owner,
               .found = "the unknown flag " + in_quotes(flag),
               .expected = "one that " + help + " lists",
               .nearest = nearest_name(flag, known)});
}

// CLI11's complaint in our words.
Error flag_error(const CLI::ParseError& error) {
  std::string text = error.what();
  std::replace(text.begin(), text.end(), '\n', ' ');
  const std::string flag = text.substr(0, text.find(':'));
  if (text.find("At Most") != std::string::npos)
    return Error({.file = flag, .found = "it more than once", .expected = "it once"});
  if (text.find("missing") != std::string::npos)
    return Error({.file = flag, .found = "nothing after it", .expected = "a value"});
  if (text.find("flag override") != std::string::npos)
    return Error({.file = "--" + text.substr(0, text.find(' ')),
                  .found = "a value",
                  .expected = "nothing after this flag"});
  return Error({.found = text, .expected = "what `orrery --help` lists"});
}

// Runs a command whose settings may come from flags.
template <class Run>
int run_with_flags(Run&& run, const CommonFlags& flags, const Globals& globals) {
  try {
    return to_int(run(flags, globals));
  } catch (const CannotExist&) {
    throw;
  } catch (const Error& error) {
    throw named_by_flag(error, flags.file, flags.values);
  }
}

// What follows `calibrate measure`, whose flags are the script's own; nullopt for other commands.
std::optional<std::vector<std::string>> measure_arguments(int argc, const char* const* argv) {
  int at = 1;
  while (at < argc && std::string_view(argv[at]) == "--quiet") ++at;
  if (at + 1 >= argc || std::string_view(argv[at]) != "calibrate" ||
      std::string_view(argv[at + 1]) != "measure")
    return std::nullopt;
  return std::vector<std::string>(argv + at + 2, argv + argc);
}

int parse_and_run(CLI::App& app, int argc, const char* const* argv) {
  if (const auto arguments = measure_arguments(argc, argv)) calibrate_measure(*arguments);
  Globals globals;
  add_globals(app, globals);
  CommonFlags simulate_flags, advise_flags;
  ValidateOptions validate_options;
  CatalogOptions catalog_options;
  CalibrateOptions calibrate_options;
  TopologyOptions topology_options;
  CLI::App* advise_app = app.add_subcommand("advise", "find the best layouts of a training job");
  CLI::App* simulate_app = app.add_subcommand("simulate", "predict one layout, explained");
  CLI::App* plan_app =
      app.add_subcommand("plan", "which machine, and how many, trains a model by a date or budget");
  CLI::App* validate_app = app.add_subcommand("validate", "predictions against measured runs");
  CLI::App* catalog_app = app.add_subcommand("catalog", "what is known, with sources");
  CLI::App* calibrate_app = app.add_subcommand(
      "calibrate", "measure a GPU, fit and show its curves, ask whether it is healthy");
  CLI::App* topology_app =
      app.add_subcommand("topology", "switches, cables, reach, cost and picture of a network");
  add_calibrate_options(*calibrate_app, calibrate_options);
  add_topology_options(*topology_app, topology_options);
  add_settings(*advise_app, SettingOf::advise, advise_flags);
  add_settings(*simulate_app, SettingOf::simulate, simulate_flags);
  for (CLI::App* command : {advise_app, simulate_app, plan_app}) add_markdown(*command, globals);
  PlanCommand plan_options;
  add_plan_options(*plan_app, plan_options);
  add_validate_options(*validate_app, validate_options);
  add_catalog_options(*catalog_app, catalog_options);
  for (CLI::App* command : app.get_subcommands({})) command->allow_extras();

  app.parse(argc, argv);
  if (globals.json && globals.markdown)
    throw Error({.file = "--markdown", .found = "--json too", .expected = "one of the two"});
  if (const auto words = app.remaining(true); !words.empty()) unknown_word(words.front(), app);
  for (const CLI::App* command : {advise_app, validate_app, catalog_app, calibrate_app})
    if (*command) refuse_seed(globals, "nothing: " + command->get_name() + " draws nothing");
  if (*advise_app) return run_with_flags(run_advise, advise_flags, globals);
  if (*simulate_app) return run_with_flags(run_simulate, simulate_flags, globals);
  if (*plan_app) {
    plan_options.json = globals.json;
    plan_options.markdown = globals.markdown;
    plan_options.quiet = globals.quiet;
    plan_options.threads = globals.threads;
    plan_options.seed = globals.seed;
    const PlanAnswer answer = plan_answer(plan_options);
    write_result(answer.text);
    return to_int(answer.code);
  }
  if (*catalog_app) {
    write_result(catalog_text(catalog_options, globals.json));
    return 0;
  }
  if (*topology_app) {
    run_topology(topology_options, globals);
    return 0;
  }
  if (*calibrate_app) {
    calibrate_options.json = globals.json;
    return calibrate_command(calibrate_options);
  }
  if (*validate_app) {
    validate_options.json = globals.json;
    validate_options.quiet = globals.quiet;
    validate_options.threads = globals.threads;
    return validate_command(validate_options);
  }
  if (argc > 1) throw Error({.found = "no command", .expected = known_commands});
  write_result(app.help());
  return 0;
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  CLI::App app{"Orrery predicts AI training and inference on clusters and advises layouts.",
               "orrery"};
  app.require_subcommand(0, 1);
  app.fallthrough();
  app.allow_extras();
  app.footer("`orrery COMMAND --help` lists the flags of a command.");
  try {
    return parse_and_run(app, argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "orrery: %s\n", flag_error(error).message().c_str());
  } catch (const Error& error) {
    std::fprintf(stderr, "orrery: %s\n", error.message().c_str());
    if (dynamic_cast<const CannotExist*>(&error)) return to_int(ExitCode::cannot_exist);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "orrery: not enough memory for this question\n");
    return to_int(ExitCode::machine_failed);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "orrery: a fault of ours, please report it: %s\n", error.what());
  }
  return to_int(ExitCode::bad_input);
}

}  // namespace orrery
