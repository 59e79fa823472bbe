// SPDX-License-Identifier: Apache-2.0
// Knows how the recipes of a stack are shown: what launch programs set for a model, and from where.
#pragma once

#include <cstddef>

#include "sim/app/catalog/recipe_question.h"
#include "sim/base/json/tree.h"
#include "sim/paper/tables.h"

namespace orrery {

std::string recipe_text(const AskedRecipe& asked, std::size_t width = page_width);
Json recipe_json(const AskedRecipe& asked);

}  // namespace orrery
