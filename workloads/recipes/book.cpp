// SPDX-License-Identifier: Apache-2.0
// Reads the tables of recipes.
#include "workloads/recipes/book.h"

#include <map>
#include <string_view>

#include "sim/base/errors/check.h"
#include "sim/base/text/csv.h"

namespace orrery {
namespace {

std::vector<std::string> parts(std::string_view text, char divider) {
  std::vector<std::string> result;
  if (text.empty()) return result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(divider, begin), text.size());
    result.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

CsvTable table_of(const std::filesystem::path& file, const std::vector<std::string>& columns) {
  CsvTable table = read_csv(file);
  require_columns(table, columns, "workloads/catalog/README.md");
  return table;
}

// Rows are numbered from 1 in their order, so that others may name them.
void expect_number(const CsvRow& row, std::size_t index) {
  if (row.integer("id") != static_cast<std::int64_t>(index + 1))
    row.fail("id", std::to_string(index + 1) + ", the number of the row");
}

// The place of the row that a column names by its number.
std::size_t place(const CsvRow& row, std::string_view column, std::size_t rows) {
  const auto number = row.integer(column);
  if (!number || *number < 1 || static_cast<std::size_t>(*number) > rows)
    row.fail(column, "the number of a row");
  return static_cast<std::size_t>(*number) - 1;
}

void read_sources(const std::filesystem::path& folder, RecipeBook& book) {
  const CsvTable table =
      table_of(folder / "sources.csv", {"id", "stack", "releases", "program", "program_releases",
                                        "date", "address", "base_address", "origin"});
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    expect_number(row, i);
    book.sources.push_back({.stack = row.text("stack"),
                            .releases = parts(row.text("releases"), ';'),
                            .program = row.text("program"),
                            .program_releases = row.text("program_releases"),
                            .date = row.text("date"),
                            .address = row.text("address"),
                            .base_address = row.text("base_address"),
                            .origin = row.text("origin")});
    if (book.sources.back().releases.empty()) row.fail("releases", "a release of the stack");
  }
}

void read_settings(const std::filesystem::path& folder, RecipeBook& book) {
  CsvTable table = table_of(folder / "settings.csv", {"id"});
  if (table.header.front() != "id") CsvRow(table, 0).fail("id", "the first column");
  book.setting_names.assign(table.header.begin() + 1, table.header.end());
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    expect_number(CsvRow(table, i), i);
    book.settings.emplace_back(table.rows[i].begin() + 1, table.rows[i].end());
  }
}

std::map<std::string, std::size_t> read_models(const std::filesystem::path& folder,
                                               RecipeBook& book) {
  const CsvTable table = table_of(folder / "models.csv", {"model", "family", "moe", "same_shape"});
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    book.models.push_back({.name = row.text("model"),
                           .family = row.text("family"),
                           .moe = row.flag("moe").value_or(false),
                           .same_shape = parts(row.text("same_shape"), ' ')});
    places[row.text("model")] = i;
  }
  return places;
}

void read_recipes(const std::filesystem::path& folder, RecipeBook& book) {
  const auto models = read_models(folder, book);
  const CsvTable table =
      table_of(folder / "recipes.csv", {"source", "model", "task", "device", "precision", "variant",
                                        "gpus", "global_batch", "sequence", "settings", "note"});
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    const auto model = models.find(row.text("model"));
    if (model == models.end()) row.fail("model", "a model of models.csv");
    book.recipes.push_back({.source = place(row, "source", book.sources.size()),
                            .model = model->second,
                            .settings = place(row, "settings", book.settings.size()),
                            .task = row.text("task"),
                            .device = row.text("device"),
                            .precision = row.text("precision"),
                            .variant = row.text("variant"),
                            .gpus = parts(row.text("gpus"), ';'),
                            .global_batch = parts(row.text("global_batch"), ';'),
                            .sequence = row.text("sequence"),
                            .note = row.text("note")});
    Recipe& recipe = book.recipes.back();
    if (recipe.global_batch.empty()) recipe.global_batch.resize(recipe.gpus.size());
  }
}

void read_defaults(const std::filesystem::path& folder, RecipeBook& book) {
  const CsvTable table =
      table_of(folder / "defaults.csv", {"programs", "setting", "default", "holds_for", "address"});
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    book.defaults.push_back({.programs = parts(row.text("programs"), ';'),
                             .setting = row.text("setting"),
                             .value = row.text("default"),
                             .holds_for = row.text("holds_for"),
                             .address = row.text("address")});
  }
}

}  // namespace

RecipeBook load_recipes(const std::filesystem::path& folder) {
  RecipeBook book;
  read_sources(folder, book);
  read_settings(folder, book);
  read_recipes(folder, book);
  read_defaults(folder, book);
  return book;
}

}  // namespace orrery
