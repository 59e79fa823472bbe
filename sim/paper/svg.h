// SPDX-License-Identifier: Apache-2.0
// Knows how a picture is written as SVG: boxes, lines and text that keeps to its place.
#pragma once

#include <string>
#include <vector>

namespace orrery {

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
  double right() const { return x + width; }
  double bottom() const { return y + height; }
  double centre() const { return x + width / 2; }
};
struct Point {
  double x = 0, y = 0;
};
struct Paint {
  std::string fill = "none", stroke = "none";
  double width = 1, opacity = 1;
  double corner = 0;  // of a box
  bool dashed = false;
};
enum class Anchor { start, middle, end };
struct Lettering {
  double size = 16;
  Anchor anchor = Anchor::start;
  bool bold = false;
  std::string fill = "#222222";
};

// Collects shapes, later ones over earlier ones. Lengths are pixels of the view box.
class Svg {
 public:
  Svg(double width, double height);
  void box(const Box& at, const Paint& paint);
  void line(Point from, Point to, const Paint& paint);
  void curve(Point from, Point bend, Point to, const Paint& paint);  // quadratic
  void dot(Point at, double radius, const Paint& paint);
  void polygon(const std::vector<Point>& corners, const Paint& paint);
  // One line of text whose baseline begins at `at`; smaller where it would pass `room` pixels.
  void text(Point at, const std::string& words, const Lettering& lettering, double room);
  // Lines of at most `room` pixels from `at` downwards, at most `lines` of them (the last one ends
  // in an ellipsis); returns the baseline after the last.
  double paragraph(Point at, const std::string& words, const Lettering& lettering, double room,
                   int lines);
  std::string finish() const;  // the whole document

 private:
  double width_, height_;
  std::string body_;
};

// Text between tags or in quotes, of SVG as of HTML: & < > " as entities.
std::string in_markup(const std::string& text);

// Width of a text in a common sans-serif face, rounded up.
double text_width(const std::string& words, double size);

}  // namespace orrery
