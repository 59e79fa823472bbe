// SPDX-License-Identifier: Apache-2.0
// Finds what launch programs set for a model at a release, and what most families set where no
// script names it.
#pragma once

#include <string>
#include <vector>

#include "workloads/recipes/book.h"

namespace orrery {

struct RecipeQuestion {
  std::string stack, release;  // release "": the newest
  std::string model, family;   // as the catalogue spells them; model "": any of the family
  bool moe = false;            // has experts: whom a majority is taken over
  std::string task = "pretrain";
  std::string device, precision;  // "": all; precision "fp8": any of 8 bits but mxfp8
};

// Whose recipes were found.
enum class RecipeMatch {
  model,       // the model's own
  same_shape,  // those of a model of its shape
  family,      // those of other models of its family
  majority,    // those of all dense families, or of all with experts
};

// A value of a setting, "" where some recipes leave it blank.
struct FoundValue {
  std::string value;
  std::string where;                  // "gb200, gb300 mxfp8"; "": everywhere
  std::vector<std::size_t> recipes;   // places in the book
  std::vector<std::string> families;  // of a majority: those that set this value
};

struct FoundSetting {
  std::string name;
  std::vector<FoundValue> values;  // the most frequent first
  std::size_t families = 0;        // of a majority: that set it at all
};

struct FoundRecipes {
  RecipeMatch match = RecipeMatch::model;
  std::string of;                      // the model or family whose recipes they are
  std::string release;                 // of the stack: the one asked for, or the nearest before
  std::vector<std::size_t> recipes;    // places in the book
  std::vector<FoundSetting> settings;  // those that a recipe sets; of a majority without degrees
};

// Those of the last release up to the one asked for that has any for task, device and precision:
// of the model, else of one of its shape, else of its family, else the majority's. Errors: a stack
// without recipes, a release before all recipes, a device, a task or a precision that none is for.
FoundRecipes find_recipes(const RecipeBook& book, const RecipeQuestion& question);

// The release of a source that a question at `limit` sees: the last one up to it; "" where all are
// later. `limit` "": the newest.
std::string seen_release(const RecipeSource& source, const std::string& limit);

}  // namespace orrery
