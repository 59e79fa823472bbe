// SPDX-License-Identifier: Apache-2.0
// Is the extension module orrery._core: what the package calls, with the GIL released meanwhile.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>

#include "sim/app/answer/version.h"
#include "sim/app/commands.h"
#include "sim/base/errors/check.h"
#include "sim/python/arrow.h"
#include "sim/python/asked.h"
#include "sim/python/sweep.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace orrery {
namespace {

using Progress = std::optional<nb::callable>;

// `settings`: file, base, keywords and place of AskedSettings.
Asked answer(const std::string& command, const std::vector<std::string>& settings,
             std::optional<std::uint64_t> seed, int threads, bool watch, const Progress& progress) {
  AskedHow how{.seed = seed, .threads = threads, .watch = watch};
  if (progress)
    how.progress = [&progress](double share, std::int64_t count) {
      const nb::gil_scoped_acquire held;
      (*progress)(share, count);
    };
  const nb::gil_scoped_release released;
  return ask_settings(command,
                      {.file = settings.at(0),
                       .base = settings.at(1),
                       .keywords = settings.at(2),
                       .place = settings.at(3)},
                      how);
}

Asked answer_line(const std::string& command, const std::vector<std::string>& words,
                  const std::map<std::string, std::string>& flags) {
  const nb::gil_scoped_release released;
  return ask_line(command, words, flags);
}

ColumnKind kind_named(const std::string& name) {
  if (name == "whole") return ColumnKind::whole;
  if (name == "number") return ColumnKind::number;
  return name == "truth" ? ColumnKind::truth : ColumnKind::text;
}

Swept run_sweep(const std::vector<std::string>& questions,
                const std::vector<std::pair<std::string, std::string>>& asked,
                std::optional<std::uint64_t> seed, int threads, bool watch,
                const Progress& progress, std::int64_t first) {
  SweepHow how{.seed = seed, .threads = threads, .watch = watch, .first = first};
  for (const auto& [name, kind] : asked) how.asked.push_back({name, kind_named(kind)});
  if (progress)
    how.progress = [&progress](std::int64_t done) {
      const nb::gil_scoped_acquire held;
      (*progress)(done);
    };
  const nb::gil_scoped_release released;
  return sweep(questions, how);
}

Swept run_plan_sweep(const std::string& question, std::int64_t from, std::int64_t to,
                     std::optional<std::uint64_t> seed, int threads, bool watch) {
  const nb::gil_scoped_release released;
  return sweep_plan(question, from, to, {.seed = seed, .threads = threads, .watch = watch});
}

// Numbers as float64, NaN where there is none; text and truths as objects, None where there is
// none.
nb::object values_of(const AnswerTable& table, std::size_t index) {
  const TableColumn& column = table.columns.at(index);
  const auto rows = static_cast<std::size_t>(column.rows());
  if (column.kind() == ColumnKind::text || column.kind() == ColumnKind::truth) {
    nb::list values;
    for (std::int64_t i = 0; i < column.rows(); ++i) {
      if (!column.has(i))
        values.append(nb::none());
      else if (column.kind() == ColumnKind::truth)
        values.append(nb::bool_(column.truth(i)));
      else
        values.append(nb::str(column.text(i).data(), column.text(i).size()));
    }
    return values;
  }
  auto* numbers = new std::vector<double>(rows, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < rows; ++i)
    if (column.has(static_cast<std::int64_t>(i)))
      (*numbers)[i] = column.kind() == ColumnKind::number ? column.numbers()[i]
                                                          : static_cast<double>(column.wholes()[i]);
  const nb::capsule owner(
      numbers, [](void* kept) noexcept { delete static_cast<std::vector<double>*>(kept); });
  return nb::cast(nb::ndarray<nb::numpy, double, nb::ndim<1>>(numbers->data(), {rows}, owner));
}

// The capsule owns the stream until a consumer takes it, as the PyCapsule protocol of Arrow says.
nb::object stream_of(const std::shared_ptr<const AnswerTable>& table) {
  auto* stream = new ArrowArrayStream;
  export_stream(table, *stream);
  return nb::capsule(stream, "arrow_array_stream", [](void* kept) noexcept {
    auto* mine = static_cast<ArrowArrayStream*>(kept);
    if (mine->release != nullptr) mine->release(mine);
    delete mine;
  });
}

std::vector<std::string> names_of(const AnswerTable& table) {
  std::vector<std::string> names;
  for (const TableColumn& column : table.columns) names.push_back(column.name());
  return names;
}

int run_words(const std::vector<std::string>& words) {
  std::vector<const char*> pointers = {"orrery"};
  for (const std::string& word : words) pointers.push_back(word.c_str());
  const nb::gil_scoped_release released;
  return run_command_line(static_cast<int>(pointers.size()), pointers.data());
}

}  // namespace
}  // namespace orrery

NB_MODULE(_core, m) {
  using namespace orrery;
  nb::class_<Asked>(m, "Asked")
      .def_ro("json", &Asked::json)
      .def_ro("html", &Asked::html)
      .def_ro("code", &Asked::code)
      .def_ro("stopped", &Asked::stopped);
  nb::class_<AnswerTable>(m, "AnswerTable")
      .def("__len__", &AnswerTable::rows)
      .def("names", &names_of)
      .def("values", &values_of, "column"_a);
  nb::class_<Swept>(m, "Swept")
      .def_prop_ro(
          "table",
          [](const Swept& swept) { return std::const_pointer_cast<AnswerTable>(swept.table); })
      .def_ro("stopped", &Swept::stopped)
      .def("stream", [](const Swept& swept) { return stream_of(swept.table); });
  m.def("answer", &answer, "command"_a, "settings"_a, "seed"_a.none(), "threads"_a, "watch"_a,
        "progress"_a.none());
  m.def("answer_line", &answer_line, "command"_a, "words"_a, "flags"_a);
  m.def("sweep", &run_sweep, "questions"_a, "asked"_a, "seed"_a.none(), "threads"_a, "watch"_a,
        "progress"_a.none(), "first"_a = 1);
  m.def("plan_points", &plan_points, "question"_a);
  m.def("sweep_plan", &run_plan_sweep, "question"_a, "begin"_a, "end"_a, "seed"_a.none(),
        "threads"_a, "watch"_a);
  m.def("answer_columns", [] {
    std::vector<std::string> names;
    for (const FlatColumn& column : flat_columns("simulate")) names.push_back(column.name);
    return names;
  });
  m.def("charts", &ask_charts, "answer"_a);
  m.def("version", &program_version);
  m.def("error_sentence",
        [](const std::string& file, const std::string& path, const std::string& found,
           const std::string& expected, const std::string& nearest) {
          return Error({.file = file,
                        .path = path,
                        .found = found,
                        .expected = expected,
                        .nearest = nearest})
              .message();
        });
  m.def("interface", &interface_json);
  m.def("run", &run_words, "words"_a);
}
