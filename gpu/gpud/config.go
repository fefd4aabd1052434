package gpud

import (
	"log/slog"
	"time"
)

// Config configures a gpud. The durations have defaults when they are zero.
type Config struct {
	StateDir string // created if it does not exist; one gpud per directory
	Socket   string // control API and worker stream
	SoftGPUs []SoftGPU
	// NullGPUs are cards that compute nothing. By default there are none.
	NullGPUs []NullGPU
	// NoNVIDIA ignores real cards.
	NoNVIDIA bool
	// SwapBytes is the host memory that backs VRAM beyond a card's own, for each
	// card, until PUT /v1/gpus/{id} changes it; 0: no overcommit.
	SwapBytes uint64
	// Interop sets, for each card until PUT /v1/gpus/{id} changes it, whether
	// guests may answer the vendor runtime's authenticity query
	// (docs/vendor-interop.md).
	Interop bool
	// WorkerGroup, when positive, is the GID of the group that may open the
	// socket, besides gpud's own user. Only gpud's user and root may use the
	// control API.
	WorkerGroup int
	Log         *slog.Logger

	SaveEvery   time.Duration // maximum age of the state on disk
	DetachGrace time.Duration // how long a worker may take to reconnect after gpud restarts
	Overrun     time.Duration // how long a kernel may run past its lease before its session is ended
	KillAfter   time.Duration // how long a worker that was sent "lost" may take to exit
	ReturnAfter time.Duration // how long a worker whose connection ended may take to exit or to reconnect
}

func (c *Config) setDefaults() {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		of    *time.Duration
		value time.Duration
	}{{&c.SaveEvery, time.Second}, {&c.DetachGrace, 10 * time.Second}, {&c.Overrun, time.Minute}, {&c.KillAfter, 2 * time.Second}, {&c.ReturnAfter, 5 * time.Second}} {
		if *d.of <= 0 {
			*d.of = d.value
		}
	}
}

// Limits against hostile workers.
const (
	maxLinks           = 4096 // connections of workers
	maxSessionsPerVGPU = 256
	maxEndedPerVGPU    = 64
	keepEnded          = 10 * time.Minute
	maxVGPUs           = 1024
	keepDeleted        = 24 * time.Hour
	registerWithin     = 10 * time.Second
	tick               = 200 * time.Millisecond
	// missedTicks is the number of ticks in a row without which gpud considers that
	// it did not run. The client considers gpud stopped only after more than that.
	missedTicks = 2
	// settleEvery is the interval at which VRAM that is held without any work is
	// metered.
	settleEvery = 10 * time.Second
)
