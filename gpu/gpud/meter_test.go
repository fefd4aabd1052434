package gpud

import (
	"math"
	"math/big"
	"math/rand"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/worker"
)

// TestByteTimeIsExact compares the sum with arbitrary-precision arithmetic, to
// the byte-nanosecond.
func TestByteTimeIsExact(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	var got byteTime
	want := new(big.Int)
	for range 20000 {
		bytes, d := rnd.Uint64()>>rnd.Intn(64)>>20, time.Duration(rnd.Int63()>>rnd.Intn(63)>>24)
		got.add(bytes, d)
		want.Add(want, new(big.Int).Mul(new(big.Int).SetUint64(bytes), big.NewInt(int64(d))))
	}
	seconds, rest := new(big.Int).DivMod(want, big.NewInt(1e9), new(big.Int))
	if !seconds.IsUint64() || got.Seconds != seconds.Uint64() || got.Rest != rest.Uint64() {
		t.Fatalf("sum = %+v, want %s s and %s ns", got, seconds, rest)
	}
}

func TestByteTimeAtItsEnds(t *testing.T) {
	var b byteTime
	b.add(math.MaxUint64, -time.Second)
	if b != (byteTime{}) {
		t.Errorf("sum after a negative time = %+v, want 0", b)
	}
	b.add(math.MaxUint64, 999_999_999)
	b.add(math.MaxUint64, 1)
	if b != (byteTime{Seconds: math.MaxUint64}) {
		t.Errorf("sum after 2⁶⁴-1 bytes for a second = %+v, want 2⁶⁴-1 byte-seconds", b)
	}
	b.add(math.MaxUint64, math.MaxInt64)
	if b.Seconds != math.MaxUint64 {
		t.Errorf("sum = %+v, want it saturated", b)
	}
}

func TestCounter(t *testing.T) {
	const s = uint64(time.Second)
	c := counter{Base: worker.Totals{GPUNanos: 5 * s, Launches: 10}}
	for i, step := range []struct {
		reported worker.Totals
		leased   time.Duration // total
		holding  time.Duration
		want     worker.Totals
		clamped  bool
	}{
		{worker.Totals{GPUNanos: 5 * s, Launches: 10}, 0, 0, worker.Totals{}, false},
		{worker.Totals{GPUNanos: 6 * s, Launches: 11}, time.Second, 0, worker.Totals{GPUNanos: s, Launches: 1}, false},
		// Repeated or decreasing totals add nothing.
		{worker.Totals{GPUNanos: 6 * s, Launches: 11}, time.Second, 0, worker.Totals{}, false},
		{worker.Totals{GPUNanos: 1 * s, Launches: 1}, time.Second, 0, worker.Totals{}, true},
		// Two more seconds are claimed and one was held: one counts now, the other when it
		// has been held.
		{worker.Totals{GPUNanos: 8 * s, Launches: 11}, time.Second, time.Second, worker.Totals{GPUNanos: s + 2*s/1000 + uint64(leaseSlack)}, true},
		{worker.Totals{GPUNanos: 8 * s, Launches: 11}, 3 * time.Second, 0, worker.Totals{GPUNanos: s - 2*s/1000 - uint64(leaseSlack)}, false},
		// Impossible totals.
		{worker.Totals{GPUNanos: 8 * s, Launches: math.MaxUint64, BytesToDevice: math.MaxUint64}, 3 * time.Second, 0,
			worker.Totals{Launches: 5*maxLaunchesPerSecond - 1, BytesToDevice: 5 * maxBytesPerSecond}, true},
	} {
		c.Leased = step.leased
		added, clamped := c.count(step.reported, step.holding, 4*time.Second)
		if added != step.want || clamped != step.clamped {
			t.Errorf("step %d: added %+v, clamped %v; want %+v, %v", i, added, clamped, step.want, step.clamped)
		}
	}
}

func TestGauge(t *testing.T) {
	var g gauge
	if got := g.percent(time.Second, 0); got != 0 {
		t.Errorf("utilization without samples = %d %%, want 0", got)
	}
	// Busy half of the time for three seconds, then idle.
	var sum uint64
	at := time.Second
	for ; at < 4*time.Second; at += 10 * time.Millisecond {
		g.note(at, sum)
		sum += uint64(5 * time.Millisecond)
	}
	if got := g.percent(at, sum); got < 45 || got > 55 {
		t.Errorf("utilization when busy half of the time = %d %%, want 45 to 55", got)
	}
	if got := g.percent(at+2*time.Second, sum); got > 3 {
		t.Errorf("utilization after two idle seconds = %d %%, want at most 3", got)
	}
	if got := g.percent(at, math.MaxUint64); got != 100 {
		t.Errorf("utilization with the largest sum = %d %%, want 100", got)
	}
}

