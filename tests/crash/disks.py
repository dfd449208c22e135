"""Small real disks that can lose power: an ext4 or XFS image on a loop device.

cut() is the file system's own shutdown call without flushing its journal: everything that was not
synced is gone, as after a power cut. `kill -9` alone never loses the page cache.
"""

import fcntl
import os
import pathlib
import shutil
import struct
import subprocess
import time

SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32)
NO_LOG_FLUSH = 2


class NoLoopDevice(Exception):
    """This machine cannot make a disk of a file."""


def _run(*command):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True,
                          check=False)
    if done.returncode != 0:
        raise NoLoopDevice(f"{' '.join(map(str, command))}: {done.stderr.strip()}\n"
                           "This test needs root and loop devices (/dev/loop-control).")
    return done.stdout.strip()


MAKE = {"ext4": ("mkfs.ext4", "-q", "-F", "-m", "0"), "xfs": ("mkfs.xfs", "-q", "-f")}
SMALLEST = {"ext4": 1 << 20, "xfs": 300 << 20}


class LoopDisk:
    """A file system of `size_bytes` in an image file, mounted at `mount_point`."""

    def __init__(self, folder, size_bytes, kind="ext4"):
        if os.geteuid() != 0:
            raise NoLoopDevice(f"This test needs root: it mounts an image of {kind}.")
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.image, self.mount_point = folder / "disk.img", folder / "disk"
        with open(self.image, "wb") as image:
            image.truncate(max(size_bytes, SMALLEST[kind]))
        _run(*MAKE[kind], self.image)
        self.mount_point.mkdir(exist_ok=True)
        self.mounted = False
        self.mount()

    def mount(self):
        _run("mount", "-o", "loop", self.image, self.mount_point)
        self.mounted = True

    def unmount(self, seconds=20):
        until = time.monotonic() + seconds
        while True:
            done = subprocess.run(["umount", self.mount_point], capture_output=True, text=True,
                                  check=False)
            if done.returncode == 0:
                self.mounted = False
                return
            if time.monotonic() > until:
                raise NoLoopDevice(f"umount: {done.stderr}")
            time.sleep(0.02)

    def cut(self):
        """Power off. What was not on the disk at this moment never will be."""
        folder = os.open(self.mount_point, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(folder, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(folder)

    def power_on(self):
        """Unmounts the dead file system and mounts it again: the journal is replayed."""
        self.unmount()
        self.mount()

    def free_bytes(self):
        return shutil.disk_usage(self.mount_point).free

    def close(self):
        if self.mounted:
            subprocess.run(["umount", "-l", self.mount_point], capture_output=True, check=False)
            self.mounted = False


def copy_image(source, target):
    """Of a disk that is not mounted."""
    _run("cp", "--sparse=always", source, target)
