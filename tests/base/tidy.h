// SPDX-License-Identifier: Apache-2.0
// Knows the house rules of the source tree: what a file may include, how long things may be.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// File texts by path from the root of the tree ("sim/base/json/json.h").
using SourceTree = std::map<std::string, std::string>;

// Reads the files that the rules are about.
SourceTree read_source_tree(const std::filesystem::path& root);

// Complaints, each "path:line: what is wrong", in the order of the files.
using Complaints = std::vector<std::string>;

Complaints check_layers(const SourceTree& tree);       // who may include whom (DESIGN section 1)
Complaints check_rooms(const SourceTree& tree);        // the same inside a layer: its rooms.txt
Complaints check_folders(const SourceTree& tree);      // modules of a folder
Complaints check_includes(const SourceTree& tree);     // from the root, and of a file that exists
Complaints check_orphans(const SourceTree& tree);      // headers that nothing includes
Complaints check_sizes(const SourceTree& tree);        // lines of a file, of a function; columns
Complaints check_types(const SourceTree& tree);        // data members and lines of a type
Complaints check_definitions(const SourceTree& tree);  // one type of a name
Complaints check_openings(const SourceTree& tree);     // its licence, and what a file knows
Complaints check_backends(const SourceTree& tree);     // oneTBB only in sim/base/parallel.cpp
Complaints check_iteration(const SourceTree& tree);    // no unordered container on the way out
Complaints check_paths(const SourceTree& tree);        // no path of somebody's machine
Complaints check_names(const SourceTree& tree);        // no entry of a catalogue named in code
Complaints check_claims(const SourceTree& tree);       // speed that no bench measures
Complaints check_everything(const SourceTree& tree);

// An include in quotes; those in angle brackets are other people's.
struct Include {
  std::size_t line;
  std::string file;
};

// What the rules share: which files are code, what they include, a complaint's text, the line of an
// offset (from 1).
std::vector<std::string_view> lines_of(std::string_view text);
std::vector<Include> includes_of(std::string_view text);
bool is_code(std::string_view path);
std::string complaint(std::string_view path, std::size_t line, std::string_view what);
std::size_t line_at(std::string_view text, std::size_t offset);

// The text with comments, and what stands in quotes, blanked; line breaks stay.
std::string code_only(std::string_view text);

}  // namespace orrery
