#include "server/http/respond.h"

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <sstream>

namespace polylog::server::http {
namespace {

namespace beast = boost::beast::http;
using Request = beast::request_parser<beast::empty_body>;
using Message = beast::response<beast::string_body>;

Message plain(beast::status status, std::string body) {
  Message message(status, 11);
  message.set(beast::field::content_type, "text/plain; charset=utf-8");
  message.set(beast::field::cache_control, "no-store");
  message.body() = std::move(body);
  return message;
}

Message answer_path(std::string_view path, const Metrics& metrics, bool ready) {
  if (path == "/healthz") return plain(beast::status::ok, "ok\n");
  if (path == "/readyz") {
    return ready ? plain(beast::status::ok, "ready\n")
                 : plain(beast::status::service_unavailable, "not ready\n");
  }
  if (path == "/metrics") {
    Message message = plain(beast::status::ok, metrics.text());
    message.set(beast::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
    return message;
  }
  return plain(beast::status::not_found, "there is /healthz, /readyz and /metrics\n");
}

Message refusal(const boost::system::error_code& error, std::size_t head_bytes) {
  if (error == beast::error::body_limit || error == beast::error::unexpected_body) {
    return plain(beast::status::payload_too_large, "requests have no body here\n");
  }
  if (error == beast::error::header_limit || head_bytes >= head_bytes_max) {
    return plain(beast::status::request_header_fields_too_large, "the head is too large\n");
  }
  return plain(beast::status::bad_request, "this is no HTTP request\n");
}

Response serialize(Message message, bool head_only, bool close) {
  message.keep_alive(!close);
  message.prepare_payload();
  if (head_only) message.body().clear();
  std::ostringstream out;
  out << message.base() << message.body();
  return {out.str(), close};
}

}  // namespace

FrameCut cut_head(ByteView head, std::size_t head_bytes_limit) {
  constexpr std::string_view end_of_head = "\r\n\r\n";
  FrameCut cut;
  if (head.empty()) return cut;
  const std::string_view text = as_text(head.subspan(0, std::min(head.size(), head_bytes_limit)));
  const std::size_t end = text.find(end_of_head);
  const bool letter = text[0] >= 'A' && text[0] <= 'Z';
  if (end != std::string_view::npos) {
    cut.kind = FrameCut::Kind::frame;
    cut.body_bytes = end + end_of_head.size();
  } else if (!letter || text.size() == head_bytes_limit) {
    cut.kind = FrameCut::Kind::frame;
    cut.body_bytes = text.size();
  }
  return cut;
}

Response respond(ByteView head, const Metrics& metrics, bool ready) {
  Request request;
  request.header_limit(static_cast<std::uint32_t>(head_bytes_max));
  request.body_limit(0);
  boost::system::error_code error;
  request.put(boost::asio::buffer(head.data(), head.size()), error);
  if (error || !request.is_header_done()) {
    return serialize(refusal(error, head.size()), false, true);
  }
  if (request.chunked() || !request.is_done()) {
    return serialize(plain(beast::status::payload_too_large, "requests have no body here\n"),
                     false, true);
  }
  const bool close = !request.keep_alive();
  const beast::verb method = request.get().method();
  if (method != beast::verb::get && method != beast::verb::head) {
    Message message = plain(beast::status::method_not_allowed, "GET and HEAD only\n");
    message.set(beast::field::allow, "GET, HEAD");
    return serialize(std::move(message), false, close);
  }
  const auto target = request.get().target();
  const std::string_view path(target.data(), target.size());
  return serialize(answer_path(path.substr(0, path.find('?')), metrics, ready),
                   method == beast::verb::head, close);
}

}  // namespace polylog::server::http
