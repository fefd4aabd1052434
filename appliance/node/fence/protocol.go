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

// The protocol on the socket: one JSON document a line, a reply for each
// request, in order.
const (
	version = 1
	// maxLine holds maxKeep ids.
	maxLine = 512 << 10
	maxKeep = 4096
	maxID   = 64
	// maxLease bounds how far ahead a deadline may be: no mistake of basaltd
	// keeps instances alive for long.
	maxLease = time.Minute
)

// Request has exactly one of its parts.
type Request struct {
	V         int       `json:"v"`
	Lease     *Lease    `json:"lease,omitempty"`
	Keep      *[]string `json:"keep,omitempty"` // all ids of instances to keep
	Status    *struct{} `json:"status,omitempty"`
	StandDown *struct{} `json:"standdown,omitempty"`
}

// Lease is until when instances may run.
type Lease struct {
	// Until is a reading of CLOCK_BOOTTIME. One that has passed (0) ends the
	// lease now.
	Until time.Duration `json:"until_boottime_ns"`
	Node  string        `json:"node"`
	Epoch int64         `json:"epoch"`
}

// Reply to a request.
type Reply struct {
	V      int     `json:"v"`
	Error  string  `json:"error,omitempty"`
	Status *Status `json:"status,omitempty"`
}

// Status of basalt-fence. Times are CLOCK_BOOTTIME in nanoseconds.
type Status struct {
	Mode  Mode          `json:"mode"`
	Now   time.Duration `json:"now"`
	Until time.Duration `json:"until,omitempty"` // of the last lease; 0: void
	Node  string        `json:"node,omitempty"`
	Epoch int64         `json:"epoch,omitempty"`
	Keep  []string      `json:"keep,omitempty"`
	// Clean is when the last look found nothing left to kill.
	Clean time.Duration `json:"clean,omitempty"`
	// Killing are those that have got SIGKILL and are not gone.
	Killing []Killed `json:"killing,omitempty"`
	// Fenced are those that are gone, the latest 256 since the start.
	Fenced   []Killed       `json:"fenced,omitempty"`
	Watchdog WatchdogStatus `json:"watchdog"`
	Problems []string       `json:"problems,omitempty"`
}

// Mode is a state of the package comment's machine.
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
	At       time.Duration `json:"at"` // gone, or killed when it is not gone
}

// WatchdogStatus describes what resets the machine when basalt-fence cannot.
type WatchdogStatus struct {
	Kind    string        `json:"kind"` // "none", "device", "socket", "fifo"
	Path    string        `json:"path,omitempty"`
	Armed   bool          `json:"armed"`
	Timeout time.Duration `json:"timeout,omitempty"`
	Fed     time.Duration `json:"fed,omitempty"` // last, CLOCK_BOOTTIME
	Problem string        `json:"problem,omitempty"`
}

// DecodeRequest reads one line.
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
	if r.StandDown != nil {
		parts++
	}
	if parts != 1 {
		return fmt.Errorf("request has %d operations, want 1", parts)
	}
	return nil
}

// validID of an instance, as it stands in a domain's name.
func validID(id string) bool {
	return id != "" && len(id) <= maxID && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}
