// SPDX-License-Identifier: Apache-2.0
// Checks that includes go down: from layer to layer, and from room to room inside of one.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tests/base/tidy.h"

namespace orrery {
namespace {

constexpr std::size_t most_modules = 16;

// A folder of the tree, and those right below it: it may include them, and what they may.
struct Layer {
  std::string_view folder;
  std::vector<std::string_view> below;
};

const std::vector<Layer>& layers() {
  static const std::vector<Layer> table = {
      {"sim/base/", {}},
      {"sim/paper/", {"sim/base/"}},
      {"sim/observe/", {"sim/base/"}},
      {"hw_models/", {"sim/base/"}},
      {"topologies/", {"sim/base/"}},
      {"workloads/", {"sim/base/"}},
      {"sim/engine/", {"hw_models/", "topologies/", "workloads/"}},
      {"sim/outcome/", {"sim/engine/"}},
      {"sim/chakra/", {"sim/outcome/"}},
      {"sim/launch/", {"sim/engine/"}},
      {"sim/explain/", {"sim/outcome/", "sim/launch/"}},
      {"sim/advise/", {"sim/explain/"}},
      {"sim/plan/", {"sim/advise/"}},
      {"sim/calibrate/", {"sim/outcome/"}},
      {"sim/validate/", {"sim/advise/", "sim/calibrate/", "sim/paper/"}},
      {"sim/diagnose/", {"sim/advise/", "sim/observe/"}},
      {"sim/question/", {"sim/plan/", "sim/diagnose/", "sim/chakra/"}},
      {"sim/app/", {"sim/question/", "sim/validate/"}},
      {"sim/python/", {"sim/app/"}},
      {"tests/", {"sim/app/"}},
  };
  return table;
}

const Layer* layer_of(std::string_view file) {
  const auto layer = std::find_if(layers().begin(), layers().end(),
                                  [file](const Layer& l) { return file.starts_with(l.folder); });
  return layer == layers().end() ? nullptr : &*layer;
}

bool may_include(const Layer& layer, std::string_view file) {
  return file.starts_with(layer.folder) ||
         std::any_of(layer.below.begin(), layer.below.end(), [file](std::string_view folder) {
           return may_include(*layer_of(folder), file);
         });
}

// The folder that a file stands in.
std::string folder_of(std::string_view path) {
  return std::string(path.substr(0, path.rfind('/') + 1));
}

// A room is a folder of a layer, by its name there; "." is the layer's own folder.
std::string room_of(const Layer& layer, std::string_view path) {
  const std::string folder = folder_of(path);
  const std::size_t outer = layer.folder.size();
  return folder.size() <= outer ? "." : folder.substr(outer, folder.size() - outer - 1);
}

// Where a room first includes another.
struct Arrow {
  std::string path;
  std::size_t line = 0;
};
using Arrows = std::map<std::string, std::map<std::string, Arrow>>;

// Every room of the layer, with the rooms of it that it includes.
Arrows arrows_of(const SourceTree& tree, const Layer& layer) {
  Arrows arrows;
  for (const auto& [path, text] : tree) {
    if (!is_code(path) || !path.starts_with(layer.folder)) continue;
    auto& from = arrows[room_of(layer, path)];
    for (const Include& include : includes_of(text)) {
      const bool inside = include.file.starts_with(layer.folder);
      if (inside && room_of(layer, include.file) != room_of(layer, path))
        from.try_emplace(room_of(layer, include.file), Arrow{path, include.line});
    }
  }
  return arrows;
}

// A line of rooms.txt, "room: rooms that it may include".
struct ListedRoom {
  std::size_t line = 0;
  std::string room;
  std::vector<std::string> may_include;
};

std::vector<ListedRoom> listed_rooms(std::string_view text) {
  std::vector<ListedRoom> listed;
  const std::vector<std::string_view> lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty() || lines[i].starts_with('#')) continue;
    const std::size_t colon = std::min(lines[i].find(':'), lines[i].size());
    ListedRoom entry{.line = i + 1, .room = std::string(lines[i].substr(0, colon))};
    for (std::size_t at = colon + 1; at < lines[i].size();) {
      const std::size_t end = std::min(lines[i].find(' ', at), lines[i].size());
      if (end > at) entry.may_include.emplace_back(lines[i].substr(at, end - at));
      at = end + 1;
    }
    listed.push_back(std::move(entry));
  }
  return listed;
}

