"""The power cut is real: synced files survive it, unsynced ones do not."""

import os
import shutil
import unittest

import interop_path  # noqa: F401
import testbed
from disks import LoopDisk


class Disks(unittest.TestCase):
    def test_only_what_was_synced_survives_on_ext4(self):
        self.only_what_was_synced_survives("ext4")

    def test_only_what_was_synced_survives_on_xfs(self):
        self.only_what_was_synced_survives("xfs")

    def only_what_was_synced_survives(self, kind):
        folder = testbed.scratch_folder("Disks")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        disk = LoopDisk(folder, 64 << 20, kind)
        self.addCleanup(disk.close)
        for number in range(10):
            for name, synced in (("kept", True), ("lost", False)):
                with open(disk.mount_point / f"{name}-{number}", "wb") as file:
                    file.write(name.encode() * 1000)
                    if synced:
                        file.flush()
                        os.fsync(file.fileno())
            if number == 0:
                folder_fd = os.open(disk.mount_point, os.O_RDONLY)
                os.fsync(folder_fd)
                os.close(folder_fd)
            disk.cut()
            disk.power_on()
            self.assertEqual((disk.mount_point / f"kept-{number}").read_bytes(), b"kept" * 1000)
            lost = disk.mount_point / f"lost-{number}"
            self.assertEqual(lost.read_bytes() if lost.exists() else b"", b"")


if __name__ == "__main__":
    testbed.main()