func TestParseSize(t *testing.T) {
	for in, want := range map[string]uint64{
		"0": 0, "17": 17, "17B": 17, "512MiB": 512 << 20, "8GiB": 8 << 30, "8 GiB": 8 << 30, "1TiB": 1 << 40, "16777215TiB": 16777215 << 40,
	} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "GiB", "8GB", "8G", "8gib", "-1", "+1", "1.5GiB", "0x10", "16777216TiB", "18446744073709551616", "8GiB8", "٣"} {
		if got, err := ParseSize(in); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", in, got)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"8GiB", "1", "KiB", "99999999999999999999TiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseSize(s)
		if err != nil {
			return
		}
		if again, err := ParseSize(FormatSize(n)); err != nil || again != n {
			t.Fatalf("ParseSize(%q) = %d, FormatSize = %q, which is parsed as %d, %v", s, n, FormatSize(n), again, err)
		}
	})
}

func TestParseSoftGPU(t *testing.T) {
	if g, err := ParseSoftGPU("vram=8GiB", 3); err != nil || g != (SoftGPU{Name: "soft3", VRAM: 8 << 30, SMs: 4}) {
		t.Errorf("ParseSoftGPU(vram) = %+v, %v, want soft3 with 8 GiB and 4 SMs", g, err)
	}
	if g, err := ParseSoftGPU("sms=2,name=x,vram=16MiB", 0); err != nil || g != (SoftGPU{Name: "x", VRAM: 16 << 20, SMs: 2}) {
		t.Errorf("ParseSoftGPU(sms, name, vram) = %+v, %v, want x with 16 MiB and 2 SMs", g, err)
	}
	if g, err := ParseSoftGPU("vram=16MiB,cc=9.0", 0); err != nil || g.Capability != 90 {
		t.Errorf("ParseSoftGPU(cc=9.0) = %+v, %v, want capability 90", g, err)
	}
	if g, err := ParseSoftGPU("vram=40GiB,model=A100", 0); err != nil || g != (SoftGPU{Name: "soft0", VRAM: 40 << 30, Model: "a100", SMs: 108}) {
		t.Errorf("ParseSoftGPU(model=A100) = %+v, %v, want model a100 with 108 SMs", g, err)
	}
	if g, err := ParseSoftGPU("sms=3,vram=1GiB,model=t4", 0); err != nil || g.SMs != 3 || g.card("soft0", uuid{}, softKind).Name != "Tesla T4" {
		t.Errorf("ParseSoftGPU(model=t4,sms=3) = %+v, %v, want 3 SMs and the name Tesla T4", g, err)
	}
	if g, err := ParseSoftGPU("vram=1GiB,check=memory,race,init,sms=2,engine=compiled", 0); err != nil || g.Engine != "compiled" || g.Check != "memory,race,init" || g.SMs != 2 {
		t.Errorf("ParseSoftGPU(check, engine) = %+v, %v, want checks memory,race,init, engine compiled and 2 SMs", g, err)
	}
	for _, in := range []string{"vram=1GiB,cc=9.0", "vram=1GiB,model=h100"} {
		if _, err := ParseNullGPU(in, 0); err == nil {
			t.Errorf("ParseNullGPU(%q) returned no error: a null GPU has no kernels", in)
		}
	}
	for _, in := range []string{"", "8GiB", "name=x", "vram=8GB", "vram=1KiB", "vram=5TiB", "vram=8GiB,sms=0", "vram=8GiB,sms=x", "vram=8GiB,color=red", "vram=8GiB,name=a/b", "vram=8GiB,name=", "vram=8GiB,cc=61", "vram=8GiB,cc=4.2", "vram=8GiB,cc=9.x", "vram=8GiB,cc=", "vram=8GiB,model=a1000", "vram=8GiB,sms=2000", "vram=8GiB,check=memory,8GiB", "vram=8GiB,check=all", "vram=8GiB,fault=fire", "vram=8GiB,engine=steam"} {
		if g, err := ParseSoftGPU(in, 0); err == nil {
			t.Errorf("ParseSoftGPU(%q) = %+v, want an error", in, g)
		}
	}
}
