// Package meter converts observations of a resource to usage records: exactly what was
// used, once. It is pure; the node's agent keeps a State per resource on disk and
// commits the records.
//
// A State contains the time up to which the resource's usage has been recorded. Advance
// takes the next observation and returns the records of the time in between, and the
// next State. The agent writes the next State together with the records to its disk
// before it commits them, and commits them again after a crash: a record's ID is
// derived from resource, meter, interval and the observation's number, so that a second
// commit changes nothing. Thus nothing is lost or counted twice, whenever the agent is
// killed.
package meter

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Resource is a resource whose usage is metered.
type Resource struct {
	ID           string     `json:"id"`
	Name         string     `json:"name"`
	Organization string     `json:"organization"`
	Project      string     `json:"project"`
	Node         api.NodeID `json:"node"`
}

// Totals are the totals of a vGPU since it was created. They only grow; smaller ones
// than before mean that it was created again and counts from zero.
type Totals struct {
	GPUNanos        uint64 `json:"gpuNanos,omitempty"`
	PremiumNanos    uint64 `json:"premiumNanos,omitempty"` // part of GPUNanos in this tier
	BasicNanos      uint64 `json:"basicNanos,omitempty"`   // part of GPUNanos in this tier
	VRAMByteSeconds uint64 `json:"vramByteSeconds,omitempty"`
	CopyBytes       uint64 `json:"copyBytes,omitempty"`
	Launches        uint64 `json:"launches,omitempty"`
}

// Rates are units of a meter per second.
type Rates map[api.Meter]uint64

// State is the time up to which a resource's usage has been recorded.
type State struct {
	At    time.Time `json:"at"`            // zero: never observed
	Seq   uint64    `json:"seq"`           // of the last observation: 1, 2, …
	Run   string    `json:"run,omitempty"` // the run that was active at At; empty: none
	Rates Rates     `json:"rates,omitempty"`
	// Attributes of that run that prices may depend on.
	Attributes api.PriceSelector `json:"attributes,omitzero"`
	Totals     Totals            `json:"totals"`
	// Rest is usage of less than a whole unit: unit-nanoseconds below 10⁹, by meter.
	Rest map[api.Meter]uint64 `json:"rest,omitempty"`
}

// Observation is an observation of a resource.
type Observation struct {
	At time.Time
	// Run identifies the active run; empty: none. Two observations of the same run mean
	// that it was active all the time in between.
	Run   string
	Rates Rates
	// Attributes of the run that prices may depend on; the tier applies only to the
	// reserved share.
	Attributes api.PriceSelector
	// Since is when the run began, so that one observed late is charged from its start;
	// zero: from now.
	Since time.Time
	// Totals of its vGPU; nil: currently unknown.
	Totals *Totals
	// Watched means that the observer was running since the last observation, so that a
	// run that is over has only just ended. Otherwise its end is unknown, and the time
	// since the last observation is not charged.
	Watched bool
}

const second = uint64(time.Second)

// Advance records the usage between the state and the observation. Time never goes
// back: an observation from before the state changes only the totals.
func Advance(r Resource, s State, o Observation) (State, []api.Command) {
	next := State{At: o.At.UTC(), Seq: s.Seq + 1, Run: o.Run, Rates: o.Rates, Attributes: o.Attributes, Totals: s.Totals, Rest: map[api.Meter]uint64{}}
	for m, rest := range s.Rest {
		next.Rest[m] = rest
	}
	if o.At.Before(s.At) {
		next.At = s.At
	}
	var cmds []api.Command
	charge := func(from time.Time, rates Rates, of api.PriceSelector) {
		for start := from; start.Before(next.At); { // split at full hours, so that no record spans two months
			stop := start.Truncate(time.Hour).Add(time.Hour)
			if stop.After(next.At) {
				stop = next.At
			}
			for _, m := range slices.Sorted(maps.Keys(rates)) {
				var q uint64
				q, next.Rest[m] = accrue(rates[m], stop.Sub(start), next.Rest[m])
				cmds = record(cmds, r, of, next.Seq, m, start, stop, q)
			}
			start = stop
		}
	}
	switch {
	case s.Run != "" && (s.Run == o.Run || o.Watched):
		charge(s.At, s.Rates, s.Attributes)
	case o.Run != "" && !o.Since.IsZero():
		from := o.Since.UTC()
		if from.Before(s.At) {
			from = s.At
		}
		charge(from, o.Rates, o.Attributes)
	}
	if o.Totals != nil {
		of := s.Attributes
		if s.Run == "" {
			of = o.Attributes
		}
		for _, d := range delta(s.Totals, *o.Totals) {
			// Other usage is recorded when it has been counted, at the end of the
			// interval.
			cmds = record(cmds, r, of, next.Seq, d.meter, s.At, next.At, d.amount)
		}
		next.Totals = *o.Totals
	}
	return next, cmds
}

