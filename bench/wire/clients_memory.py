"""`run.py clients-memory`: resident memory of idle connections and of consumer groups.

A connection has asked once for the API versions and is silent then. A group has one member, an
assignment and one committed offset; its connection is shared, and not counted.
"""

import resource
import shutil
import time

import paths  # noqa: F401
import stores
from group_member import Member
from load_tool import RoundFailed
from report import machine, write_json

TOPIC = "read"


def add_options(parser):
    stores.add_options(parser)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=1_000)


def connect(broker, count):
    """So many connections, none of which says anything more."""
    connections = []
    for _ in range(count):
        connection = broker.connect(timeout=60)
        connections.append(connection)
        connection.api_versions()
    return connections


def measure(broker, options):
    with broker.connect(timeout=60) as connection:
        error, message = connection.create_topic(TOPIC, 1)
        if error != 0:
            raise RoundFailed(f"creating {TOPIC}: {error} {message}")
        connection.find_coordinator("group-0")
        time.sleep(2)
        idle = broker.rss_bytes()
        for number in range(options.groups):
            Member(connection, f"group-{number}", TOPIC).join().commit({0: number})
        time.sleep(2)
        with_groups = broker.rss_bytes()
        connections = connect(broker, options.connections)
        time.sleep(2)
        with_all = broker.rss_bytes()
        for one in connections:
            one.close()
    return idle, with_groups, with_all


def run(options, folder):
    # The broker keeps half of its descriptors for files.
    options.connections = min(options.connections,
                              resource.getrlimit(resource.RLIMIT_NOFILE)[1] // 2 - 100)
    result = {"machine": machine(), "connections": options.connections, "groups": options.groups,
              "rows": []}
    print(f"\nresident memory; {options.groups} groups, then {options.connections} idle "
          f"connections")
    print(f"{'':15} {'idle MiB':>9} {'groups MiB':>11} {'KiB a group':>12} {'all MiB':>8} "
          f"{'KiB a connection':>17}")
    for kind in options.brokers:
        broker = stores.make_broker(kind, folder)
        broker.settings["group.initial.rebalance.delay.ms"] = 0
        try:
            broker.start()
            idle, groups, everything = measure(broker, options)
            each_group = (groups - idle) / 1024 / options.groups
            each_connection = (everything - groups) / 1024 / options.connections
            print(f"{kind:15} {idle / 2**20:9.1f} {groups / 2**20:11.1f} {each_group:12.2f} "
                  f"{everything / 2**20:8.1f} {each_connection:17.2f}")
            result["rows"].append({"broker": kind, "idle_mib": idle / 2**20,
                                   "groups_mib": groups / 2**20, "kib_a_group": each_group,
                                   "all_mib": everything / 2**20,
                                   "kib_a_connection": each_connection})
        finally:
            broker.close()
            shutil.rmtree(broker.data_dir, ignore_errors=True)
    write_json("clients-memory", result)
    return 0
