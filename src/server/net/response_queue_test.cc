#include "server/net/response_queue.h"

#include <gtest/gtest.h>

#include "bytes/writer.h"

namespace polylog::server {
namespace {

Answer answer_of(std::string_view text) {
  ByteWriter out;
  out.text(text);
  return Answer{Answer::Kind::bytes, out.take()};
}

std::string text_of(const ResponseQueue::Ready& ready) {
  std::string text;
  for (const Chain& chain : ready.chains) {
    const std::vector<std::uint8_t> bytes = chain.flatten();
    text += as_text(bytes);
  }
  return text;
}

TEST(ResponseQueue, answers_leave_in_request_order) {
  ResponseQueue queue;
  const auto a = queue.open(), b = queue.open(), c = queue.open();
  queue.answer(c, answer_of("c"));
  queue.answer(b, answer_of("b"));
  EXPECT_FALSE(queue.anything_ready());
  EXPECT_EQ(text_of(queue.take_ready()), "");
  queue.answer(a, answer_of("a"));
  EXPECT_EQ(text_of(queue.take_ready()), "abc");
  EXPECT_TRUE(queue.empty());
}

TEST(ResponseQueue, requests_without_an_answer_hold_nothing_back) {
  ResponseQueue queue;
  const auto a = queue.open(), b = queue.open();
  queue.answer(b, answer_of("b"));
  queue.answer(a, Answer{});
  EXPECT_EQ(text_of(queue.take_ready()), "b");
}

TEST(ResponseQueue, close_lets_out_what_is_before_it_and_nothing_after) {
  ResponseQueue queue;
  const auto a = queue.open(), b = queue.open(), c = queue.open();
  queue.answer(b, Answer{Answer::Kind::close, {}});
  queue.answer(c, answer_of("c"));
  EXPECT_FALSE(queue.take_ready().close);
  queue.answer(a, answer_of("a"));
  const ResponseQueue::Ready ready = queue.take_ready();
  EXPECT_EQ(text_of(ready), "a");
  EXPECT_TRUE(ready.close);
}

TEST(ResponseQueue, counts_what_it_holds) {
  ResponseQueue queue;
  const auto a = queue.open(), b = queue.open();
  queue.answer(b, answer_of("four"));
  EXPECT_EQ(queue.unanswered(), 1U);
  EXPECT_EQ(queue.held_bytes(), 4U);
  queue.answer(a, answer_of("x"));
  queue.take_ready();
  EXPECT_EQ(queue.unanswered(), 0U);
  EXPECT_EQ(queue.held_bytes(), 0U);
}

}  // namespace
}  // namespace polylog::server
