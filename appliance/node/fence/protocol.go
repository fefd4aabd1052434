package fence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// The protocol on the socket is one JSON document per line, with a reply for each
// request, in order.
const (
	version = 1
	// maxLine is large enough for maxKeep IDs.
	maxLine = 512 << 10
	maxKeep = 4096
	maxID   = 64
	// maxLease limits how far ahead a deadline may be, so that a bug of basaltd
	// cannot keep instances running for long.
	maxLease = time.Minute
)

// Request has exactly one operation: exactly one of the pointers is set.
type Request struct {
	V      int       `json:"v"`
	Lease  *Lease    `json:"lease,omitempty"`
	Keep   *[]string `json:"keep,omitempty"` // IDs of all instances to keep
	Status *struct{} `json:"status,omitempty"`
	Disarm *struct{} `json:"standdown,omitempty"`
}

// Lease is the time until which instances may run.
type Lease struct {
	// Until is a time of CLOCK_BOOTTIME. One that has passed (0) ends the lease
	// now.
	Until time.Duration `json:"until_boottime_ns"`
	Node  string        `json:"node"`
	Epoch int64         `json:"epoch"`
}

// Reply is the reply to a request.
type Reply struct {
	V      int     `json:"v"`
	Error  string  `json:"error,omitempty"`
	Status *Status `json:"status,omitempty"`
}

// Status is the status of basalt-fence. Times are CLOCK_BOOTTIME in nanoseconds.
type Status struct {
	Mode  Mode          `json:"mode"`
	Now   time.Duration `json:"now"`
	Until time.Duration `json:"until,omitempty"` // deadline of the last lease; 0 if void
	Node  string        `json:"node,omitempty"`
	Epoch int64         `json:"epoch,omitempty"`
	Keep  []string      `json:"keep,omitempty"`
	// Clean is when the last sweep that found nothing left to kill began.
	Clean time.Duration `json:"clean,omitempty"`
	// Killing has the processes that SIGKILL was sent to and that have not ended.
	Killing []Killed `json:"killing,omitempty"`
	// Fenced has the killed processes that have ended, the latest 256 since the
	// start.
	Fenced   []Killed       `json:"fenced,omitempty"`
	Watchdog WatchdogStatus `json:"watchdog"`
	Problems []string       `json:"problems,omitempty"`
}

// Mode is a state of the state machine in the package comment.
type Mode string

// The modes.
const (
	Idle    Mode = "idle"
	Holding Mode = "holding"
	Fencing Mode = "fencing"
)

// Killed is a process that was killed because no lease covered it.
type Killed struct {
	Instance string        `json:"instance"`
	PID      int           `json:"pid"`
	At       time.Duration `json:"at"` // when it ended, or was killed if it has not ended
}

// WatchdogStatus describes the watchdog that resets the machine when basalt-fence
// fails.
type WatchdogStatus struct {
	Kind    string        `json:"kind"` // "none", "device", "socket", "fifo"
	Path    string        `json:"path,omitempty"`
	Armed   bool          `json:"armed"`
	Timeout time.Duration `json:"timeout,omitempty"`
	Fed     time.Duration `json:"fed,omitempty"` // last time, CLOCK_BOOTTIME
	Problem string        `json:"problem,omitempty"`
}

// DecodeRequest decodes and validates one line.
func DecodeRequest(line []byte) (r Request, err error) {
	if len(line) > maxLine {
		return r, fmt.Errorf("request of %d bytes is too long: want at most %d", len(line), maxLine)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Request{}, fmt.Errorf("decode request: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Request{}, errors.New("data after the request")
	}
	return r, r.check()
}

func (r Request) check() error {
	if r.V != version {
		return fmt.Errorf("request has version %d, want %d", r.V, version)
	}
	parts := 0
	if r.Lease != nil {
		parts++
		if len(r.Lease.Node) > maxID || r.Lease.Epoch < 0 || r.Lease.Until < 0 {
			return errors.New("lease is not valid")
		}
	}
	if r.Keep != nil {
		parts++
		if len(*r.Keep) > maxKeep {
			return fmt.Errorf("request to keep %d instances: want at most %d", len(*r.Keep), maxKeep)
		}
		for _, id := range *r.Keep {
			if !validID(id) {
				return fmt.Errorf("%.80q is not an instance ID", id)
			}
		}
	}
	if r.Status != nil {
		parts++
	}
	if r.Disarm != nil {
		parts++
	}
	if parts != 1 {
		return fmt.Errorf("request has %d operations, want 1", parts)
	}
	return nil
}

// validID reports whether id can be an instance ID in a domain's name.
func validID(id string) bool {
	return id != "" && len(id) <= maxID && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}
