#ifndef SIPHON_TESTS_LAUNCH_PROGRAM_DEVICE_JOBS_H_
#define SIPHON_TESTS_LAUNCH_PROGRAM_DEVICE_JOBS_H_

#include <string>

#include "tests/launch/program/program_run.h"

namespace siphon {

// The program with devices for tests (tests/launch/run/device_program.cc), on the fakes, whose
// devices are in `directory`, so many on each host. Where there is one it wants --share_gpu.
ProgramTest::Program DeviceProgram(const std::string& directory, int devices);

// TinyJobTest's job for workers on devices. Without dropout, which each kind of device draws its
// own way, and with attention in plain operators: so its bits are the CPU's.
std::string OnDevices(const std::string& tiny_job_text);

// For memory.capacity: less than worker 0 of that job needs, and more than enough for the others.
std::string TightCapacity(const std::string& job_file);

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_PROGRAM_DEVICE_JOBS_H_
