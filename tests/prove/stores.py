"""Stores as they lie on the disk, for the history: rule consume-queue."""

import shutil

import paths
import rocketmq_store

GOLDEN_SIZES = rocketmq_store.Sizes(40960, 200, 16, 64)
# What the scenarios give their brokers: small enough that files end all the time.
SMALL_SIZES = rocketmq_store.Sizes(1 << 20, 6000, 1000, 20_000)


def unpack_golden(folder):
    """A store that RocketMQ wrote and closed, into `folder`."""
    shutil.copytree(paths.SOURCE_DIR / "tests/golden/rocketmq_store/plain", folder,
                    dirs_exist_ok=True)


def note_rocketmq(history, folder, sizes, closed=True):
    """Takes a stopped store apart and notes all that does not agree in it; answers how many
    records it holds."""
    store = rocketmq_store.Store(folder, sizes, closed)
    for complaint in store.complaints:
        history.note("consume-queue", complaint)
    return len(store.messages)
