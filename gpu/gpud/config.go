package gpud

import (
	"log/slog"
	"time"
)

// Config of a gpud. The durations have defaults when they are zero.
type Config struct {
	StateDir string // made when it is not there; one gpud per directory
	Socket   string // control API and worker stream
	SoftGPUs []SoftGPU
	// NullGPUs compute nothing. There are none unless they are asked for.
	NullGPUs []NullGPU
	// NoNVIDIA leaves real cards alone even where there are some.
	NoNVIDIA bool
	// SwapBytes of the host's memory are for what does not fit on a card, each,
	// until PUT /v1/gpus/{id} says otherwise; 0: no more is promised than fits.
	SwapBytes uint64
	// Interop of each card, until PUT /v1/gpus/{id} says otherwise: whether guests
	// may answer the vendor runtime's authenticity query (docs/vendor-interop.md).
	Interop bool
	// WorkerGroup, when positive, is the group that may open the socket
	// besides gpud's own user. Only gpud's user and root may use the control API.
	WorkerGroup int
	Log         *slog.Logger

	SaveEvery   time.Duration // how old the state on the disk may get
	DetachGrace time.Duration // how long a worker may take to come back after gpud's restart
	Overrun     time.Duration // how long a kernel may run past its lease before its session is ended
	KillAfter   time.Duration // how long a worker that was told "lost" may take to end
	ReturnAfter time.Duration // how long a worker whose connection ended may take to end or to come back
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

// Limits against workers that are not ours.
const (
	maxLinks           = 4096 // connections of workers
	maxSessionsPerVGPU = 256
	maxEndedPerVGPU    = 64
	keepEnded          = 10 * time.Minute
	maxVGPUs           = 1024
	keepDeleted        = 24 * time.Hour
	registerWithin     = 10 * time.Second
	tick               = 200 * time.Millisecond
	// missedTicks in a row: gpud did not run. The client takes it for stopped after
	// more than that.
	missedTicks = 2
	// settleEvery is how often VRAM that is only held, by nobody who works, is
	// written down.
	settleEvery = 10 * time.Second
)
