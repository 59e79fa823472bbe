// SPDX-License-Identifier: Apache-2.0
// Knows where the file of a stack sets something else than the scripts of its release do.
#pragma once

#include <string>
#include <vector>

#include "workloads/recipes/lookup.h"

namespace orrery {

struct RecipeDifference {
  std::string setting, stack, recipe;  // what each says
  std::string where;                   // for which recipes; "": for all
  std::vector<std::size_t> recipes;    // places in the book
};

// Of settings that both know. What a stack leaves open is no difference. `stack`: "nemo@26.06".
std::vector<RecipeDifference> recipe_differences(const RecipeBook& book, const FoundRecipes& found,
                                                 const std::string& stack);

}  // namespace orrery
