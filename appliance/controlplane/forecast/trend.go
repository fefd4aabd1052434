package forecast

import (
	"cmp"
	"math"
	"slices"
)

const (
	// leastDays is the number of days that a trend needs.
	leastDays = 7
	// mostDays limits forecasts: no trend of a month predicts a later time.
	mostDays = 365
	// z80 is the quantile of the normal distribution for an 80 % interval.
	z80 = 1.2815515655446004
)

// Point is the highest level on a day.
type Point struct {
	Day   int64 // days since 1970
	Level float64
}

// Trend is a straight line through points.
type Trend struct {
	PerDay    float64 // slope
	Low, High float64 // 80 % confidence interval of the slope
	Level     float64 // on the last day
}

// TrendOf fits a line with the method of Theil and Sen: its slope is the median of the
// slopes between all pairs of points, and its level the median of what remains, so that
// a few outliers do not move it. The interval of the slope is Sen's, from the variance
// of Kendall's S (P. K. Sen, J. Am. Stat. Assoc. 63, 1968, p. 1379); it assumes that the
// days are independent. Of several points of a day the highest counts; points without a
// finite level do not. It returns false if fewer than 7 days remain.
func TrendOf(points []Point) (Trend, bool) {
	all := clean(points)
	n := len(all)
	if n < leastDays {
		return Trend{}, false
	}
	slopes := make([]float64, 0, n*(n-1)/2)
	for i, a := range all {
		for _, b := range all[i+1:] {
			slopes = append(slopes, (b.Level-a.Level)/float64(b.Day-a.Day))
		}
	}
	slices.Sort(slopes)
	t := Trend{PerDay: median(slopes)}
	last := all[n-1].Day
	rest := make([]float64, n)
	for i, p := range all {
		rest[i] = p.Level + t.PerDay*float64(last-p.Day)
	}
	slices.Sort(rest)
	t.Level = median(rest)
	// The interval's ends have this distance from the middle of the sorted slopes.
	half := z80 * math.Sqrt(float64(n*(n-1)*(2*n+5))/18) / 2
	middle := float64(len(slopes)-1) / 2
	t.Low = slopes[max(0, int(math.Floor(middle-half)))]
	t.High = slopes[min(len(slopes)-1, int(math.Ceil(middle+half)))]
	return t, true
}

// clean returns one point for each day, in order.
func clean(points []Point) []Point {
	all := slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return math.IsNaN(p.Level) || math.IsInf(p.Level, 0) })
	slices.SortFunc(all, func(a, b Point) int { return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(b.Level, a.Level)) })
	return slices.CompactFunc(all, func(a, b Point) bool { return a.Day == b.Day })
}

func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Days is the expected time until something is full, and its 80 % interval.
type Days struct{ Expected, Earliest, Latest int64 }

// Until returns when a growing level reaches a capacity. now is the level at present: the
// line starts at the higher of the two. It returns false if the level does not grow
// significantly, or is not expected to reach the capacity within a year.
func (t Trend) Until(now, capacity float64) (Days, bool) {
	if t.Low <= 0 {
		return Days{}, false
	}
	left := max(0, capacity-max(now, t.Level))
	days := func(perDay float64) float64 { return math.Ceil(left / perDay) }
	if days(t.PerDay) > mostDays {
		return Days{}, false
	}
	return Days{int64(days(t.PerDay)), int64(days(t.High)), int64(min(days(t.Low), math.MaxInt32))}, true
}
