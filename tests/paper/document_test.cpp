// SPDX-License-Identifier: Apache-2.0
// Tests documents as text, as markdown and as HTML, part by part.
#include "sim/paper/document.h"

#include <catch2/catch.hpp>

namespace orrery {
namespace {

Table small_table() {
  Table table({"name", "s"}, {Align::left, Align::right});
  table.add({"a|b", "1.5"});
  table.add({"longer", "10"});
  return table;
}

TEST_CASE("a document reads as text") {
  Document d;
  d.title("Model").line("cluster").gap().heading("Plan:").paragraph("words").item("one");
  d.item("two", "2.").table(small_table()).note("and 3 more").code("--flag\n", "sh");
  CHECK(d.text() ==
        "Model\ncluster\n\nPlan:\nwords\n  one\n  2. two\n  name      s\n  a|b     1.5\n"
        "  longer   10\n  and 3 more\n--flag\n");
}

TEST_CASE("a document reads as markdown") {
  Document d;
  d.title("Model").line("cluster").line("job").gap().heading("Plan:").label("Sizes:");
  d.item("one").item("two", "2.").table(small_table()).note("and *3* more").code("--flag\n", "sh");
  CHECK(d.markdown() ==
        "# Model\n\n- cluster\n- job\n\n## Plan\n\n### Sizes\n\n- one\n2. two\n\n"
        "| name | s |\n| --- | ---: |\n| a\\|b | 1.5 |\n| longer | 10 |\n\nand \\*3\\* more\n\n"
        "```sh\n--flag\n```\n");
}

TEST_CASE("a document reads as HTML: lists closed, marks written out") {
  Document d;
  d.title("Model").line("a & b").gap().line("job").gap().heading("Plan:").item("one");
  d.table(small_table()).code("x < 1\n", "sh").line("last");
  const std::string right = " style=\"text-align:right\">", left = " style=\"text-align:left\">";
  CHECK(
      d.html() ==
      "<h2>Model</h2>\n<ul>\n<li>a &amp; b</li>\n<li>job</li>\n</ul>\n<h3>Plan:</h3>\n"
      "<ul>\n<li>one</li>\n</ul>\n<div class=\"wide\" tabindex=\"0\">\n<table>\n<thead>\n<tr><th" +
          left + "name</th><th" + right + "s</th></tr>\n</thead>\n<tbody>\n<tr><td" + left +
          "a|b</td><td" + right + "1.5</td></tr>\n<tr><td" + left + "longer</td><td" + right +
          "10</td></tr>\n</tbody>\n</table>\n</div>\n<pre>x &lt; "
          "1\n</pre>\n<ul>\n<li>last</li>\n</ul>\n");
  CHECK(Document().html().empty());
  Document labelled;
  labelled.label("first").heading("Plan").label("second");
  CHECK(labelled.html() == "<h3>first</h3>\n<h3>Plan</h3>\n<h4>second</h4>\n");
}

TEST_CASE("markup is written out, words are left alone") {
  CHECK(in_markdown("tensor_exposed of a_b") == "tensor_exposed of a_b");
  CHECK(in_markdown("_a <b> $4 [c] # d") == "\\_a &lt;b> \\$4 \\[c\\] # d");
  CHECK(in_markdown("# 1,024 accelerators") == "\\# 1,024 accelerators");
}

TEST_CASE("a header without words has no line in text and one in markdown") {
  Table table({"", ""}, {Align::left, Align::left});
  table.add({"speed", "fast"});
  CHECK(table.text("") == "speed  fast\n");
  CHECK(table.markdown() == "|  |  |\n| --- | --- |\n| speed | fast |\n");
}

TEST_CASE("whether tables are cut is asked of the document") {
  CHECK(Document(true).full());
  CHECK_FALSE(Document().full());
}

}  // namespace
}  // namespace orrery
