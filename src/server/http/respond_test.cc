#include "server/http/respond.h"

#include <gtest/gtest.h>

namespace polylog::server::http {
namespace {

class Http : public testing::Test {
 protected:
  Response ask(const std::string& head, bool ready = true) {
    const FrameCut cut = cut_head(as_bytes(head), head_bytes_max);
    EXPECT_EQ(cut.kind, FrameCut::Kind::frame);
    return respond(as_bytes(std::string_view(head).substr(0, cut.body_bytes)), metrics_, ready);
  }
  Response get(const std::string& path, bool ready = true) {
    return ask("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n", ready);
  }
  static std::string status_of(const Response& response) { return response.bytes.substr(9, 3); }
  static std::string body_of(const Response& response) {
    return response.bytes.substr(response.bytes.find("\r\n\r\n") + 4);
  }
  Metrics metrics_;
};

TEST_F(Http, healthz_answers_while_not_ready) {
  EXPECT_EQ(status_of(get("/healthz", false)), "200");
  EXPECT_FALSE(get("/healthz").close);
}

TEST_F(Http, readyz_says_whether_it_is_ready) {
  EXPECT_EQ(status_of(get("/readyz", false)), "503");
  EXPECT_EQ(status_of(get("/readyz", true)), "200");
  EXPECT_EQ(status_of(get("/readyz?verbose")), "200");
}

TEST_F(Http, metrics_are_prometheus_text) {
  metrics_.counter("polylog_x_total", "Things.", "kind=\"a\"").add(3);
  metrics_.counter("polylog_x_total", "Things.", "kind=\"b\"").add(4);
  metrics_.counter("polylog_seconds_total", "Time.", "", 1e-9).add(1'500'000'000);
  metrics_.gauge("polylog_level", "Level.", [] { return 0.25; });
  const Response response = get("/metrics");
  EXPECT_EQ(status_of(response), "200");
  EXPECT_NE(response.bytes.find("text/plain; version=0.0.4"), std::string::npos);
  EXPECT_EQ(body_of(response),
            "# HELP polylog_level Level.\n# TYPE polylog_level gauge\npolylog_level 0.25\n"
            "# HELP polylog_seconds_total Time.\n# TYPE polylog_seconds_total counter\n"
            "polylog_seconds_total 1.5\n"
            "# HELP polylog_x_total Things.\n# TYPE polylog_x_total counter\n"
            "polylog_x_total{kind=\"a\"} 3\npolylog_x_total{kind=\"b\"} 4\n");
}

TEST_F(Http, process_metrics_are_there) {
  add_process_metrics(metrics_);
  EXPECT_NE(metrics_.text().find("process_resident_memory_bytes "), std::string::npos);
  EXPECT_NE(metrics_.text().find("# TYPE process_cpu_seconds_total counter"), std::string::npos);
}

TEST_F(Http, head_has_the_length_but_no_body) {
  const Response response = ask("HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(response.bytes.find("Content-Length: 3"), std::string::npos);
  EXPECT_EQ(body_of(response), "");
}

TEST_F(Http, unknown_paths_and_methods_are_refused) {
  EXPECT_EQ(status_of(get("/")), "404");
  const std::string post = "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
  EXPECT_EQ(status_of(ask(post)), "405");
}

TEST_F(Http, bodies_are_refused) {
  const Response response = ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_EQ(status_of(response), "413");
  EXPECT_TRUE(response.close);
  EXPECT_EQ(status_of(ask("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")), "413");
}

TEST_F(Http, old_and_closing_clients_are_closed) {
  EXPECT_TRUE(ask("GET /healthz HTTP/1.0\r\n\r\n").close);
  EXPECT_TRUE(ask("GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n").close);
}

TEST_F(Http, what_is_no_request_is_a_bad_request) {
  EXPECT_EQ(status_of(ask("GET\r\n\r\n")), "400");
  EXPECT_EQ(status_of(ask(std::string("\x16\x03\x01\x02", 4))), "400");
  EXPECT_TRUE(ask("GET\r\n\r\n").close);
}

TEST_F(Http, endless_heads_are_refused_at_8_kib) {
  const std::string head = "GET / HTTP/1.1\r\nX: " + std::string(head_bytes_max, 'x');
  EXPECT_EQ(status_of(ask(head)), "431");
}

TEST_F(Http, an_incomplete_head_waits) {
  EXPECT_EQ(cut_head(as_bytes("GET / HTTP/1.1\r\nHost"), head_bytes_max).kind,
            FrameCut::Kind::more);
}

}  // namespace
}  // namespace polylog::server::http