// A room may include rooms of earlier lines alone, so that none can form a circle.
void check_lines(const std::string& file, const std::vector<ListedRoom>& listed,
                 const Arrows& arrows, Complaints& complaints) {
  std::set<std::string> above;
  for (const ListedRoom& entry : listed) {
    const auto say = [&](const std::string& what) {
      complaints.push_back(complaint(file, entry.line, what));
    };
    const auto room = arrows.find(entry.room);
    if (room == arrows.end()) {
      say(fmt::format("no room {}", entry.room));
      continue;
    }
    for (const std::string& other : entry.may_include) {
      if (!above.contains(other))
        say(fmt::format("{} is in no line above that of {}", other, entry.room));
      if (!room->second.contains(other))
        say(fmt::format("no file of {} includes {}", entry.room, other));
    }
    if (!above.insert(entry.room).second) say(fmt::format("a second line of {}", entry.room));
  }
}

// What the tree has and no line allows.
void check_arrows(const std::string& file, const std::vector<ListedRoom>& listed,
                  const Arrows& arrows, Complaints& complaints) {
  for (const auto& [from, others] : arrows) {
    const std::string& room = from;
    const auto entry = std::find_if(listed.begin(), listed.end(),
                                    [&](const ListedRoom& l) { return l.room == room; });
    if (entry == listed.end()) {
      complaints.push_back(complaint(file, 1, fmt::format("no line of the room {}", room)));
      continue;
    }
    const std::vector<std::string>& may = entry->may_include;
    for (const auto& [other, arrow] : others)
      if (std::find(may.begin(), may.end(), other) == may.end())
        complaints.push_back(complaint(
            arrow.path, arrow.line,
            fmt::format("the room {} may not include the room {}: {}", room, other, file)));
  }
}

}  // namespace

Complaints check_layers(const SourceTree& tree) {
  Complaints complaints;
  for (const auto& [path, text] : tree) {
    if (!is_code(path)) continue;
    const Layer* layer = layer_of(path);
    if (layer == nullptr) {
      if (path.starts_with("sim/")) complaints.push_back(complaint(path, 1, "is in no layer"));
      continue;
    }
    for (const Include& include : includes_of(text))
      if (!may_include(*layer, include.file))
        complaints.push_back(complaint(
            path, include.line, fmt::format("{} may not include {}", layer->folder, include.file)));
  }
  return complaints;
}

Complaints check_rooms(const SourceTree& tree) {
  Complaints complaints;
  for (const Layer& layer : layers()) {
    if (layer.folder == "tests/") continue;  // flat: a folder a layer
    const Arrows arrows = arrows_of(tree, layer);
    const std::string file = std::string(layer.folder) + "rooms.txt";
    const auto text = tree.find(file);
    if (text == tree.end()) {
      if (arrows.size() > 1) complaints.push_back(complaint(file, 1, "is missing"));
      continue;
    }
    const std::vector<ListedRoom> listed = listed_rooms(text->second);
    check_lines(file, listed, arrows, complaints);
    check_arrows(file, listed, arrows, complaints);
  }
  return complaints;
}

Complaints check_folders(const SourceTree& tree) {
  std::map<std::string, std::set<std::string>> modules;
  for (const auto& [path, text] : tree)
    if (is_code(path) && !path.starts_with("tests/"))
      modules[folder_of(path)].insert(path.substr(0, path.rfind('.')));
  Complaints complaints;
  for (const auto& [folder, names] : modules)
    if (names.size() > most_modules)
      complaints.push_back(
          complaint(folder, 1, fmt::format("a folder of {} modules", names.size())));
  return complaints;
}

}  // namespace orrery
