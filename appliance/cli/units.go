package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

var units = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// parseSize parses 1GiB, 512MiB, 1.5 GiB or a number of bytes, and returns bytes.
func parseSize(s string) (int64, error) {
	number, unit := strings.TrimSpace(s), 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(strings.ToLower(number), strings.ToLower(u.name)); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	f, err := strconv.ParseFloat(number, 64)
	bytes := f * unit
	if err != nil || f < 0 || bytes != math.Trunc(bytes) || bytes > 1<<60 {
		return 0, usageError{fmt.Errorf("%q is not a valid size", s), "use e.g. 1GiB, 512MiB or a number of bytes"}
	}
	return int64(bytes), nil
}

// sizeFlag is a flag whose value is a size.
type sizeFlag struct{ bytes *int64 }

// String implements pflag.Value.
func (f sizeFlag) String() string {
	if f.bytes == nil || *f.bytes == 0 {
		return ""
	}
	return formatSize(*f.bytes)
}

// Set implements pflag.Value.
func (f sizeFlag) Set(s string) (err error) {
	*f.bytes, err = parseSize(s)
	return err
}

// Type implements pflag.Value.
func (sizeFlag) Type() string { return "size" }

// formatSize formats a size with at most one decimal.
func formatSize(n int64) string {
	if n == 0 {
		return "-"
	}
	f, unit := float64(n), "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if math.Abs(f) < 1024 {
			break
		}
		f, unit = f/1024, u
	}
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") + " " + unit
}

// formatAge formats the time since t in its largest unit.
func formatAge(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return formatDuration(now.Sub(t))
}

// formatDuration formats a duration in its largest unit; a negative one is 0.
func formatDuration(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// formatTime formats a time in UTC with its zone.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// formatSpan formats a period; its end has no date if that is the same.
func formatSpan(from, to time.Time) (string, string) {
	const second = "2006-01-02 15:04:05"
	from, to = from.UTC(), to.UTC()
	if from.Format(time.DateOnly) == to.Format(time.DateOnly) {
		return from.Format(second), to.Format(time.TimeOnly)
	}
	return from.Format(second), to.Format(second)
}

// formatMicros formats an amount of money with all its decimals, at least two.
func formatMicros(n int64) string {
	sign, u := "", uint64(n)
	if n < 0 {
		sign, u = "-", -u
	}
	fraction := strings.TrimRight(fmt.Sprintf("%06d", u%1e6), "0")
	for len(fraction) < 2 {
		fraction += "0"
	}
	return fmt.Sprintf("%s%d.%s", sign, u/1e6, fraction)
}
