// SPDX-License-Identifier: Apache-2.0
// Knows the parts that charts share: colours, axes, and the frame of a specification.
#pragma once

#include <string>

#include "sim/base/json/json.h"

namespace orrery {

// Hues that people of all kinds of sight tell apart, in print too (Okabe and Ito, 2008).
Json colours();

// A channel: {"field", "type", "title", ...more}.
Json quantity(const std::string& field, const std::string& title, Json more = Json::object());
Json category(const std::string& field, const std::string& title, Json more = Json::object());
// What a reader sees who points at a mark: "field: title" of each.
Json tooltip(std::initializer_list<std::pair<const char*, const char*>> fields);

// For a category: its legend stands under the chart.
Json legend_below();
// The same one below the other: for long labels.
Json list_below();

// Bodies of a specification. Bars of one colour, the longest first, a row for each value of
// `field`.
Json sorted_bars(const std::string& field, Json x, const Json& colour, Json tooltip);
// A point for each row; `colour` and `shape` are channels.
Json point_marks(Json x, Json y, Json colour, Json shape, Json tooltip, int size = 70);

// A whole specification: `body` has "mark" and "encoding", or "layer".
Json framed(const std::string& title, const std::string& subtitle, Json values, Json body,
            int height = 0);
// A specification that takes a page's whole width.
Json wide(Json specification);
// Rows of bars: as high as they need.
int bars_height(std::size_t rows);

// "TP8 PP16 DP4" of a layout's object, with what else is not 1.
std::string short_layout(const JsonValue& layout);

// "llama3-8b on 16 x dgx-h100".
std::string subject_of(const JsonValue& answer);

// A measured quantity of validation as words: "tokens_s_gpu" is "tokens/s/GPU".
std::string quantity_words(const std::string& key);
// Whether it is a yes or a no (out of memory), which no error is drawn of.
bool is_verdict(const std::string& quantity);

// A key as words: "tensor_comm_s" is "tensor comm".
std::string key_words(std::string key);

}  // namespace orrery
