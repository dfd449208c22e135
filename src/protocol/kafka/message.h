#pragma once

// What every generated message includes. tools/generate_kafka.py turns each schema of
// protocol/kafka/schemas (Apache Kafka 4.3.1, one JSON file per message) into one struct:
//
//   schema message FetchRequest      struct FetchRequest in "protocol/kafka/fetch_request.h"
//   schema struct FetchTopic         FetchRequest::FetchTopic (one level, common structs too)
//   field PartitionMaxBytes          partition_max_bytes, initialised with the schema's default
//   bool, int8 .. int64, float64     bool, std::int8_t .. std::int64_t, double
//   uint16, uint32                   std::uint16_t, std::uint32_t
//   string, uuid, array of T         std::string, polylog::Uuid, std::vector<T>
//   bytes, records                   polylog::Slice (records: always std::optional<Slice>)
//   anything nullable                std::optional of the above
//   fields Version, Tag and the like version_field, tag_field (RESERVED in the generator)
//
// and members
//
//   static constexpr std::string_view message_name;
//   static constexpr std::int16_t api_key, min_version, max_version, first_flexible_version;
//   static Result<FetchRequest> decode(const Slice& body, std::int16_t version);
//   Result<void> encode(ByteWriter& out, std::int16_t version) const;
//   operator==, unless the message holds bytes or records
//
// The versions are those the codec knows; what a server advertises is its own decision (api.h
// names the versions that Kafka calls stable). `first_flexible_version` is max_version + 1 for a
// message without flexible versions. Messages are plain values: any thread, one writer.
//
// Decoding a request, `frame` being the bytes behind the 4-byte size (see header.h):
//
//   POLYLOG_ASSIGN(header, RequestHeader::decode(frame));
//   POLYLOG_ASSIGN(request, ProduceRequest::decode(header.body(frame), header.api_version));
//   for (const ProduceRequest::TopicProduceData& topic : request.topic_data) {
//     for (const ProduceRequest::PartitionProduceData& partition : topic.partition_data) {
//       if (partition.records) append(topic.name, partition.index, *partition.records);
//     }
//   }
//
// `records` shares the frame's memory: a Slice kept by anybody keeps the frame alive. Strings are
// copies. Fields that the version does not have keep their defaults; bytes behind the last field
// and unknown tagged fields are skipped, as Kafka does.
//
// Encoding a response with its header:
//
//   FetchResponse response;
//   response.responses.push_back({.topic = "t", .partitions = {{.partition_index = 0,
//                                                               .high_watermark = 42,
//                                                               .records = batches}}});
//   ByteWriter out;
//   begin_frame(out);  // frame.h
//   ResponseHeader{header.correlation_id}.encode(out, header.api_key, header.api_version);
//   POLYLOG_TRY(response.encode(out, header.api_version));
//   POLYLOG_TRY(end_frame(out));
//   Chain frame = out.take();  // size, header and body, for one gathered write
//
// Large `records` are spliced into the ByteWriter, never copied.
//
// Errors of decode: unsupported (a version the codec does not know), invalid (the body is
// truncated, a length is negative or larger than the body, null where the version forbids it, tags
// out of order). Errors of encode: unsupported (version, or a value set in a field that this
// version cannot carry and that the schema does not call ignorable), invalid (null where the
// version forbids it, a string above 32767 bytes, bytes above 2^31-1). After an error the writer
// holds part of a message and has to be dropped.
//
// Decoding allocates at most 64 bytes per byte of the body, whatever the counts in it claim; the
// messages that are read before authentication (ApiVersions) at most 8.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "bytes/slice.h"
#include "bytes/writer.h"

namespace polylog::protocol::kafka {

class Decoder;  // decoder.h
class Encoder;  // encoder.h

}  // namespace polylog::protocol::kafka
