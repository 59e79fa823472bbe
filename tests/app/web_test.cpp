// SPDX-License-Identifier: Apache-2.0
// Tests what the server answers, refuses and counts, without a socket; tests/web has it with one.
#include <catch2/catch.hpp>

#include "sim/app/ask/answers.h"
#include "sim/app/page/page.h"
#include "sim/app/page/repeat.h"
#include "sim/app/topology/command.h"
#include "sim/app/web/guard.h"
#include "sim/app/web/requests.h"
#include "sim/app/web/searches.h"
#include "sim/app/web/view.h"

namespace orrery {
namespace {

constexpr int port = 8123;
const std::string body =
    R"({"model": "llama3-8b", "cluster": "dgx-h100", "gpus": 16, "seq": 4096, "global_batch": 64})";

WebRequest asked() {
  return {.method = "POST",
          .path = "/api/v1/simulate",
          .host = "127.0.0.1:8123",
          .content_type = "application/json"};
}

unsigned status(const WebRequest& request) {
  const auto reply = refused(request, port);
  return reply ? reply->status : 200;
}

std::string error_of_view(const std::string& text, const std::vector<std::string>& parts = {}) {
  try {
    read_view("simulate", text, parts);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

}  // namespace

TEST_CASE("requests of other sites are refused, those of this machine are not") {
  WebRequest request = asked();
  CHECK(status(request) == 200);
  request.host = "localhost:8123";
  request.origin = "http://localhost:8123";
  request.content_type = "application/json; charset=utf-8";
  CHECK(status(request) == 200);
  for (const char* host : {"", "evil.example", "evil.example:8123", "127.0.0.1", "127.0.0.1:80"}) {
    WebRequest other = asked();
    other.host = host;
    CHECK(status(other) == 403);
  }
  for (const char* origin : {"http://evil.example", "null", "https://127.0.0.1:8123"}) {
    WebRequest other = asked();
    other.origin = origin;
    CHECK(status(other) == 403);
  }
  request.content_type = "text/plain";
  CHECK(status(request) == 415);
  request = asked();
  request.method = "DELETE";
  CHECK(status(request) == 405);
}

TEST_CASE("a client searches once at a time, and all of them not too often") {
  Searches searches;
  CHECK_FALSE(searches.begin("a"));
  CHECK(searches.begin("a")->status == 429);
  for (std::size_t i = 1; i < most_searches; ++i) CHECK_FALSE(searches.begin(std::to_string(i)));
  CHECK(searches.begin("b")->status == 429);
  CHECK(searches.may_run("a"));
  for (std::size_t i = 1; i < most_running_searches; ++i)
    CHECK(searches.may_run(std::to_string(i)));
  CHECK_FALSE(searches.may_run("30"));
  CHECK(searches.stop("a"));
  CHECK(searches.stopped("a"));
  CHECK_FALSE(searches.stopped("1"));
  searches.end("a");
  CHECK(searches.may_run("30"));
  CHECK_FALSE(searches.stop("a"));
  CHECK_FALSE(searches.begin("b"));
}

TEST_CASE("a view holds what was asked for, and the text is the command's own") {
  Catalogues catalogues;
  const ViewAsked plain = read_view("simulate", body, {});
  const std::string text = view_text(plain, catalogues, 1);
  CHECK(text == indented_text(answer_for_machines("simulate", plain.question,
                                                  {.catalogues = catalogues, .threads = 1})
                                  .json));
  const ViewAsked shown = read_view("simulate", body, {"text", "charts", "report", "line"});
  const Json view = Json::parse(view_text(shown, catalogues, 1));
  CHECK(view.at("charts").size() >= 4);
  CHECK(view.at("report").get<std::string>().starts_with("<h2>"));
  CHECK(view.at("line") ==
        "orrery simulate --cluster dgx-h100 --global-batch 64 --gpus 16 --model llama3-8b --seq "
        "4096");
  CHECK(error_of_view("[]").find("an object") != std::string::npos);
  CHECK(error_of_view("{").find("question") != std::string::npos);
  for (const char* output : {"trace_out", "chakra_out"})
    CHECK(error_of_view(std::string("{\"") + output + "\": \"x\"}").find(output) !=
          std::string::npos);
  CHECK(error_of_view(body, {"nonsense"}).find("charts") != std::string::npos);
}

TEST_CASE("a command line is what a shell gives back") {
  const JsonValue question = JsonValue::from({{"model", "a b'c"},
                                              {"offload", SortedJson::array({"weights", "x"})},
                                              {"cluster", {{"based_on", "dgx-h100"}}},
                                              {"tp", 8},
                                              {"gone", nullptr}},
                                             "q");
  CHECK(command_line("simulate", question) ==
        "orrery simulate --cluster '{\"based_on\":\"dgx-h100\"}' --model 'a b'\\''c' --offload "
        "weights,x --tp 8");
  CHECK(command_line("topology", JsonValue::from({{"name", "dgx-h100"}, {"gpus", 16}}, "q")) ==
        "orrery topology dgx-h100 --gpus 16");
}

TEST_CASE("requests are read from their targets and headers") {
  namespace http = boost::beast::http;
  http::request<http::string_body> request{http::verb::post,
                                           "/api/v1/advise?x=1&parts=charts%2Cline,,page&y", 11};
  request.set("Orrery-Client", "me");
  request.set(http::field::accept, "text/event-stream");
  const WebRequest read = request_of(request);
  CHECK(read.path == "/api/v1/advise");
  CHECK(read.parts == std::vector<std::string>{"charts", "line", "page"});
  CHECK(read.events);
  CHECK(read.client == "me");
}

TEST_CASE("a page holds names as text, whatever they are") {
  const std::string odd = "</script><script>alert(1)</script>&\"'";
  SortedJson entry = JsonValue::load(data_root() / "topologies/catalog/nvlink4-ndr.json").raw();
  entry["title"] = odd;
  entry["name"] = "odd";
  const WholeAnswer whole = topology_answer({.name = entry.dump(), .gpus = 64});
  const std::string page = page_html(whole);
  CHECK(page.find("<script>alert") == std::string::npos);
  CHECK(page.find("&lt;/script&gt;&lt;script&gt;alert(1)") != std::string::npos);
  CHECK(page.find("\\u003c/script>") != std::string::npos);
  CHECK(page.find("<svg") != std::string::npos);
}

}  // namespace orrery
