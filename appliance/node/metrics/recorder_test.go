package metrics

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// testRecorder is a recorder with a clock that the test advances.
type testRecorder struct {
	*Recorder
	now time.Time
}

// newTestRecorder returns a recorder whose clock has a monotonic reading, as time.Now has.
func newTestRecorder() *testRecorder {
	now := time.Now()
	d := &testRecorder{NewRecorder(now), now}
	d.now = d.begun.Add(d.Next(d.begun)) // the first reading
	return d
}

func (d *testRecorder) read(t *testing.T, id string, span Span) Chart {
	t.Helper()
	c, err := d.Read(id, span, d.now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// valuesText formats values as text; "-" is a gap.
func valuesText(c Chart, name string) string {
	for _, s := range c.Series {
		if s.Name == name {
			var b strings.Builder
			for _, v := range s.Values {
				switch {
				case math.IsNaN(v):
					b.WriteString("-")
				case v == math.Trunc(v) && v >= 0 && v < 10:
					b.WriteByte(byte('0' + int(v)))
				default:
					b.WriteString("?")
				}
			}
			return b.String()
		}
	}
	return ""
}

// tail returns the end of a text, for tests where earlier values do not matter.
func tail(s string, n int) string { return s[max(0, len(s)-n):] }

func TestCountersBecomeRates(t *testing.T) {
	d := newTestRecorder()
	totals := []struct {
		total uint64
		after time.Duration
	}{
		{1000, Fine}, // the first has no rate
		{1010, Fine}, // 2 a second
		{1030, Fine}, // 4
		{1030, Fine}, // 0
		{5, Fine},    // restarted: no rate
		{20, Fine},   // 3
		{400, 10 * Fine},
		{410, Fine}, // no reading for 50 s: no rate
		{415, Fine}, // 1
	}
	for _, x := range totals {
		d.Record("ins-1", d.now, Counter("net-rx", x.total, 1), Level("memory", 7))
		d.now = d.now.Add(x.after)
	}
	d.now = d.now.Add(-Fine)
	c := d.read(t, "ins-1", Span{})
	if got := tail(valuesText(c, "net-rx"), 18); got != "-240-3?----------1" {
		t.Errorf("rates = %q, want -240-3?----------1 at the end", got)
	}
	if got := tail(valuesText(c, "memory"), 18); got != "7777777---------77" {
		t.Errorf("levels = %q, want 7777777---------77 at the end", got)
	}
}

func TestAGapStaysAGap(t *testing.T) {
	d := newTestRecorder()
	for i := range 40 {
		if i < 10 || i >= 30 {
			d.Record("n", d.now, Level("x", 5))
		}
		d.now = d.now.Add(Fine)
	}
	d.now = d.now.Add(-Fine)
	if got, want := tail(valuesText(d.read(t, "n", Span{}), "x"), 40), strings.Repeat("5", 10)+strings.Repeat("-", 20)+strings.Repeat("5", 10); got != want {
		t.Errorf("values = %q, want %q", got, want)
	}
}

// TestBothResolutions checks that the rings drop what is older than their range,
// and never grow.
func TestBothResolutions(t *testing.T) {
	d := newTestRecorder()
	for range 26 * 720 { // 26 hours
		d.Record("n", d.now, Level("x", 4))
		d.now = d.now.Add(Fine)
	}
	d.now = d.now.Add(-Fine)
	for _, c := range []struct {
		span         Span
		count        int
		step         time.Duration
		oldest       string
		reachesAtall time.Duration
	}{
		{Span{}, 180, Fine, "4", 15 * time.Minute},
		{Span{Step: 15 * time.Second}, 60, 15 * time.Second, "4", 15 * time.Minute},
		{Span{From: d.now.Add(-time.Hour)}, 60, Coarse, "4", time.Hour},
		{Span{From: d.now.Add(-100 * time.Hour)}, 1440, Coarse, "4", 24 * time.Hour},
		{Span{From: d.now.Add(-24 * time.Hour), Step: 5 * time.Minute}, 288, 5 * time.Minute, "4", 24 * time.Hour},
		{Span{From: d.now.Add(-24 * time.Hour), Step: Fine}, 180, Fine, "4", 15 * time.Minute},
		{Span{From: d.now.Add(time.Hour)}, 0, Fine, "", 0},
	} {
		got := d.read(t, "n", c.span)
		text := valuesText(got, "x")
		if len(text) != c.count || got.Step != c.step || strings.Trim(text, "4") != "" || got.From.Location() != time.UTC {
			t.Errorf("Read(%+v) = %d values every %v: %.20q…; want %d values of 4 every %v, from a UTC time", c.span, len(text), got.Step, text, c.count, c.step)
		}
		if back := d.now.Sub(got.From); c.count > 0 && (back > c.reachesAtall || back < c.reachesAtall-c.step) {
			t.Errorf("Read(%+v) reaches back %v, want %v", c.span, back, c.reachesAtall)
		}
	}
}

func TestMinutesAreMeans(t *testing.T) {
	d := newTestRecorder()
	for i := range 36 { // three minutes: 0, 2, 0, 2 …; 4; and 1 half of the time
		switch {
		case i < 12:
			d.Record("n", d.now, Level("x", float64(i%2*2)))
		case i < 24:
			d.Record("n", d.now, Level("x", 4))
		case i%2 == 0:
			d.Record("n", d.now, Level("x", 1))
		}
		d.now = d.now.Add(Fine)
	}
	d.now = d.now.Add(-Fine)
	if got := valuesText(d.read(t, "n", Span{From: d.now.Add(-3 * time.Minute), Step: time.Minute}), "x"); got != "141" {
		t.Errorf("means of minutes = %q, want 141", got)
	}
	if got := d.Last("n", "x", time.Minute, d.now); got != 1 {
		t.Errorf("mean of the last minute = %v, want 1", got)
	}
	if got := d.Last("n", "y", time.Minute, d.now); !math.IsNaN(got) {
		t.Errorf("mean of an unknown series = %v, want NaN", got)
	}
}

// TestStepsStayWhereTheyAre checks that repeated requests get the same steps at the
// same times, and the newest at the end.
func TestStepsStayWhereTheyAre(t *testing.T) {
	d := newTestRecorder()
	if got := d.begun.Round(0).Truncate(time.Minute); !got.Equal(d.begun.Round(0)) {
		t.Errorf("the recorder begins at %v, want a full minute", d.begun)
	}
	span := Span{From: d.now.Add(-time.Hour), Step: 5 * time.Minute}
	a := d.read(t, "n", span)
	d.now = d.now.Add(5 * time.Minute)
	span.From = span.From.Add(5 * time.Minute)
	if b := d.read(t, "n", span); b.From.Sub(a.From) != 5*time.Minute {
		t.Errorf("first step at %v, and five minutes later at %v; want it five minutes later", a.From, b.From)
	}
}

// TestNext checks that readings are due in the middle of slots, also after a late
// one.
func TestNext(t *testing.T) {
	b := NewRecorder(time.Now())
	for _, late := range []time.Duration{0, time.Millisecond, 2 * time.Second, 2499 * time.Millisecond, 2500 * time.Millisecond, 4 * time.Second} {
		now := b.begun.Add(7*Fine + late)
		due := b.since(now) + b.Next(now)
		if due%Fine != Fine/2 || b.Next(now) <= 0 || b.Next(now) > Fine {
			t.Errorf("Next %v into a slot = %v, want the middle of the next slot", late, b.Next(now))
		}
	}
}

func TestSpansThatAreRefused(t *testing.T) {
	d := newTestRecorder()
	for _, step := range []time.Duration{-Fine, time.Second, 7 * time.Second, 90 * time.Second, 25 * time.Hour} {
		if _, err := d.Read("n", Span{Step: step}, d.now); !errors.Is(err, ErrStep) {
			t.Errorf("Read with a step of %v: error %v, want %v", step, err, ErrStep)
		}
	}
}

// TestLimits checks that a recorder does not grow beyond its limits.
func TestLimits(t *testing.T) {
	d := newTestRecorder()
	for i := range maxResources + 5 {
		d.Record(string(rune('a'+i%26))+string(rune(i)), d.now, Level("x", 1))
	}
	for i := range maxSeries + 5 {
		d.Record("a\x00", d.now, Level(string(rune('a'+i)), 1), Level("bad", math.NaN()))
	}
	if n := len(d.resources); n != maxResources {
		t.Errorf("recorder has %d resources, want %d", n, maxResources)
	}
	if n := len(d.resources["a\x00"].series); n != maxSeries {
		t.Errorf("resource has %d series, want %d", n, maxSeries)
	}
	d.Keep(func(id string) bool { return id == "a\x00" })
	if n := len(d.resources); n != 1 {
		t.Errorf("recorder has %d resources after Keep, want 1", n)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(int64(0), int64(0), uint16(10))
	f.Add(int64(24*time.Hour), int64(5*time.Minute), uint16(2000))
	f.Add(int64(-time.Hour), int64(time.Hour), uint16(0))
	f.Fuzz(func(t *testing.T, back, step int64, ran uint16) {
		d := newTestRecorder()
		for i := range ran {
			d.Record("n", d.now, Counter("x", uint64(i)*5, 1))
			d.now = d.now.Add(Fine)
		}
		c, err := d.Read("n", Span{From: d.now.Add(-time.Duration(back)), Step: time.Duration(step)}, d.now)
		if err != nil {
			return
		}
		for _, s := range c.Series {
			if len(s.Values) > MaxValues || c.Step <= 0 {
				t.Fatalf("series has %d values every %v, want at most %d and a positive step", len(s.Values), c.Step, MaxValues)
			}
			for _, v := range s.Values {
				if !math.IsNaN(v) && math.Abs(v-1) > 1e-6 {
					t.Fatalf("rate = %v, want 1", v)
				}
			}
		}
	})
}
