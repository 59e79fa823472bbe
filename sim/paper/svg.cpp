// SPDX-License-Identifier: Apache-2.0
// Knows the SVG elements of our pictures.
#include "sim/paper/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "sim/paper/tables.h"

namespace orrery {
namespace {

constexpr const char* faces = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

// Control characters have no place in XML, not even escaped.
std::string escaped(std::string words) {
  std::erase_if(words, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  return in_markup(words);
}

std::string painted(const Paint& paint) {
  std::string out = fmt::format(R"( fill="{}" stroke="{}")", paint.fill, paint.stroke);
  if (paint.stroke != "none") out += fmt::format(R"( stroke-width="{:.2f}")", paint.width);
  if (paint.opacity < 1) out += fmt::format(R"( opacity="{:.2f}")", paint.opacity);
  if (paint.dashed) out += R"( stroke-dasharray="5 4")";
  return out;
}

const char* anchor_text(Anchor anchor) {
  return anchor == Anchor::start ? "start" : anchor == Anchor::middle ? "middle" : "end";
}

}  // namespace

std::string in_markup(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

double text_width(const std::string& words, double size) {
  // Of the faces, DejaVu Sans is the widest: 0.56 of the size over texts like ours.
  return 0.56 * size * static_cast<double>(columns(words));
}

Svg::Svg(double width, double height) : width_(width), height_(height) {}

void Svg::box(const Box& at, const Paint& paint) {
  body_ += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}")", at.x, at.y,
                       at.width, at.height);
  if (paint.corner > 0) body_ += fmt::format(R"( rx="{:.1f}")", paint.corner);
  body_ += painted(paint) + "/>\n";
}

void Svg::line(Point from, Point to, const Paint& paint) {
  body_ += fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"{}/>)", from.x,
                       from.y, to.x, to.y, painted(paint)) +
           "\n";
}

void Svg::curve(Point from, Point bend, Point to, const Paint& paint) {
  body_ += fmt::format(R"(<path d="M {:.1f} {:.1f} Q {:.1f} {:.1f} {:.1f} {:.1f}"{}/>)", from.x,
                       from.y, bend.x, bend.y, to.x, to.y, painted(paint)) +
           "\n";
}

void Svg::dot(Point at, double radius, const Paint& paint) {
  body_ += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}"{}/>)", at.x, at.y, radius,
                       painted(paint)) +
           "\n";
}

void Svg::polygon(const std::vector<Point>& corners, const Paint& paint) {
  body_ += "<polygon points=\"";
  for (const Point& corner : corners) body_ += fmt::format("{:.1f},{:.1f} ", corner.x, corner.y);
  body_ += "\"" + painted(paint) + "/>\n";
}

void Svg::text(Point at, const std::string& words, const Lettering& lettering, double room) {
  const double wanted = text_width(words, lettering.size) * (lettering.bold ? 1.06 : 1);
  const double size = wanted > room ? lettering.size * room / wanted : lettering.size;
  body_ += fmt::format(
      R"(<text x="{:.1f}" y="{:.1f}" font-size="{:.1f}" text-anchor="{}" fill="{}"{}>{}</text>)",
      at.x, at.y, size, anchor_text(lettering.anchor), lettering.fill,
      lettering.bold ? R"( font-weight="bold")" : "", escaped(words));
  body_ += "\n";
}

double Svg::paragraph(Point at, const std::string& words, const Lettering& lettering, double room,
                      int lines) {
  const auto fit =
      static_cast<std::size_t>(std::max(4.0, std::floor(room / text_width("m", lettering.size))));
  std::istringstream wrapped(wrap(words, fit, "", ""));
  std::vector<std::string> parts;
  for (std::string part; std::getline(wrapped, part);)
    if (!part.empty()) parts.push_back(part);
  if (static_cast<int>(parts.size()) > lines) {
    parts.resize(static_cast<std::size_t>(lines));
    parts.back() += "…";
  }
  for (const std::string& part : parts) {
    text(at, part, lettering, room);
    at.y += 1.3 * lettering.size;
  }
  return at.y;
}

std::string Svg::finish() const {
  return fmt::format(
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
             "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"{2}\">\n",
             width_, height_, faces) +
         body_ + "</svg>\n";
}

}  // namespace orrery
