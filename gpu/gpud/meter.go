package gpud

import (
	"math"
	"math/bits"
	"time"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// byteTime is an exact sum of bytes × time: whole byte-seconds, and the remainder
// in byte-nanoseconds, which is less than one byte-second.
type byteTime struct {
	Seconds uint64 `json:"seconds"`
	Rest    uint64 `json:"rest"`
}

const nanosPerSecond = uint64(time.Second)

// add adds bytes held for d. A sum over 64 bits of byte-seconds (2 TiB for 97
// days) saturates.
func (b *byteTime) add(bytes uint64, d time.Duration) {
	if d <= 0 {
		return
	}
	// bytes × (less than 10⁹) + rest is less than 2⁶⁴ × 10⁹, so the division
	// cannot overflow.
	hi, lo := bits.Mul64(bytes, uint64(d)%nanosPerSecond)
	lo, carry := bits.Add64(lo, b.Rest, 0)
	whole, rest := bits.Div64(hi+carry, lo, nanosPerSecond)
	b.Rest = rest
	over, seconds := bits.Mul64(bytes, uint64(d)/nanosPerSecond)
	sum, c1 := bits.Add64(b.Seconds, seconds, 0)
	sum, c2 := bits.Add64(sum, whole, 0)
	if over|c1|c2 != 0 {
		sum = math.MaxUint64
	}
	b.Seconds = sum
}

// usage is what a vGPU has used in total.
type usage struct {
	Work worker.Totals `json:"work"`
	VRAM byteTime      `json:"vram"`
	// PremiumNanos and BasicNanos are the parts of Work's GPU time that were
	// executed while the vGPU had these tiers.
	PremiumNanos uint64 `json:"premiumNanos,omitempty"`
	BasicNanos   uint64 `json:"basicNanos,omitempty"`
	// Swapped is the part of VRAM that was in host memory; SwapOut and SwapIn are
	// the bytes that were copied there and back.
	Swapped byteTime `json:"swapped"`
	SwapOut uint64   `json:"swapOut,omitempty"`
	SwapIn  uint64   `json:"swapIn,omitempty"`
}

// work adds work that a worker has done while the vGPU had the tier.
func (u *usage) work(t worker.Totals, tier sched.Tier) {
	addTotals(&u.Work, t)
	switch tier {
	case sched.Premium:
		u.PremiumNanos += t.GPUNanos
	case sched.Basic:
		u.BasicNanos += t.GPUNanos
	}
}

func (u usage) wire() wire.Usage {
	return wire.Usage{
		GPUNanos: u.Work.GPUNanos, PremiumNanos: u.PremiumNanos, BasicNanos: u.BasicNanos, VRAMByteSeconds: u.VRAM.Seconds,
		SwappedByteSeconds: u.Swapped.Seconds, SwapOutBytes: u.SwapOut, SwapInBytes: u.SwapIn,
		BytesToDevice: u.Work.BytesToDevice, BytesFromDevice: u.Work.BytesFromDevice, Launches: u.Work.Launches,
	}
}

// No worker can exceed these rates, however fast its card is: larger numbers are
// false. The byte rate is that of an HBM card's memory, not of its bus.
const (
	maxBytesPerSecond    = 16 << 40
	maxLaunchesPerSecond = 10_000_000
)

// counter meters one session. Reported totals count only as far as they grow, and
// GPU time only as far as the session held leases.
type counter struct {
	// Base is what the worker reported when gpud first saw it; it is not counted.
	Base worker.Totals `json:"base"`
	// Counted is what has been added to the vGPU's usage so far.
	Counted worker.Totals `json:"counted"`
	// Leased is how long the session has held the card, in closed leases.
	Leased time.Duration `json:"leased"`
	// Since is when the session was first seen.
	Since sched.Time `json:"since"`
}

// leaseSlack is how much more device time than lease time may be reported: the
// worker reads its clock slightly before and after gpud does.
const leaseSlack = time.Millisecond

// count returns what the reported totals add to the usage; clamped reports
// whether they claimed more than is possible. holding is the length of the
// session's current lease. Claimed time that later becomes covered by leases is
// counted then.
func (c *counter) count(reported worker.Totals, holding time.Duration, at sched.Time) (added worker.Totals, clamped bool) {
	seconds := uint64(max(0, at-c.Since)/time.Second) + 1
	leased := uint64(c.Leased + holding)
	grow := func(reported, base uint64, counted *uint64, limit uint64) uint64 {
		if reported < base || reported-base < *counted {
			clamped = true // it decreased
			return 0
		}
		claim := reported - base
		if claim > limit {
			clamped = true
			claim = max(limit, *counted)
		}
		d := claim - *counted
		*counted = claim
		return d
	}
	added.GPUNanos = grow(reported.GPUNanos, c.Base.GPUNanos, &c.Counted.GPUNanos, leased+leased/1000+uint64(leaseSlack))
	added.Launches = grow(reported.Launches, c.Base.Launches, &c.Counted.Launches, seconds*maxLaunchesPerSecond)
	added.BytesToDevice = grow(reported.BytesToDevice, c.Base.BytesToDevice, &c.Counted.BytesToDevice, seconds*maxBytesPerSecond)
	added.BytesFromDevice = grow(reported.BytesFromDevice, c.Base.BytesFromDevice, &c.Counted.BytesFromDevice, seconds*maxBytesPerSecond)
	return added, clamped
}

func addTotals(a *worker.Totals, b worker.Totals) {
	a.GPUNanos += b.GPUNanos
	a.Launches += b.Launches
	a.BytesToDevice += b.BytesToDevice
	a.BytesFromDevice += b.BytesFromDevice
}

// gauge computes the utilization of the last second from a sum that grows.
type gauge struct {
	at  [gaugeSamples]sched.Time
	sum [gaugeSamples]uint64
	n   int
}

const (
	gaugeSamples = 32
	gaugeStep    = 50 * time.Millisecond
	gaugeSpan    = time.Second
)

// note records the sum at a time; it keeps at most one sample per gaugeStep.
func (g *gauge) note(at sched.Time, sum uint64) {
	if g.n > 0 && at-g.at[g.n-1] < gaugeStep {
		return
	}
	if g.n == gaugeSamples {
		copy(g.at[:], g.at[1:])
		copy(g.sum[:], g.sum[1:])
		g.n--
	}
	g.at[g.n], g.sum[g.n] = at, sum
	g.n++
}

// percent returns the growth of the sum over the last second, as device time per
// elapsed time.
func (g *gauge) percent(at sched.Time, sum uint64) uint32 {
	from := at - gaugeSpan
	var base uint64
	known := false
	for i := range g.n {
		if g.at[i] > from && known {
			break
		}
		base, known = g.sum[i], true
	}
	if !known {
		return 0
	}
	return uint32(min(100, (sum-base)*100/uint64(gaugeSpan)))
}
