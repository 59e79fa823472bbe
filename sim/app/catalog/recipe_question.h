// SPDX-License-Identifier: Apache-2.0
// Knows whose recipes a command line asks for, by the names that people call things.
#pragma once

#include <string>

#include "workloads/recipes/lookup.h"

namespace orrery {

// What stands on the command line; all but the first two may be empty.
struct AskedRecipe {
  std::string stack, model;  // "nemo@26.06"; a model, a family or a file of a model
  std::string device, precision, task;
};

// Names are those of the catalogue, and of models that the book alone knows. A stack without
// recipes is asked as the one that it is based on. Errors name the nearest.
RecipeQuestion recipe_question(const RecipeBook& book, const AskedRecipe& asked);

}  // namespace orrery
