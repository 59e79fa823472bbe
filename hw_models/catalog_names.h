// SPDX-License-Identifier: Apache-2.0
// Knows by what names people call a catalogue's entries, and which entry a wrong name may mean.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace orrery {

// Small letters, blanks and underscores as hyphens: "ND H100 v5" is "nd-h100-v5".
std::string plain_name(const std::string& name);

// What an entry is also called, beside its own name: its "aliases", a list of names or of objects
// with a name and a source.
std::vector<std::string> aliases_of(const std::string& folder, const std::string& entry);

// What drivers call the boards of an accelerator (its "driver_names"); a board's name may go on
// after a space.
std::vector<std::string> driver_names_of(const std::string& accelerator);

// The entry of a catalogue's folder that `name` is, in any case, or one of whose aliases it is.
std::optional<std::string> known_as(const std::string& folder, const std::string& name);

// The entry that a name which is none most likely means: misspelt, cut short, or by the words that
// it shares with a name, an alias or a title; of several the one that people call by most names.
// "" where nothing is near.
std::string meant_name(const std::string& folder, const std::string& name);

}  // namespace orrery
