// SPDX-License-Identifier: Apache-2.0
// Writes what an answer rests on.
#include "sim/app/page/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "hw_models/catalog.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

const std::map<std::string, Source>& sources() {
  static const std::map<std::string, Source> all = load_sources();
  return all;
}

std::string range_text(const JsonValue& low, const JsonValue& high) {
  return low.text() + " to " + high.text();
}

// The values of bills: {"price_usd": {value, low, high, evidence, source, reason}}.
void add_bill(Document& document, const JsonValue& lines, std::set<std::string>& cited) {
  Table table(
      {"part", "of", "value", "range", "evidence", "source", "note"},
      {Align::left, Align::left, Align::right, Align::left, Align::left, Align::left, Align::left});
  for (const JsonValue& line : lines.items())
    for (const auto& [key, what] : {std::pair{"price_usd", "USD each"}, {"power_w", "W each"}}) {
      const auto one = line.find(key);
      if (!one || !one->has("evidence")) continue;
      const auto value = one->find("value"), low = one->find("low"), high = one->find("high");
      const auto reason = one->find("reason");
      const std::string source = one->at("source").text();
      cited.insert(source);
      table.add({line.at("title").text(), what,
                 value ? fmt::format("{:.6g}", value->number()) : "unknown",
                 low && high ? fmt::format("{:.6g} to {:.6g}", low->number(), high->number()) : "",
                 one->at("evidence").text(), source, reason ? reason->text() : ""});
    }
  if (table.empty()) return;
  document.label("Prices and powers of parts");
  document.table(std::move(table));
}

void cite(const JsonValue& assumptions, std::set<std::string>& cited) {
  for (const JsonValue& a : assumptions.items()) cited.insert(a.at("source").text());
}

std::optional<JsonValue> assumptions_in(const JsonValue& answer) {
  for (const char* key : {"prediction", "winner"})
    if (const auto prediction = answer.find(key)) return prediction->find("assumptions");
  return std::nullopt;
}

}  // namespace

std::string source_text(const std::string& id) {
  const auto known = sources().find(id);
  if (known == sources().end()) return id;
  std::string text = known->second.title;
  if (!known->second.address.empty()) text += ", " + known->second.address;
  if (!known->second.date_read.empty()) text += ", read " + known->second.date_read;
  return text;
}

Table assumption_table(const JsonValue& assumptions, std::size_t most) {
  Table table(
      {"value", "is", "range", "evidence", "step at its low end", "at its high end", "source"},
      {Align::left, Align::left, Align::left, Align::left, Align::right, Align::right,
       Align::left});
  std::size_t rows = 0;
  for (const JsonValue& a : assumptions.items()) {
    if (most > 0 && rows++ == most) break;
    table.add({a.at("path").text(), a.at("value").text(), range_text(a.at("low"), a.at("high")),
               a.at("evidence").text(), signed_percent(a.at("effect_low").number()),
               signed_percent(a.at("effect_high").number()), a.at("source").text()});
  }
  return table;
}

Document evidence_document(const JsonValue& answer) {
  Document document(true);
  std::set<std::string> cited;
  if (const auto assumptions = assumptions_in(answer);
      assumptions && !assumptions->items().empty()) {
    document.label("Values that are no facts, and what they do to the step's time");
    document.table(assumption_table(*assumptions, 0));
    cite(*assumptions, cited);
  }
  if (const auto bill = answer.find("bill")) add_bill(document, bill->at("lines"), cited);
  if (cited.empty()) return document;
  document.label("Sources");
  Table table({"name", "where it is from"}, {Align::left, Align::left});
  for (const std::string& id : cited) table.add({id, source_text(id)});
  document.table(std::move(table));
  return document;
}

}  // namespace orrery
