#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/fetcher.h"

namespace polylog::cli::kafka_tools {

// Records as kafka-console-consumer prints them (Kafka 4.4, DefaultMessageFormatter).
class RecordPrinter {
 public:
  // Properties print.timestamp, .partition, .offset, .epoch, .headers, .key, .value, key.separator,
  // line.separator, headers.separator, null.literal. unsupported: deserializers, which are Java
  // classes, but for those of strings and bytes.
  static Result<RecordPrinter> from(
      const std::vector<std::pair<std::string, std::string>>& properties);

  void print(const Fetcher::Fetched& fetched, std::string& out) const;

 private:
  void add(const std::optional<ByteView>& bytes, std::string& out) const;
  void add_headers(const std::vector<Header>& headers, std::string& out) const;

  bool timestamp_ = false, partition_ = false, offset_ = false, epoch_ = false;
  bool headers_ = false, key_ = false, value_ = true;
  std::string key_separator_ = "\t";
  std::string line_separator_ = "\n";
  std::string headers_separator_ = ",";
  std::string null_literal_ = "null";
};

}  // namespace polylog::cli::kafka_tools
