#ifndef SIPHON_TESTS_SUPPORT_FAKE_CUDA_FAKE_CUDA_H_
#define SIPHON_TESTS_SUPPORT_FAKE_CUDA_FAKE_CUDA_H_

#include <cstdint>

// How tests talk to the fake CUDA runtime, which comes by LD_PRELOAD: they find these functions by
// dlsym (tests/support/fake_cuda/fake_control.h), and not at all with the real runtime.
//
// What may be set, by name; the environment's SIPHON_FAKE_CUDA_<NAME IN CAPITALS> gives first
// values:
//   devices        number of them; 0: the driver shows none, -1: there is no driver (default 2)
//   memory         bytes of each device, shared by all processes of one directory (1 GiB)
//   rate           bytes a second of each stream; 0: as fast as memory (0)
//   delay_ns       before each copy (0)
//   fail_copy      the copy, counted from 1 as they run, that fails with fail_code, which all
//                  calls return from then on; 0: none (0)
//   fail_code      (700, cudaErrorIllegalAddress)
//   fail_least     bytes of the smallest copy that counts for fail_copy (0)
//   fail_start     the call of cudaMemcpyAsync, counted from 1, that is refused with
//                  cudaErrorInvalidValue and copies nothing; 0: none (0)
//   fail_record    the call of cudaEventRecord, counted from 1, that finds the device broken by
//                  fail_code, likewise; 0: none (0)
//   fail_open      the call of cudaIpcOpenMemHandle, counted from 1, that is refused as between
//                  devices that do not reach each other; 0: none (0)
//   apart          the device that reaches no other one, and is reached by none; -1: none (-1)
// What may be asked for besides: copies (that ran), opens (calls of
// cudaIpcOpenMemHandle), counted (of them, for
// fail_copy), starts (calls of cudaMemcpyAsync), records (calls
// of cudaEventRecord), pageable
// (copies from or to memory that is not locked), most_queued (copies that one stream had at a
// time), freed_while_opened, opened (mappings of other processes' memory that are open here),
// streams, events, kernels (launched), allocations (that are not freed), contexts (a
// bit for each device that cudaSetDevice was called for: since CUDA 12 it makes a context there),
// locked and most_locked (bytes of the host, now and at a time).
//
// siphon_fake_cuda_links, and the environment's SIPHON_FAKE_CUDA_LINKS, describe how long copies
// take between devices and the host in the time that cudaEventElapsedTime tells (links.h).
//
// SIPHON_FAKE_CUDA_NAME: of its devices ("Siphon fake GPU").
//
// SIPHON_FAKE_CUDA_DIR: the directory, best in /dev/shm, that processes share which shall see one
// another's memory; it holds the devices' memory. Processes on what looks like several hosts have
// devices of their own on each (board.h).
extern "C" {
int siphon_fake_cuda_set(const char* name, int64_t value);  // 0, or -1 for an unknown name
int64_t siphon_fake_cuda_get(const char* name);             // INT64_MIN for an unknown name
int siphon_fake_cuda_links(const char* text);               // 0, or -1 for what is no description
// First values again, counters at 0, no error any more. Memory, streams and events stay.
void siphon_fake_cuda_reset();
// What SIPHON_FAKE_CUDA_DIR has to be for a process that shall see this one's memory.
const char* siphon_fake_cuda_directory();
}

#endif  // SIPHON_TESTS_SUPPORT_FAKE_CUDA_FAKE_CUDA_H_
