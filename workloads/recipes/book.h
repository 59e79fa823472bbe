// SPDX-License-Identifier: Apache-2.0
// Knows what public launch programs set: settings by release, model, device and precision, each
// with the address at which it was read. No prediction reads it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace orrery {

// A script at a release of its program.
struct RecipeSource {
  std::string stack;                  // "nemo"
  std::vector<std::string> releases;  // of the stack, "26.06": where several held the same script
  std::string program;                // "Megatron-Bridge"
  std::string program_releases;       // as the program calls them, "v0.5.0"
  std::string date;                   // "2026-06-16"
  std::string address, base_address;  // the script; the file that it builds on, or ""
  std::string origin;                 // id in hw_models/catalog/sources
};

// A model as the catalogue spells it; it may have no entry there.
struct RecipeModel {
  std::string name, family;
  bool moe = false;                     // has experts
  std::vector<std::string> same_shape;  // models whose runs are set alike
};

// What a script sets for a model, a device and a precision.
struct Recipe {
  std::size_t source = 0, model = 0, settings = 0;  // places in the book
  std::string task;                                 // "pretrain"
  std::string device;                               // "" where the script names none
  std::string precision;                            // "mxfp8"
  std::string variant;                              // of several for the same: "v2"; or ""
  std::vector<std::string> gpus, global_batch;      // that it is written for; "": left open
  std::string sequence;
  std::string note;  // what the settings do not tell, or ""
};

// What a program does where nothing is written.
struct RecipeDefault {
  std::vector<std::string> programs;
  std::string setting, value, holds_for, address;
};

struct RecipeBook {
  std::vector<std::string> setting_names;          // "dispatcher"
  std::vector<std::vector<std::string>> settings;  // values in their order; "": not set
  std::vector<RecipeSource> sources;
  std::vector<RecipeModel> models;
  std::vector<Recipe> recipes;
  std::vector<RecipeDefault> defaults;

  const RecipeSource& source_of(const Recipe& recipe) const { return sources[recipe.source]; }
  const RecipeModel& model_of(const Recipe& recipe) const { return models[recipe.model]; }
  const std::string& value(const Recipe& recipe, std::size_t setting) const {
    return settings[recipe.settings][setting];
  }
};

// From the tables of workloads/catalog/recipes. Errors name file and line.
RecipeBook load_recipes(const std::filesystem::path& folder);

}  // namespace orrery
