// Package cuda is the Driver for a real card. It opens the host's libcuda at run time
// and does not need CUDA to build.
//
// Work is queued by the issuer and submitted by one goroutine per context:
//
//	issuer ─► streams' queues ─► submit: Gate.Enter ─► CUDA streams ─┐
//	                     ▲         ▲   └── poll events ◄─────────────┘
//	  bytes of copies ◄──┘         └── done functions, Gate.Leave
//
// The bytes of a guest's pageable memory are copied from and to pinned memory by
// goroutines of their own (staging.go). Work that is ordered after a copy to the host is
// reported after its bytes have arrived (needs.go).
//
// Operations wait in their streams (queue.go): a stream has as many operations on the
// card as take some milliseconds, so that a lease can end and a full stream delays no
// other.
//
//	idle ──op──► entered ──lease over, or nothing left──► draining ──► idle
//	                         (accepts no more work)    Leave(busy time)
//
// A long-running kernel holds its lease past the end. While no other session waits
// for the card, work of other streams continues in the meantime (worker.LongGate).
//
// The device time of a batch (Enter to Leave) is measured with events: from the one
// before its first work to the last one of any stream. Zeroing of new memory and
// module loading run outside of batches, in goroutines of the worker: neither the issuer
// nor the loop waits for them. Memory is not evicted before it is zero.
//
// If the card has virtual memory management, device memory is allocated in blocks
// (vmm.go) in the session's address window, of which libcuda reserves the device part
// as a whole (place.go); Evict copies pieces to the host and frees them on the card,
// and Restore maps new ones at the same addresses (evict.go). Modules' code and
// variables stay on the card. On other cards all memory stays.
//
// What kernels print, libcuda writes to the process's stdout and stderr when something
// waits for the card. The loop makes such a call for kernels that have ended, and passes
// the text on before it reports their end (print.go).
//
// Host memory of the guest that is in the window (host.go) is registered with libcuda
// for all contexts, at the guest's address; copies from and to it need no staging. A
// guest's managed memory is such memory: the card reads and writes it over the bus.
//
// Memory that is still in use by a kernel is never unmapped: a drained operation runs when
// nothing is on the card, and Destroy waits for the card first.
//
// A fault of one context ends all contexts of the process, that is of one guest's
// program (docs/decisions/0044-first-contact-with-a-card.md).
//
// Tests run it on a double of libcuda that records calls (testdata), and on the guest
// library with a soft GPU (gpu/conformance/nested), which executes them.
//
// Names of functions and constants are those of cuda.h and of the CUDA driver API
// reference, 12.4.
package cuda
