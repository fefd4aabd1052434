package forecast

import (
	"context"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	day = 24 * time.Hour
	// window is the number of days that trends are fitted to.
	window = 28
	// between is the time between the hours of a day that are read: reading all of them
	// costs four times as much and hardly finds a higher level.
	between = 4 * time.Hour
	// rows is the number of usage rows of one page.
	rows = 1000
)

// group identifies the GPUs of a model in a pool.
type group struct{ pool, model string }

// level is what a group's vGPUs use.
type level struct {
	sharePercent float64 // of one GPU: 250 is two and a half GPUs
	vramBytes    float64
}

func (l level) max(m level) level {
	return level{max(l.sharePercent, m.sharePercent), max(l.vramBytes, m.vramBytes)}
}

// history holds the highest levels of past days. A group without usage on a known day
// has the level 0 on it.
type history struct {
	days map[int64]map[group]level // by days since 1970; no groups: nothing was recorded
}

// update reads the days before now that are not known yet, and drops those that are too
// old. Days that were read stay known if it fails. Usage that a node records later than
// the first request on the following day is not counted.
func (h *history) update(ctx context.Context, s Store, organizations []string, now time.Time) error {
	if h.days == nil {
		h.days = map[int64]map[group]level{}
	}
	today := now.UTC().Truncate(day)
	first := dayOf(today) - window
	for d := range h.days {
		if d < first {
			delete(h.days, d)
		}
	}
	for at := today.Add(-day); dayOf(at) >= first; at = at.Add(-day) {
		if _, known := h.days[dayOf(at)]; known {
			continue
		}
		levels, err := levelsOf(ctx, s, organizations, at)
		if err != nil {
			return err
		}
		h.days[dayOf(at)] = levels
	}
	return nil
}

func dayOf(t time.Time) int64 { return t.Unix() / int64(day/time.Second) }

// points returns a point for each known day from a group's first usage on.
func (h *history) points(g group, of func(level) float64) (all []Point) {
	first := int64(-1)
	for d, levels := range h.days {
		if _, used := levels[g]; used && (first < 0 || d < first) {
			first = d
		}
	}
	for d, levels := range h.days {
		if first >= 0 && d >= first && len(levels) > 0 {
			all = append(all, Point{d, of(levels[g])})
		}
	}
	return all
}

// levelsOf returns the highest levels of a day.
func levelsOf(ctx context.Context, s Store, organizations []string, begin time.Time) (map[group]level, error) {
	hours := make([]map[group]level, day/between)
	for i := range hours {
		hours[i] = map[group]level{}
	}
	for _, org := range organizations {
		page, err := s.Use(ctx, api.UseQuery{Organization: org, From: begin, To: begin.Add(day), Limit: 1})
		if err != nil {
			return nil, fmt.Errorf("read the use of organization %s: %w", org, err)
		}
		if len(page.Items) == 0 { // most organizations of a large cluster
			continue
		}
		for i, sum := range hours {
			if err := addHour(ctx, s, org, begin.Add(time.Duration(i)*between), sum); err != nil {
				return nil, err
			}
		}
	}
	out := map[group]level{}
	for _, sum := range hours {
		for g, l := range sum {
			out[g] = out[g].max(l)
		}
	}
	return out, nil
}

// addHour adds the levels of an organization's vGPUs in an hour.
func addHour(ctx context.Context, s Store, org string, hour time.Time, sum map[group]level) error {
	for _, meter := range []api.Meter{api.MeterGPUShare, api.MeterVRAM} {
		q := api.UseQuery{Organization: org, From: hour, To: hour.Add(time.Hour), After: api.Use{Hour: hour, Meter: meter}, Limit: rows}
		for more := true; more; {
			page, err := s.Use(ctx, q)
			if err != nil {
				return fmt.Errorf("read the use of organization %s: %w", q.Organization, err)
			}
			for _, u := range page.Items {
				if u.Meter != meter {
					page.More = false
					break
				}
				sum[group{u.Attributes.Pool, u.Attributes.Model}] = sum[group{u.Attributes.Pool, u.Attributes.Model}].plus(u)
			}
			if more = page.More; more {
				q.After = page.Items[len(page.Items)-1]
			}
		}
	}
	return nil
}

// plus adds a resource's average use in an hour.
func (l level) plus(u api.Use) level {
	average := float64(u.Quantity) / time.Hour.Seconds()
	switch u.Meter {
	case api.MeterGPUShare:
		l.sharePercent += average
	case api.MeterVRAM:
		l.vramBytes += average
	}
	return l
}
