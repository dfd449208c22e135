#include "cli/kafka_tools/record_printer.h"

namespace polylog::cli::kafka_tools {
namespace {

bool is_true(const std::string& text) { return text == "true" || text == "TRUE" || text == "True"; }

bool deserializes_bytes(const std::string& name) {
  return name.ends_with(".StringDeserializer") || name.ends_with(".ByteArrayDeserializer") ||
         name.ends_with(".BytesDeserializer");
}

}  // namespace

Result<RecordPrinter> RecordPrinter::from(
    const std::vector<std::pair<std::string, std::string>>& properties) {
  RecordPrinter printer;
  for (const auto& [key, value] : properties) {
    if (key == "print.timestamp") printer.timestamp_ = is_true(value);
    if (key == "print.partition") printer.partition_ = is_true(value);
    if (key == "print.offset") printer.offset_ = is_true(value);
    if (key == "print.epoch") printer.epoch_ = is_true(value);
    if (key == "print.headers") printer.headers_ = is_true(value);
    if (key == "print.key") printer.key_ = is_true(value);
    if (key == "print.value") printer.value_ = is_true(value);
    if (key == "key.separator") printer.key_separator_ = value;
    if (key == "line.separator") printer.line_separator_ = value;
    if (key == "headers.separator") printer.headers_separator_ = value;
    if (key == "null.literal") printer.null_literal_ = value;
    if (key.ends_with(".deserializer") && !deserializes_bytes(value)) {
      return fail(Errc::unsupported, "The deserializer " + value +
                                         " is not supported: there is no Java here; keys, values "
                                         "and headers are printed as they are");
    }
  }
  return printer;
}

void RecordPrinter::add(const std::optional<ByteView>& bytes, std::string& out) const {
  if (bytes) {
    out += as_text(*bytes);
  } else {
    out += null_literal_;
  }
}

void RecordPrinter::add_headers(const std::vector<Header>& headers, std::string& out) const {
  if (headers.empty()) out += "NO_HEADERS";
  bool first = true;
  for (const Header& header : headers) {
    if (!first) out += headers_separator_;
    first = false;
    out += header.name;
    out += ':';
    add(header.value, out);
  }
}

void RecordPrinter::print(const Fetcher::Fetched& fetched, std::string& out) const {
  const Record& record = fetched.record;
  bool first = true;
  const auto next = [&] {
    if (!first) out += key_separator_;
    first = false;
  };
  if (timestamp_) {
    next();
    out += record.timestamp == no_timestamp
               ? "NO_TIMESTAMP"
               : (fetched.append_time ? "LogAppendTime:" : "CreateTime:") +
                     std::to_string(record.timestamp.value());
  }
  if (partition_) {
    next();
    out += "Partition:" + std::to_string(fetched.where.partition);
  }
  if (offset_) {
    next();
    out += "Offset:" + std::to_string(record.offset.value());
  }
  if (epoch_) {
    next();
    out += "Epoch:NOT_PRESENT";  // the original never has it either
  }
  if (headers_) {
    next();
    add_headers(record.headers, out);
  }
  if (key_) {
    next();
    add(record.key, out);
  }
  if (value_) {
    next();
    add(record.value, out);
  }
  out += line_separator_;
}

}  // namespace polylog::cli::kafka_tools
