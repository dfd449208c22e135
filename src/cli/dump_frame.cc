#include "cli/dump_frame.h"

#include <cstdio>
#include <utility>

#include "bytes/endian.h"
#include "cli/record_format.h"
#include "cli/text.h"
#include "format/rocketmq/properties.h"

namespace polylog::cli {
namespace {

namespace segment = format::segment;
using segment::StoredRecord;

std::string hex(std::uint32_t number) {
  char text[12];
  std::snprintf(text, sizeof text, "%08x", number);
  return text;
}

void time_field(JsonWriter& json, std::string_view name, const std::optional<Timestamp>& time) {
  json.key(name);
  if (time && *time != no_timestamp) {
    json.value(time->value());
  } else {
    json.null();
  }
}

void producer_field(JsonWriter& json, const std::optional<segment::ProducerPart>& producer) {
  json.key("producer");
  if (!producer) {
    json.null();
    return;
  }
  json.begin_object().field("id", producer->id.value()).field("epoch", producer->epoch);
  json.field("base_sequence", producer->base_sequence).field("index", producer->index);
  json.field("count", producer->count).end_object();
}

std::string times(const StoredRecord& stored) {
  std::string line = " time " + format_time(stored.record.timestamp);
  if (stored.append_time != no_timestamp) line += " appended " + format_time(stored.append_time);
  if (stored.shows_append_time) line += " log-append-time";
  if (stored.expires) line += " expires " + format_time(*stored.expires);
  return line;
}

std::string sizes(const StoredRecord& stored) {
  const auto of = [](const std::optional<ByteView>& bytes) {
    return bytes ? std::to_string(bytes->size()) : std::string("null");
  };
  std::string line = " key " + of(stored.record.key) + " value " + of(stored.record.value);
  if (!stored.record.headers.empty()) {
    line += " headers " + std::to_string(stored.record.headers.size());
  }
  return line;
}

}  // namespace

bool is_sound_frame(ByteView bytes) {
  const auto frame = segment::parse_frame(bytes);
  if (!frame) return false;
  if (segment::is_ours(*frame)) return segment::crc_matches(bytes);
  return segment::decode_robustmq(bytes).has_value();
}

Result<FrameShown> FrameShown::read(ByteView bytes) {
  FrameShown shown;
  POLYLOG_ASSIGN(frame, segment::parse_frame(bytes));
  shown.frame_ = frame;
  shown.read_filling(bytes);
  return shown;
}

void FrameShown::read_filling(ByteView bytes) {
  if (!segment::is_ours(frame_)) {
    auto record = segment::decode_robustmq(bytes);
    if (!record) {
      damage_ = "the filling is neither polylog's version " +
                std::to_string(int{segment::record_version}) + " nor that of RobustMQ " +
                std::string(segment::robustmq_release) + " (" + record.error().context + ")";
      return;
    }
    robustmq_ = std::make_unique<const segment::RobustmqRecord>(*std::move(record));
    stored_ = segment::to_stored(*robustmq_);
    return;
  }
  ours_ = true;
  crc_ = load_big<std::uint32_t>(frame_.metadata.data() + segment::metadata_at::crc);
  crc_ok_ = segment::crc_matches(bytes);
  auto stored = segment::decode(bytes);
  if (stored) stored_ = *std::move(stored);
  if (!crc_ok_) {
    damage_ = "the record's checksum is wrong";
  } else if (!stored_) {
    damage_ = "the record does not read: " + stored.error().context;
  }
}

std::optional<segment::ProducerPart> FrameShown::producer() const {
  return stored_ ? stored_->producer : std::nullopt;
}

std::string FrameShown::person_line(std::uint64_t position) const {
  std::string line = "  @" + std::to_string(position) + " offset " +
                     std::to_string(frame_.offset.value()) + " bytes " +
                     std::to_string(frame_.size());
  if (robustmq_) {
    line += " of RobustMQ, shard " + quoted(as_bytes(robustmq_->shard)) + " segment " +
            std::to_string(robustmq_->segment);
  }
  if (!stored_) {
    line += " metadata " + std::to_string(frame_.metadata.size()) + " protocol data " +
            std::to_string(frame_.protocol_data.size()) + " data " +
            std::to_string(frame_.data.size());
  } else {
    line += times(*stored_) + sizes(*stored_);
    if (const auto& producer = stored_->producer) {
      line += " producer " + std::to_string(producer->id.value()) + "/" +
              std::to_string(producer->epoch) + " sequence " +
              std::to_string(producer->base_sequence) + " record " +
              std::to_string(producer->index + 1) + " of " + std::to_string(producer->count);
    }
    if (stored_->rocketmq) line += " rocketmq";
    if (stored_->mqtt) line += " mqtt qos " + std::to_string(int{stored_->mqtt->qos});
    if (stored_->mqtt && stored_->mqtt->retain) line += " retain";
  }
  if (robustmq_) {
    for (const std::string& part : robustmq_->other_parts) line += " unread part " + part;
  }
  if (ours_) line += " crc " + hex(crc_) + (crc_ok_ ? " ok" : " WRONG");
  return line;
}

void FrameShown::show_object(std::uint64_t position, DumpReport& report) const {
  JsonWriter json = json_of_type("frame");
  json.field("position", position).field("bytes", frame_.size());
  json.field("offset", frame_.offset.value());
  json.field("filling", ours_ ? "polylog" : robustmq_ ? "robustmq" : "unknown");
  json.field("metadata_bytes", frame_.metadata.size());
  json.field("protocol_bytes", frame_.protocol_data.size());
  json.field("data_bytes", frame_.data.size());
  if (stored_) {
    time_field(json, "timestamp", stored_->record.timestamp);
    time_field(json, "append_timestamp", stored_->append_time);
    json.field("timestamp_type", stored_->shows_append_time ? "log_append_time" : "create_time");
    time_field(json, "expires", stored_->expires);
    producer_field(json, stored_->producer);
    json.field("rocketmq", stored_->rocketmq.has_value());
    json.field("mqtt", stored_->mqtt.has_value());
  }
  if (ours_) json.field("crc", hex(crc_)).field("crc_ok", crc_ok_);
  if (robustmq_) {
    json.field("shard", robustmq_->shard).field("segment", robustmq_->segment);
    json.key("unread_parts").begin_array();
    for (const std::string& part : robustmq_->other_parts) json.value(part);
    json.end_array();
  }
  report.object(json);
}

void FrameShown::show_record(DumpReport& report) const {
  Record record = stored_->record;
  record.offset = frame_.offset;
  const auto& message = stored_->rocketmq;
  if (report.json()) {
    JsonWriter json = json_of_type("record");
    json.field("offset", record.offset.value());
    add_record_fields(json, record);
    if (message) json.bytes_field("properties", as_bytes(message->properties));
    return report.object(json);
  }
  std::string line = "    key " + quoted(record.key) + " value " + quoted(record.value);
  for (const Header& header : record.headers) {
    line += " header " + quoted(as_bytes(header.name)) + "=" + quoted(header.value);
  }
  if (message) {
    line = "    body " + quoted(record.value);
    format::rocketmq::for_each_property(
        message->properties, [&](std::string_view name, std::string_view value) {
          line += " " + quoted(as_bytes(name)) + "=" + quoted(as_bytes(value));
          return true;
        });
  }
  report.person(line);
}

void FrameShown::show(std::uint64_t position, bool records, DumpReport& report) const {
  if (report.json()) {
    show_object(position, report);
  } else {
    report.person(person_line(position));
  }
  if (records && stored_) show_record(report);
}

}  // namespace polylog::cli
