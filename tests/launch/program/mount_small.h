#ifndef SIPHON_TESTS_LAUNCH_PROGRAM_MOUNT_SMALL_H_
#define SIPHON_TESTS_LAUNCH_PROGRAM_MOUNT_SMALL_H_

#include <sched.h>
#include <sys/mount.h>

#include <string>

namespace siphon {

// Mounts a file system of `size` ("size=700k") in a mount name space of the child's own: for
// ProgramTest::RunOptions::prepare. False where that is forbidden.
inline bool MountSmall(const std::string& path, const char* size) {
  if (unshare(CLONE_NEWNS) != 0) return false;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return mount("tmpfs", path.c_str(), "tmpfs", 0, size) == 0;
}

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_PROGRAM_MOUNT_SMALL_H_
