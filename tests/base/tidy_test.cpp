// SPDX-License-Identifier: Apache-2.0
// Tests that the source tree keeps the house rules, and that each rule notices when it is broken.
#include <catch2/catch.hpp>

#include "tests/base/tidy.h"

namespace orrery {
namespace {

std::string repeat(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

TEST_CASE("the source tree is tidy") {
  const SourceTree tree = read_source_tree(ORRERY_SOURCE_DIR);
  CHECK(tree.size() > 50);
  CHECK(tree.contains("sim/base/json/json.h"));
  for (const std::string& complaint : check_everything(tree)) FAIL_CHECK(complaint);
}

TEST_CASE("an include against the layers is found") {
  const auto complaints = [](const std::string& from, const std::string& to) {
    return check_layers({{from, "// Opens.\n#include \"" + to + "\"\n"}});
  };
  CHECK(complaints("hw_models/device.h", "workloads/model/model.h") ==
        Complaints{"hw_models/device.h:2: hw_models/ may not include workloads/model/model.h"});
  CHECK(complaints("sim/base/json/json.cpp", "hw_models/device.h").size() == 1);
  CHECK(complaints("sim/engine/step/step.cpp", "sim/outcome/money/bill.h").size() == 1);
  CHECK(complaints("sim/advise/search/bound.cpp", "sim/calibrate/fit/fit.h").size() == 1);
  CHECK(complaints("sim/calibrate/fit/fit.cpp", "sim/advise/search/bound.h").size() == 1);
  CHECK(complaints("sim/outcome/money/bill.cpp", "sim/paper/plot.h").size() == 1);
  CHECK(complaints("sim/launch/flags.cpp", "sim/outcome/prediction.h").size() == 1);
  CHECK(complaints("sim/explain/ranking.h", "sim/advise/advisor.h").size() == 1);
  CHECK(complaints("sim/advise/fits_from.cpp", "sim/plan/point.h").size() == 1);
  CHECK(complaints("sim/validate/fit/fit.h", "sim/app/validate/validate.h").size() == 1);
  CHECK(complaints("sim/question/settings/settings.cpp", "sim/paper/tables.h").size() == 1);
  CHECK(complaints("sim/app/main.cpp", "tests/base/tidy.h").size() == 1);
  CHECK(complaints("sim/new_layer/x.h", "sim/base/json/json.h").size() == 1);
  CHECK(complaints("sim/engine/step/step.cpp", "workloads/model/model.h").empty());
  CHECK(complaints("sim/app/main.cpp", "sim/advise/search/bound.h").empty());
  CHECK(complaints("sim/validate/fit/fit.h", "sim/calibrate/steps/step_fit.h").empty());
  CHECK(complaints("sim/question/plan/question.h", "sim/plan/plan.h").empty());
  CHECK(complaints("tests/app/x_test.cpp", "sim/paper/plot.h").empty());
}

TEST_CASE("an include that is not from the root is found") {
  const SourceTree tree = {{"sim/base/a.h", "// A.\n#include \"b.h\"\n#include \"../base/b.h\"\n"},
                           {"sim/base/b.h", "// B.\n"}};
  CHECK(check_includes(tree) == Complaints{"sim/base/a.h:2: no file b.h from the root",
                                           "sim/base/a.h:3: no file ../base/b.h from the root"});
}

TEST_CASE("a header that nothing includes is found") {
  SourceTree tree = {{"sim/base/a.h", "// A.\n"},
                     {"sim/base/a.cpp", "// A.\n#include \"sim/base/a.h\"\n"}};
  CHECK(check_orphans(tree) == Complaints{"sim/base/a.h:1: a header that nothing includes"});
  tree["sim/app/main.cpp"] = "// Main.\n#include \"sim/base/a.h\"\n";
  CHECK(check_orphans(tree).empty());
}

TEST_CASE("files, functions and lines that are too long are found") {
  const auto complaints = [](const std::string& text) {
    return check_sizes({{"sim/base/a.cpp", text}});
  };
  CHECK(complaints(repeat("\n", 500)).empty());
  CHECK(complaints(repeat("\n", 501)) == Complaints{"sim/base/a.cpp:1: a file of 501 lines"});
  CHECK(complaints(std::string(100, 'x')).empty());
  CHECK(complaints("\n" + std::string(101, 'x')) ==
        Complaints{"sim/base/a.cpp:2: a line of 101 columns"});
  CHECK(complaints(repeat("\u00e9", 100)).empty());
  const auto function = [](const std::string& head, int lines) {
    return "namespace orrery {\n\n" + head + " {\n" + repeat("  x();\n", lines - 2) + "}\n\n}\n";
  };
  const Complaints long_function = {"sim/base/a.cpp:3: a function of 71 lines"};
  for (const char* head : {"int f(int a)", "template <class T> auto f(T a)", "Foo::Foo() : a_(1)",
                           "bool Foo::f() const", "TEST_CASE(\"it's {\")", "auto f = [](int a)",
                           "Foo& Foo::operator=(Foo&& other)"}) {
    INFO(head);
    CHECK(complaints(function(head, 70)).empty());
    CHECK(complaints(function(head, 71)) == long_function);
  }
  CHECK(complaints(function("struct Foo : Bar", 80)).empty());
  CHECK(complaints(function("enum class Foo", 80)).empty());
  CHECK(complaints(function("constexpr std::array<int, 3> table =", 80)).empty());
  CHECK(complaints("class Foo {\n" + function("  int f()", 71) + "};\n").size() == 1);
  CHECK(complaints("#define F() \\\n  {\n" + function("int f()", 71)).size() == 1);
  CHECK(complaints("Foo::Foo() : a_{1}, b_{2} {\n" + repeat("  x();\n", 80) + "}\n").size() == 1);
}

TEST_CASE("an include that no line of rooms.txt allows is found, and a line that allows too much") {
  const auto complaints = [](const std::string& rooms, const std::string& included) {
    return check_rooms({{"sim/engine/rooms.txt", rooms},
                        {"sim/engine/scenario.h", "// Opens.\n"},
                        {"sim/engine/flows/flows.h", "// Opens.\n"},
                        {"sim/engine/step/step.h", "// Opens.\n#include \"" + included + "\"\n"}});
  };
  const std::string flows = "sim/engine/flows/flows.h", list = "sim/engine/rooms.txt";
  CHECK(complaints("# Rooms.\n.:\nflows:\nstep: flows\n", flows).empty());
  CHECK(complaints(".:\nflows:\nstep:\n", "sim/base/check.h").empty());
  CHECK(complaints(".:\nflows:\nstep:\n", "sim/engine/step/run.h").empty());
  CHECK(complaints(".:\nflows:\nstep: .\n", flows) ==
        Complaints{
            list + ":3: no file of step includes .",
            "sim/engine/step/step.h:2: the room step may not include the room flows: " + list});
  CHECK(complaints(".:\nflows:\nstep: . flows\n", flows) ==
        Complaints{list + ":3: no file of step includes ."});
  CHECK(complaints(".:\nstep: flows\nflows:\n", flows) ==
        Complaints{list + ":2: flows is in no line above that of step"});
  CHECK(complaints("flows:\nstep: flows\n", flows) ==
        Complaints{list + ":1: no line of the room ."});
  CHECK(complaints(".:\nflows:\ncellar:\nstep: flows\n", flows) ==
        Complaints{list + ":3: no room cellar"});
  CHECK(complaints(".:\nflows:\nstep: flows\nflows:\n", flows) ==
        Complaints{list + ":4: a second line of flows"});
}

TEST_CASE("rooms without a list are found, and rooms in a circle cannot be listed") {
  SourceTree tree = {{"sim/engine/a/a.h", "// Opens.\n#include \"sim/engine/b/b.h\"\n"},
                     {"sim/engine/b/b.h", "// Opens.\n"}};
  CHECK(check_rooms(tree) == Complaints{"sim/engine/rooms.txt:1: is missing"});
  tree["sim/engine/rooms.txt"] = "b:\na: b\n";
  CHECK(check_rooms(tree).empty());
  tree["sim/engine/b/b.h"] = "// Opens.\n#include \"sim/engine/a/a.h\"\n";
  CHECK(check_rooms(tree).size() == 1);
  tree["sim/engine/rooms.txt"] = "b: a\na: b\n";
  CHECK(check_rooms(tree) == Complaints{"sim/engine/rooms.txt:1: a is in no line above that of b"});
  CHECK(check_rooms({{"sim/engine/a.h", "// Opens.\n"}}).empty());
  CHECK(check_rooms({{"tests/engine/a.h", ""}, {"tests/base/b.h", ""}}).empty());
}

TEST_CASE("a folder of too many modules is found") {
  const auto complaints = [](const std::string& folder, int modules) {
    SourceTree tree;
    for (int i = 0; i < modules; ++i)
      tree[folder + std::to_string(i) + ".h"] = tree[folder + std::to_string(i) + ".cpp"] = "";
    return check_folders(tree);
  };
  CHECK(complaints("sim/engine/step/", 16).empty());
  CHECK(complaints("sim/engine/step/", 17) ==
        Complaints{"sim/engine/step/:1: a folder of 17 modules"});
  CHECK(complaints("tests/engine/", 17).empty());
  CHECK(check_folders({{"sim/engine/README.md", ""}}).empty());
}

TEST_CASE("types of too many members or lines are found") {
  const auto complaints = [](const std::string& text, const std::string& path = "sim/base/a.h") {
    return check_types({{path, text}});
  };
  const auto members = [](int count) {
    return repeat("  double a = 0, // {\n", count - 1) + "x;\n";
  };
  const auto type = [](const std::string& head, const std::string& body) {
    return "namespace orrery {\n" + head + " {\n" + body + "};\n}\n";
  };
  CHECK(complaints(type("struct A", members(25))).empty());
  CHECK(complaints(type("struct A", members(26))) ==
        Complaints{"sim/base/a.h:2: A has 26 data members"});
  const Complaints two = {"sim/base/a.h:2: A has 26 data members"};
  const std::string most = members(24);
  CHECK(complaints(type("struct A : B<int>", most + "std::map<int, int> a;\n")).empty());
  CHECK(complaints(type("class A final", most + "public:\n int a_{1}, b_ = {2};\n")) == two);
  CHECK(complaints(type("template <class T>\nstruct A", most + "int a, b;\n")).size() == 1);
  CHECK(complaints(type("struct A", most + "std::function<void(int)> a = {}; int b;\n")) == two);
  CHECK(complaints(type("struct A", most + "struct B { int c; } a; int b;\n")) == two);
  for (const char* none :
       {"int f(int a, int b);", "int f() const { return a < b; }", "A() : a{1} {}",
        "static constexpr int a = 1, b = 2;", "using B = int;", "struct B;",
        "enum class B { a, b };", "struct B { int a, b; };", "friend class B;",
        "bool operator==(const A&) const = default;", "template <class T> T f(T a);"}) {
    INFO(none);
    CHECK(complaints(type("struct A", most + "int a;" + none + "\n")).empty());
  }
  const auto lines = [](int count) { return repeat("  int f();  // text\n\n  // text\n", count); };
  CHECK(complaints(type("struct A", lines(40))).empty());
  CHECK(complaints(type("struct A", lines(41))) == Complaints{"sim/base/a.h:2: A has 41 lines"});
  CHECK(complaints(type("class A", lines(120))).empty());
  CHECK(complaints(type("class A", lines(121))) == Complaints{"sim/base/a.h:2: A has 121 lines"});
  CHECK(complaints(type("enum class A", lines(121))).empty());
  CHECK(complaints(type("struct A", lines(41)), "tests/base/a.h").empty());
}

TEST_CASE("an exception to the size of types holds what a type has, and no longer") {
  const auto complaints = [](int members) {
    return check_types(
        {{"workloads/layout/layout.h", "struct Layout {\n" + repeat("int a;", members) + "\n" +
                                           repeat("int f();\n", 45) + "};\n"}});
  };
  CHECK(complaints(27).empty());
  CHECK(complaints(29) == Complaints{"workloads/layout/layout.h:1: Layout has 29 data members"});
  CHECK(complaints(25) ==
        Complaints{"workloads/layout/layout.h:1: Layout needs no exception for its data members"});
  CHECK(check_types({{"workloads/layout/layout.h", "struct Other {};\n"}}) ==
        Complaints{"workloads/layout/layout.h:1: has no Layout, an exception"});
}

TEST_CASE("two types of one name are found where programs could mix them up") {
  const auto of = [](const std::string& inside) { return "namespace orrery {\n" + inside + "}\n"; };
  const std::string type = "struct A {\n};\n", own = "namespace {\n" + type + "}  // namespace\n";
  const auto complaints = [&](const std::string& a, const std::string& b) {
    return check_definitions({{"sim/base/a.h", of(a)}, {"sim/base/b.cpp", of(b)}});
  };
  CHECK(complaints(type, type) ==
        Complaints{"sim/base/b.cpp:2: orrery::A stands in sim/base/a.h too"});
  CHECK(complaints(type, "class A final : public B {\n};\n").size() == 1);
  CHECK(complaints(type, own + type).size() == 1);
  CHECK(complaints(type, "enum class A : int { a };\n").size() == 1);
  CHECK(complaints(type, own).empty());
  CHECK(complaints(type, "struct A;\nstruct B {\n  struct A {\n  };\n};\n").empty());
  CHECK(check_definitions({{"sim/base/a.h", of(type)}, {"tests/base/a.h", of(type)}}).empty());
}

TEST_CASE("comments and text are no code") {
  CHECK(code_only("a // {\nb") == "a     \nb");
  CHECK(code_only("a /* {\n*/ b") == "a     \n   b");
  CHECK(code_only("f(\"{\\\"\", '}', 1'000)") == "f(\"   \", ' ', 1'000)");
  CHECK(code_only("R\"x({)\" )x\" b") == "            b");
}

TEST_CASE("a file that does not say what it knows is found") {
  const std::string licence = "// SPDX-License-Identifier: Apache-2.0\n";
  const auto complaints = [&](const std::string& text) {
    return check_openings({{"sim/base/a.h", licence + text}}).size();
  };
  CHECK(complaints("// Knows how to be tidy.\n#pragma once\n") == 0);
  CHECK(complaints("// Knows how to be tidy, over\n// two lines.\n#pragma once\n") == 0);
  CHECK(complaints("#pragma once\n// Knows how to be tidy.\n") == 1);
  CHECK(complaints("// json.h\n#pragma once\n") == 1);
  CHECK(complaints("// Knows how to be tidy.\n") == 1);
  CHECK(complaints("") == 2);
  CHECK(check_openings({{"sim/base/a.h", "// Knows how to be tidy.\n#pragma once\n"}}) ==
        Complaints{"sim/base/a.h:1: does not name its licence"});
  CHECK(check_openings({{"tests/a.py", "#!/usr/bin/env python3\n"}}).size() == 1);
  CHECK(check_openings({{"tests/a.py", "#!/usr/bin/env python3\n# " + licence.substr(3)}}).empty());
}

TEST_CASE("oneTBB outside its file is found") {
  const std::string text = "// Knows.\n#include <tbb/parallel_for.h>\n";
  CHECK(check_backends({{"sim/base/parallel.cpp", text}}).empty());
  CHECK(
      check_backends({{"sim/advise/advisor.cpp", text}}) ==
      Complaints{"sim/advise/advisor.cpp:2: names oneTBB, which sim/base/parallel.cpp alone may"});
  CHECK(check_backends({{"sim/app/a.cpp", "#include <oneapi/tbb/mutex.h>\n"}}).size() == 1);
  CHECK(check_backends({{"sim/app/a.cpp", "void f() { tbb::task_arena a; }\n"}}).size() == 1);
  CHECK(check_backends({{"sim/app/a.cpp", "// tbb::task_arena\n"}}).empty());
}

TEST_CASE("iteration over an unordered container on the way to output is found") {
  const std::string text =
      "std::unordered_map<std::string, std::vector<int>> seen;\n"
      "for (const auto& [key, value] : seen) print(key);\n";
  CHECK(check_iteration({{"sim/app/a.cpp", text}}) ==
        Complaints{"sim/app/a.cpp:2: iterates over the unordered seen"});
  CHECK(check_iteration({{"sim/outcome/a.cpp", text}}).size() == 1);
  CHECK(check_iteration({{"sim/advise/a.cpp", text}}).size() == 1);
  CHECK(check_iteration({{"sim/engine/a.cpp", text}}).empty());
  CHECK(check_iteration({{"sim/app/a.h", "struct A { std::unordered_set<int> ids_; };\n"},
                         {"sim/app/a.cpp", "for (int id : this->ids_) print(id);\n"}})
            .size() == 1);
  CHECK(check_iteration({{"sim/app/a.cpp",
                          "std::unordered_set<int> seen;\nstd::vector<int> order;\n"
                          "for (int id : order) print(seen.count(id));\n"
                          "for (std::size_t i = 0; i < seen.size(); ++i) f(i);\n"}})
            .empty());
}

TEST_CASE("a path of somebody's machine is found") {
  CHECK(check_paths({{"sim/app/a.cpp", "x = \"/work/x/data\";\n"}}) ==
        Complaints{"sim/app/a.cpp:1: a path of somebody's machine"});
  CHECK(check_paths({{"hw_models/catalog/x.json", "{\"file\": \"/tmp/x\"}\n"}}).size() == 1);
  CHECK(check_paths({{"validation/README.md", "/home/me/x\n"}}).size() == 1);
  CHECK(check_paths({{"sim/app/a.cpp", "// https://example.org/work/a\n"}}).empty());
  CHECK(check_paths({{"tests/app/a.cpp", "x = \"/tmp/a\";\n"}}).empty());
}

TEST_CASE("an entry of a catalogue that code names is found") {
  const SourceTree catalogue = {{"workloads/catalog/stacks/nemo.json", "{}"},
                                {"hw_models/catalog/sources/links.json", "{}"},
                                {"tests/x/catalog/mine.json", "{}"}};
  const auto complaints = [&](std::string path, std::string text) {
    SourceTree tree = catalogue;
    tree[std::move(path)] = std::move(text);
    return check_names(tree);
  };
  CHECK(complaints("sim/advise/a.cpp", "int a;\nauto s = load_stack(\"nemo\");\n") ==
        Complaints{"sim/advise/a.cpp:2: names \"nemo\", an entry of a catalogue"});
  CHECK(complaints("sim/advise/a.h", "load(\"x\", \"nemo@25.09\");\n").size() == 1);
  CHECK(
      complaints("sim/advise/a.cpp", "// load(\"nemo\")\nf(\"nemotron\", \"a nemo\");\n").empty());
  CHECK(complaints("sim/advise/a.cpp", "f(\"links\", \"mine\");\n").empty());
  CHECK(complaints("tests/a.cpp", "load(\"nemo\");\n").empty());
  CHECK(complaints("workloads/stack/launcher.cpp", "names = {\"nemo\"};\n").empty());
}

TEST_CASE("a claim of speed without a bench is found") {
  const auto complaints = [](const std::string& comment) {
    return check_claims({{"sim/base/a.h", "int a;\n// " + comment + "\nint f();\n"},
                         {"tests/bench/bench_a.cpp", "BENCHMARK(fast)->Arg(1);\n"}});
  };
  CHECK(complaints("Under 100 ns.") ==
        Complaints{"sim/base/a.h:2: a claim of speed that names no bench"});
  CHECK(complaints("Some more, and\n// a few microseconds.").size() == 1);
  CHECK(complaints("A few microseconds\n// (bench_a: fast).").empty());
  CHECK(complaints("A few microseconds (bench_a: slow).") ==
        Complaints{"sim/base/a.h:2: no bench slow in tests/bench/bench_a.cpp"});
  CHECK(complaints("More than a microsecond's traffic, under 20 us.").empty());
}

}  // namespace
}  // namespace orrery
