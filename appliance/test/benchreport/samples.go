package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// key is a benchmark's name without "Benchmark", and the unit of one of its values.
type key struct{ bench, unit string }

type samples map[key][]float64

// procs matches the number of processors that "go test" appends to a name.
var procs = regexp.MustCompile(`-\d+$`)

// parse reads benchmark lines and ignores all others.
func parse(r io.Reader) (samples, error) {
	all := samples{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || len(f)%2 != 0 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name := procs.ReplaceAllString(strings.TrimPrefix(f[0], "Benchmark"), "")
		for i := 2; i < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", lines.Text(), err)
			}
			k := key{name, f[i+1]}
			all[k] = append(all[k], v)
		}
	}
	return all, lines.Err()
}

// median returns the median of at least one value.
func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// spread returns the distance from the least to the greatest value, divided by the median.
func spread(v []float64) float64 {
	m := median(v)
	if m == 0 {
		return 0
	}
	return (slices.Max(v) - slices.Min(v)) / m
}
