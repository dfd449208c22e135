#pragma once

#include <cstdint>
#include <span>

#include "broker/async.h"
#include "protocol/kafka/api.h"
#include "protocol/kafka/api_versions_response.h"
#include "server/kafka/context.h"
#include "server/kafka/reply.h"

namespace polylog::server::kafka {

// Handles one request: returns when the next request of the connection may be looked at. What
// waits longer goes on in a coroutine of its own, which holds the reply. Each is in the file of
// its name.
using Handler = Async<void> (*)(Context& context, ClientPtr client, Call call, Reply reply);

Async<void> produce(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> fetch(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> list_offsets(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> metadata(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> api_versions(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> create_topics(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> delete_topics(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> delete_records(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> find_coordinator(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> offset_commit(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> offset_fetch(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> join_group(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> heartbeat(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> leave_group(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> sync_group(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> describe_groups(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> list_groups(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> delete_groups(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> consumer_group_heartbeat(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> consumer_group_describe(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> offset_delete(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> init_producer_id(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> offset_for_leader_epoch(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> describe_configs(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> incremental_alter_configs(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> alter_configs(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> list_config_resources(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> describe_client_quotas(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> alter_client_quotas(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> describe_log_dirs(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> create_partitions(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> elect_leaders(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> alter_partition_reassignments(Context& context, ClientPtr client, Call call,
                                          Reply reply);
Async<void> list_partition_reassignments(Context& context, ClientPtr client, Call call,
                                         Reply reply);
Async<void> describe_producers(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> describe_topic_partitions(Context& context, ClientPtr client, Call call, Reply reply);
Async<void> describe_cluster(Context& context, ClientPtr client, Call call, Reply reply);

// One line per API: what is served is what is advertised, but for Produce, whose advertised range
// begins at 0 because older librdkafka releases compress only then (KAFKA-18659).
struct Api {
  protocol::kafka::ApiKey key;
  std::int16_t first;
  std::int16_t last;
  std::int16_t first_advertised;
  Handler handle;
};
std::span<const Api> apis();
const Api* find_api(std::int16_t key);  // nullptr: not served

// The answer to an ApiVersions request of any version, known or not: what is sent for an unknown
// one is UNSUPPORTED_VERSION in the form of version 0 (BR-68).
protocol::kafka::ApiVersionsResponse advertised_versions(bool consumer_groups);
protocol::kafka::ApiVersionsResponse unsupported_api_versions();
// Kafka's rule for the names that clients give themselves.
bool valid_software_name(std::string_view name);

}  // namespace polylog::server::kafka