// Lifetime records what a resource with constant costs used in a part of its life. In
// consecutive parts, every unit is in exactly one.
func Lifetime(r Resource, of api.PriceSelector, m api.Meter, rate uint64, from, to time.Time) (cmds []api.Command) {
	for start := from.UTC(); start.Before(to); {
		stop := start.Truncate(time.Hour).Add(time.Hour)
		if stop.After(to) {
			stop = to.UTC()
		}
		// The usage since the hour began, less what was already recorded of it.
		hour := start.Truncate(time.Hour)
		until, _ := accrue(rate, stop.Sub(hour), 0)
		before, _ := accrue(rate, start.Sub(hour), 0)
		cmds = record(cmds, r, of, 0, m, start, stop, until-before)
		start = stop
	}
	return cmds
}

// accrue returns rate × d in whole unit-seconds, and the rest in unit-nanoseconds.
func accrue(rate uint64, d time.Duration, rest uint64) (whole, left uint64) {
	hi, lo := bits.Mul64(rate, uint64(d))
	lo, carry := bits.Add64(lo, rest, 0)
	hi += carry
	if hi >= second { // more than 2⁶⁴ unit-seconds in an hour: no such machine exists
		return 1<<63 - 1, 0
	}
	return bits.Div64(hi, lo, second)
}

type amount struct {
	meter  api.Meter
	amount uint64
}

func delta(was, is Totals) []amount {
	if is.GPUNanos < was.GPUNanos || is.PremiumNanos < was.PremiumNanos || is.BasicNanos < was.BasicNanos || is.VRAMByteSeconds < was.VRAMByteSeconds || is.CopyBytes < was.CopyBytes || is.Launches < was.Launches {
		was = Totals{}
	}
	premium, basic := is.PremiumNanos-was.PremiumNanos, is.BasicNanos-was.BasicNanos
	return []amount{
		{api.MeterGPU, is.GPUNanos - was.GPUNanos - premium - basic}, {api.MeterGPUPremium, premium}, {api.MeterGPUBasic, basic}, {api.MeterVRAM, is.VRAMByteSeconds - was.VRAMByteSeconds},
		{api.MeterCopy, is.CopyBytes - was.CopyBytes}, {api.MeterLaunch, is.Launches - was.Launches},
	}
}

func record(cmds []api.Command, r Resource, of api.PriceSelector, seq uint64, m api.Meter, start, end time.Time, quantity uint64) []api.Command {
	if quantity == 0 {
		return cmds
	}
	if start.IsZero() {
		start = end
	}
	return append(cmds, command(RecordID(r.ID, seq, m, start, end), r, of, m, start, end, quantity))
}

func command(id string, r Resource, of api.PriceSelector, m api.Meter, start, end time.Time, quantity uint64) api.Command {
	if m != api.MeterGPUShare {
		of.Tier = ""
	}
	spec := api.UsageRecordSpec{Meter: m, Resource: r.ID, ResourceName: r.Name, Node: r.Node,
		Start: start.UTC(), End: end.UTC(), Quantity: int64(min(quantity, 1<<63-1))}
	spec.SetAttributes(of)
	return api.Command{
		Op: api.OpRecord, Kind: api.KindUsageRecord, ID: id, Name: id, Organization: r.Organization, Project: r.Project,
		Data: api.Encode(spec),
	}
}

// RecordID returns the same ID whenever the same usage is recorded. The observation's
// number distinguishes records made while the clock did not advance or went back.
func RecordID(resource string, seq uint64, m api.Meter, start, end time.Time) string {
	h := sha256.Sum256([]byte(strings.Join([]string{resource, strconv.FormatUint(seq, 10), string(m),
		start.UTC().Format(time.RFC3339Nano), end.UTC().Format(time.RFC3339Nano)}, "\x00")))
	return "use-" + hex.EncodeToString(h[:12])
}
