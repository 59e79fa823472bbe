// SPDX-License-Identifier: Apache-2.0
// Knows how files of sections (YAML, TOML, JSON) and files of assignments become names and values.
#pragma once

#include <string>
#include <vector>

#include "sim/launch/source/said.h"

namespace orrery {

inline constexpr int deepest_sections = 64;
inline constexpr std::size_t most_values = 100'000;

// Puts values in place of references to other settings ("${model.seq_length}", "${.seq_length}")
// and of variables with a default ("${NAME:8}", "${oc.env:NAME,8}"); what else "${" begins is
// marked.
void resolve_references(std::vector<Said>& said);

// Every leaf by the path of its sections, "parallelism.tensor_parallel_degree"; lists are leaves,
// and so are empty sections. Errors name the line: text that is not of the format, keys that come
// twice, sections deeper than 64, documents that aliases make long.
std::vector<Said> read_yaml(const std::string& text, const std::string& file);
std::vector<Said> read_toml(const std::string& text, const std::string& file);
std::vector<Said> read_json_sections(const std::string& text, const std::string& file);
// Of an object that was read.
std::vector<Said> json_sections(const SortedJson& object, const std::string& file);

// Lines "a.b.c = value" of a recipe in Python, and the name of the recipe that one line makes
// ("recipe.name"); other lines are left out. Values are numbers, True,
// False, None, text in quotes and lists of these; what else stands there is text that is marked.
std::vector<Said> read_python(const std::string& text, const std::string& file);

}  // namespace orrery
