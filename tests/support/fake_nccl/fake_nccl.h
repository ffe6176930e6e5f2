#ifndef SIPHON_TESTS_SUPPORT_FAKE_NCCL_FAKE_NCCL_H_
#define SIPHON_TESTS_SUPPORT_FAKE_NCCL_FAKE_NCCL_H_

#include <cstdint>

// How tests talk to the fake NCCL, which comes by LD_PRELOAD together with the fake CUDA runtime:
// they find these functions by dlsym (fake_nccl_control.h).
//
// It is stricter than NCCL may be. A send is done only when its receive has its bytes, whatever
// their number; messages of different sizes never end; what is not in order hangs. Communicators
// that block are refused. A group, and a communicator that all have joined, stays under way
// (ncclInProgress) until it was asked about a few times, and only then goes onto its stream; a
// communicator that is used meanwhile says ncclInvalidUsage. Two ranks on one device of one host
// are refused; a host is one of the fake CUDA runtime's, or what NCCL_HOSTID names. An abort
// returns, in a group at its end, when no message of any communicator is on a stream of the device.
//
// What may be set, by name; the environment's SIPHON_FAKE_NCCL_<NAME IN CAPITALS> gives first
// values:
//   version       (22809)
//   questions     of ncclCommGetAsyncError until something goes on (2)
//   delay_ns      before the bytes of each receive are copied (0)
//   memory        bytes of the device that a communicator takes (65536)
//   one_queue     1: each device has one queue for all streams, so that a group begins only when
//                 all groups that were launched before it have begun (0)
//   fail_group    the ncclGroupEnd, counted from 1, that ends with fail_code; 0: none (0)
//   fail_after    groups, counted likewise, after which every communicator of this process has
//                 fail_code to say when it is asked; 0: none (0)
//   fail_code     (6, ncclRemoteError)
// What may be asked for besides: groups, sends, receives (that were put on streams), aborts,
// communicators (that are there), waiting (groups on streams that are not done).
extern "C" {
int siphon_fake_nccl_set(const char* name, int64_t value);  // 0, or -1 for an unknown name
int64_t siphon_fake_nccl_get(const char* name);             // INT64_MIN for an unknown name
// First values again, counters at 0. Communicators stay.
void siphon_fake_nccl_reset();
}

#endif  // SIPHON_TESTS_SUPPORT_FAKE_NCCL_FAKE_NCCL_H_
