// SPDX-License-Identifier: Apache-2.0
// Accepts connections, reads requests within limits, writes replies and streams of events. One
// thread waits for all of them; questions are computed by a few others.
// What a coroutine is given has a name before it is awaited: g++ 12 destroys some temporaries
// twice.
#include "sim/app/web/server.h"

#include <sys/socket.h>

#include <utility>  // asio of Boost 1.74 needs it before its own headers

#include <array>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>

#include "hw_models/catalog.h"
#include "sim/app/web/api.h"
#include "sim/app/web/guard.h"
#include "sim/app/web/requests.h"
#include "sim/app/web/searches.h"
#include "sim/app/web/worker.h"
#include "sim/base/errors/file_guard.h"
#include "sim/base/errors/machine_failed.h"
#include "sim/base/parallel.h"

namespace orrery {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = net::ip::tcp;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;
template <class T>
using Task = net::awaitable<T>;

constexpr std::uint32_t most_of_header = 16U << 10U;
constexpr std::uint64_t most_of_body = std::uint64_t{4} << 20U;
constexpr int most_connections = 256;
constexpr seconds to_send_a_request{15}, to_take_a_reply{15}, to_let_go{1};
constexpr seconds longest_search{600}, to_stop_a_search{20};
constexpr milliseconds between_looks{20};
constexpr seconds between_signs{5};  // of life, in a stream without news

struct Server {
  net::io_context io{1};
  net::thread_pool workers;
  Catalogues catalogues;
  WebFiles files = load_web_files();
  Searches searches;
  int port = 0;
  int connections = 0;
  explicit Server(std::size_t threads) : workers(threads) {}
};

auto told(boost::system::error_code& error) {
  return net::redirect_error(net::use_awaitable, error);
}

// Whether the other end has gone; nothing is taken from what it sent.
bool is_gone(beast::tcp_stream& stream) {
  char one = 0;
  const ssize_t got =
      recv(stream.socket().native_handle(), &one, 1, MSG_PEEK | MSG_DONTWAIT);  // NOLINT
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

// Not on the thread that waits for all.
Task<WebReply> computed(const std::function<WebReply()>& work) { co_return work(); }

Task<bool> write_text(beast::tcp_stream& stream, const std::string& text) {
  boost::system::error_code error;
  stream.expires_after(to_take_a_reply);
  co_await net::async_write(stream, net::buffer(text), told(error));
  co_return !error;
}

// One event of a stream; each line of its data is marked, its last break is not a line.
std::string event_text(const std::string& name, std::string data) {
  while (!data.empty() && data.back() == '\n') data.pop_back();
  std::string lines;
  for (const char c : data) lines += c == '\n' ? std::string("\ndata: ") : std::string(1, c);
  return "event: " + name + "\ndata: " + lines + "\n\n";
}

// Ends with the search, or with its client. Nothing: the client has gone.
class Watched {
 public:
  Watched(Server& server, const WebRequest& request, const ViewAsked& asked)
      : server_(server), request_(request), asked_(asked) {}
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() { server_.searches.end(request_.client); }

  Task<std::optional<WebReply>> run(beast::tcp_stream& stream) {
    net::steady_timer timer(co_await net::this_coro::executor);
    while (!is_gone(stream)) {
      if (!search_ && server_.searches.may_run(request_.client)) begin();
      if (search_) {
        const auto news = search_->progress();
        if (search_->reply()) co_return *search_->reply();
        if (news) say_ = event_text("progress", progress_text(*news));
        if (is_late()) co_return late_reply();
      } else if (server_.searches.stopped(request_.client)) {
        co_return refusal_reply(409, "search", "a stop before it began", "another try");
      }
      if (say_.empty() && Clock::now() - quiet_since_ > between_signs) say_ = ": at work\n\n";
      if (request_.events && !say_.empty()) {
        const bool taken = co_await write_text(stream, say_);
        if (!taken) co_return std::nullopt;
        quiet_since_ = Clock::now();
      }
      say_.clear();
      timer.expires_after(between_looks);
      boost::system::error_code ignored;
      co_await timer.async_wait(told(ignored));
    }
    co_return std::nullopt;
  }

 private:
  void begin() {
    search_.emplace(asked_);
    began_ = Clock::now();
  }
  static std::string progress_text(const Search::Progress& p) {
    return Json({{"share", p.share}, {"count", p.count}}).dump();
  }
  // A stop, or the end of its time, is told once; what does not end then is ended.
  bool is_late() {
    const auto now = Clock::now();
    if (!stopping_ &&
        (server_.searches.stopped(request_.client) || now - began_ > longest_search)) {
      stopping_ = now;
      search_->stop();
    }
    return stopping_ && now - *stopping_ > to_stop_a_search;
  }
  static WebReply late_reply() {
    return refusal_reply(503, "search", "no end in time",
                         "a smaller question, or the command line, which waits");
  }

  Server& server_;
  const WebRequest& request_;
  const ViewAsked& asked_;
  std::optional<Search> search_;
  std::string say_;  // to the client, next
  Clock::time_point began_, quiet_since_ = Clock::now();
  std::optional<Clock::time_point> stopping_;
};

// Headers of every response.
template <class Response>
void dress(Response& response, const std::string& type, bool keep) {
  for (const auto& [name, value] : guarding_headers()) response.set(name, value);
  response.set(http::field::content_type, type);
  response.keep_alive(keep);
}

Task<bool> write_reply(beast::tcp_stream& stream, const WebReply& reply, bool head, bool keep) {
  http::response<http::string_body> response{http::int_to_status(reply.status), 11};
  dress(response, reply.type, keep);
  response.body() = reply.body;
  response.prepare_payload();
  http::response_serializer<http::string_body> serializer{response};
  boost::system::error_code error;
  stream.expires_after(to_take_a_reply);
  if (head)
    co_await http::async_write_header(stream, serializer, told(error));
  else
    co_await http::async_write(stream, serializer, told(error));
  co_return !error && keep;
}

// A stream ends with its connection.
Task<bool> begin_events(beast::tcp_stream& stream) {
  http::response<http::empty_body> response{http::status::ok, 11};
  dress(response, "text/event-stream", false);
  http::response_serializer<http::empty_body> serializer{response};
  boost::system::error_code error;
  stream.expires_after(to_take_a_reply);
  co_await http::async_write_header(stream, serializer, told(error));
  co_return !error;
}

// The question in a request, read once; else what is wrong with it. Neither: it is another request.
std::optional<ViewAsked> question_in(const WebRequest& request, std::optional<WebReply>& wrong) {
  const std::string command = command_of(request.path);
  if (request.method != "POST" || command.empty()) return std::nullopt;
  try {
    return read_view(command, request.body, request.parts);
  } catch (const Error& error) {
    wrong = error_reply(400, error);
  }
  return std::nullopt;
}

// Whether the connection goes on.
Task<bool> reply_to_search(beast::tcp_stream& stream, Server& server, const WebRequest& request,
                           const ViewAsked& asked, bool keep) {
  std::optional<WebReply> reply = server.searches.begin(request.client);
  if (reply) {
    const bool goes_on = co_await write_reply(stream, *reply, false, keep);
    co_return goes_on;
  }
  Watched search(server, request, asked);
  if (request.events) {
    const bool begun = co_await begin_events(stream);
    if (!begun) co_return false;
  }
  reply = co_await search.run(stream);
  if (!reply) co_return false;
  if (!request.events) {
    const bool goes_on = co_await write_reply(stream, *reply, false, keep);
    co_return goes_on;
  }
  const std::string last = event_text(reply->status == 200 ? "answer" : "error", reply->body);
  co_await write_text(stream, last);
  co_return false;
}

// What needs no work.
std::optional<WebReply> quick_reply(Server& server, const WebRequest& request) {
  if (auto no = refused(request, server.port)) return no;
  if (request.method == "POST" && request.path == std::string(api_root) + "stop")
    return WebReply{.body = server.searches.stop(request.client) ? "true\n" : "false\n"};
  return std::nullopt;
}

Task<bool> reply_to(beast::tcp_stream& stream, Server& server, const WebRequest& request,
                    bool keep) {
  std::optional<WebReply> reply = quick_reply(server, request);
  if (!reply) {
    const std::optional<ViewAsked> asked = question_in(request, reply);
    if (asked && is_search(*asked)) {
      const bool goes_on = co_await reply_to_search(stream, server, request, *asked, keep);
      co_return goes_on;
    }
    constexpr int one = 1;  // requests share the cores
    const std::function<WebReply()> work = [&] {
      if (!asked) return reply_at_once(request, server.files);
      return reply_with([&] { return view_text(*asked, server.catalogues, one); });
    };
    if (!reply) {
      Task<WebReply> task = computed(work);
      reply = co_await net::co_spawn(server.workers.get_executor(), std::move(task),
                                     net::use_awaitable);
    }
  }
  const bool goes_on = co_await write_reply(stream, *reply, request.method == "HEAD", keep);
  co_return goes_on;
}

// What is said to a request that breaks a limit; nothing where the other end has gone or is late.
std::optional<WebReply> reply_to_broken(const boost::system::error_code& error) {
  if (error == http::error::body_limit)
    return refusal_reply(413, "body", "more than 4 MiB", "a smaller question");
  if (error == http::error::header_limit)
    return refusal_reply(431, "headers", "more than 16 KiB", "fewer");
  if (error.category() == http::make_error_code(http::error::bad_method).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message)
    return refusal_reply(400, "request", error.message(), "HTTP/1.1");
  return std::nullopt;
}

// A reply to what was not read to its end is lost if the connection is cut: what still comes is
// read and forgotten, for a while.
Task<void> let_go(beast::tcp_stream& stream) {
  boost::system::error_code error;
  stream.socket().shutdown(tcp::socket::shutdown_send, error);
  std::array<char, 65536> forgotten{};
  stream.expires_after(to_let_go);
  for (std::uint64_t read = 0; !error && read < 2 * most_of_body;)
    read += co_await stream.async_read_some(net::buffer(forgotten), told(error));
}

Task<void> converse(beast::tcp_stream& stream, Server& server) {
  beast::flat_buffer buffer(most_of_header + most_of_body);
  for (bool goes_on = true; goes_on;) {
    http::request_parser<http::string_body> parser;
    parser.header_limit(most_of_header);
    parser.body_limit(most_of_body);
    boost::system::error_code error;
    stream.expires_after(to_send_a_request);
    co_await http::async_read(stream, buffer, parser, told(error));
    if (error) {
      const std::optional<WebReply> reply = reply_to_broken(error);
      if (reply) co_await write_reply(stream, *reply, false, false);
      break;
    }
    const bool keep = parser.get().keep_alive();
    const WebRequest request = request_of(parser.release());
    goes_on = co_await reply_to(stream, server, request, keep);
  }
  co_await let_go(stream);
}

Task<void> connection(tcp::socket socket, Server& server) {
  ++server.connections;
  beast::tcp_stream stream(std::move(socket));
  try {
    co_await converse(stream, server);
  } catch (const std::exception& error) {
    // One connection's fault is not the others'.
    std::fprintf(stderr, "orrery: web: %s\n", error.what());
  }
  --server.connections;
}

Task<void> accept_all(tcp::acceptor& acceptor, Server& server) {
  net::steady_timer timer(server.io);
  for (;;) {
    boost::system::error_code error;
    tcp::socket socket = co_await acceptor.async_accept(told(error));
    if (error || server.connections >= most_connections) {
      // Too many files or connections: this one is closed, the next is taken a little later.
      if (error == net::error::operation_aborted) co_return;
      timer.expires_after(between_looks);
      co_await timer.async_wait(told(error));
      continue;
    }
    net::co_spawn(server.io, connection(std::move(socket), server), net::detached);
  }
}

}  // namespace

void serve_web(int port, const std::function<void(int)>& ready) {
  allow_files_only_below(data_root());
  Server server(static_cast<std::size_t>(hardware_threads()));
  tcp::acceptor acceptor(server.io);
  const tcp::endpoint place(net::ip::address_v4::loopback(),
                            static_cast<std::uint_least16_t>(port));
  boost::system::error_code error;
  acceptor.open(place.protocol());
  acceptor.set_option(tcp::acceptor::reuse_address(true));
  acceptor.bind(place, error);
  if (!error) acceptor.listen(net::socket_base::max_listen_connections, error);
  if (error)
    throw MachineFailed({.file = "--port",
                         .found = std::to_string(port) + ": " + error.message(),
                         .expected = "a port that is free (0: any)"});
  server.port = acceptor.local_endpoint().port();
  net::signal_set signals(server.io, SIGINT, SIGTERM);
  signals.async_wait([&](const boost::system::error_code&, int) { server.io.stop(); });
  net::co_spawn(server.io, accept_all(acceptor, server), net::detached);
  ready(server.port);
  server.io.run();
  server.workers.join();
}

}  // namespace orrery
