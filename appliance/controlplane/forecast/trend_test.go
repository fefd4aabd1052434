package forecast

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// line returns points of a line on consecutive days.
func line(days int, from, perDay float64) (all []Point) {
	for i := range days {
		all = append(all, Point{Day: 20_000 + int64(i), Level: from + perDay*float64(i)})
	}
	return all
}

func TestTrendOf(t *testing.T) {
	outliers := line(28, 10, 2)
	outliers[3].Level, outliers[11].Level, outliers[20].Level = 4000, 0, 9000
	gaps := slices.DeleteFunc(line(28, 10, 2), func(p Point) bool { return p.Day%3 == 0 })
	twice := append(line(28, 10, 2), line(28, 5, 2)...) // the lower points of the same days
	unordered := line(28, 10, 2)
	slices.Reverse(unordered)
	broken := append(line(28, 10, 2), Point{20_028, math.NaN()}, Point{20_029, math.Inf(1)})
	for _, c := range []struct {
		name   string
		points []Point
		ok     bool
		want   Trend
	}{
		{"no points", nil, false, Trend{}},
		{"one point", line(1, 10, 2), false, Trend{}},
		{"six days", line(6, 10, 2), false, Trend{}},
		{"six days, some twice", append(line(6, 10, 2), line(6, 10, 2)...), false, Trend{}},
		{"seven days", line(7, 10, 2), true, Trend{2, 2, 2, 22}},
		{"a line", line(28, 10, 2), true, Trend{2, 2, 2, 64}},
		{"constant", line(28, 10, 0), true, Trend{0, 0, 0, 10}},
		{"falling", line(28, 100, -2), true, Trend{-2, -2, -2, 46}},
		{"gaps", gaps, true, Trend{2, 2, 2, gaps[len(gaps)-1].Level}},
		{"several points of a day", twice, true, Trend{2, 2, 2, 64}},
		{"not in order", unordered, true, Trend{2, 2, 2, 64}},
		{"levels that are not finite", broken, true, Trend{2, 2, 2, 64}},
		{"outliers", outliers, true, Trend{2, 2, 2, 64}},
	} {
		got, ok := TrendOf(c.points)
		if ok != c.ok || got != c.want {
			t.Errorf("%s: trend = %+v, %v, want %+v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

// TestTrendInterval checks that the interval contains the true slope of noisy lines about
// as often as it should, and that noise without growth rarely counts as growth.
func TestTrendInterval(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 76))
	const rounds = 2000
	within, growth := 0, 0
	for range rounds {
		noisy, flat := line(28, 50, 1.5), line(28, 50, 0)
		for i := range noisy {
			noisy[i].Level += 10 * r.NormFloat64()
			flat[i].Level += 10 * r.NormFloat64()
		}
		if got, ok := TrendOf(noisy); ok && got.Low <= 1.5 && 1.5 <= got.High {
			within++
		}
		if got, ok := TrendOf(flat); ok && got.Low > 0 {
			growth++
		}
	}
	if part := float64(within) / rounds; part < 0.75 || part > 0.88 {
		t.Errorf("the 80 %% interval contains the slope in %.0f %% of the rounds, want 75 to 88 %%", 100*part)
	}
	if part := float64(growth) / rounds; part > 0.13 {
		t.Errorf("noise counts as growth in %.0f %% of the rounds, want about 10 %%", 100*part)
	}
}

func TestTrendUntil(t *testing.T) {
	for _, c := range []struct {
		name          string
		trend         Trend
		now, capacity float64
		want          Days
		ok            bool
	}{
		{"growing", Trend{2, 1, 4, 60}, 50, 100, Days{20, 10, 40}, true},
		{"more is allocated now", Trend{2, 1, 4, 60}, 80, 100, Days{10, 5, 20}, true},
		{"a part of a day", Trend{3, 3, 3, 0}, 0, 100, Days{34, 34, 34}, true},
		{"constant", Trend{0, 0, 0, 60}, 50, 100, Days{}, false},
		{"falling", Trend{-2, -3, -1, 60}, 50, 100, Days{}, false},
		{"not significant", Trend{2, -1, 4, 60}, 50, 100, Days{}, false},
		{"the line is above the capacity", Trend{2, 1, 4, 160}, 50, 100, Days{}, true},
		{"over a year", Trend{0.1, 0.05, 0.2, 0}, 0, 100, Days{}, false},
		{"the end of the interval is over a year", Trend{1, 0.001, 2, 0}, 0, 100, Days{100, 50, 100_000}, true},
		{"the slope is tiny", Trend{1, math.SmallestNonzeroFloat64, 2, 0}, 0, 100, Days{100, 50, math.MaxInt32}, true},
		{"no capacity", Trend{1, 1, 1, 0}, 0, 0, Days{}, true},
	} {
		got, ok := c.trend.Until(c.now, c.capacity)
		if got != c.want || ok != c.ok {
			t.Errorf("%s: until full = %+v, %v, want %+v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}
