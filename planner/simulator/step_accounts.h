#ifndef SIPHON_PLANNER_SIMULATOR_STEP_ACCOUNTS_H_
#define SIPHON_PLANNER_SIMULATOR_STEP_ACCOUNTS_H_

#include <map>
#include <string>
#include <vector>

#include "planner/ids.h"
#include "planner/simulator/simulate.h"
#include "planner/units.h"

namespace siphon {

// Whose memory is counted: the workers of all replicas, then the host of each server, the devices
// without a worker (which can lend as well), and the drives. An account is a place in that order.
class StepAccounts {
 public:
  static constexpr int kNone = -1;

  // What is not a worker.
  struct Holder {
    std::string name;  // "the host", of several "the host of server 1", "device 5", "drive 0"
    Bytes capacity;    // 0: no limit
  };

  // Requires: `input.device_of_worker` has one entry a worker.
  explicit StepAccounts(const SimulationInput& input);

  int workers() const { return workers_; }
  // Of the worker's server.
  int OfHostOf(int worker) const { return workers_ + server_of_[worker]; }
  bool IsHost(int account) const { return workers_ <= account && account < workers_ + servers_; }
  // With a worker or without.
  bool IsDevice(int account) const { return !IsHost(account) && account < first_drive_; }
  // Of the device's worker, if it has one. kNone: there is no such device.
  int OfDevice(DeviceId device) const;
  // Of the drive that the worker's device uses. Requires: the topology has drives.
  int OfDriveOf(int worker) const { return of_drive_of_[worker]; }
  // Of account workers() and those behind it.
  const std::vector<Holder>& others() const { return others_; }

 private:
  int workers_ = 0;
  int servers_ = 1;
  int first_drive_ = 0;
  std::vector<int> server_of_;  // [worker]
  std::map<DeviceId, int> of_device_;
  std::vector<int> of_drive_of_;  // [worker]; empty without drives
  std::vector<Holder> others_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_STEP_ACCOUNTS_H_
