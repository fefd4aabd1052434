package agent

import (
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// The store may have lost objects of which a pool still has the data: it was
// restored from an older backup, or recovered from a member that lagged behind.
// That cannot be distinguished from a deletion. So volumes and images that the
// store does not have, or has on a removed node, are kept for a week, and `basalt
// doctor leaks` lists them. What this process saw the store remove is certainly
// deleted and is not kept; the data of most objects is deleted before the object.
const (
	keepUnknown = 7 * 24 * time.Hour
	// unknownBreak is the longest time without an observation: after a longer one
	// the week starts over, because the object was not listed in that time.
	unknownBreak = time.Hour
	unknownWrite = 10 * time.Minute // how often unchanged observations are written
)

// sighting records since when something has been observed that the store does not
// have.
type sighting struct {
	Since time.Time `json:"since"` // without a break until Seen
	Seen  time.Time `json:"seen"`
}

// again returns the sighting after another observation.
func (s sighting) again(now time.Time) sighting {
	if gap := now.Sub(s.Seen); s.Since.IsZero() || gap > unknownBreak || gap < -unknownBreak || now.Before(s.Since) {
		s.Since = now
	}
	s.Seen = now
	return s
}

// retention stores the sightings in a file that outlives the process.
type retention struct {
	*core
	path string

	mu      sync.Mutex
	seen    map[string]sighting // by pool, kind and ID; nil until it is read
	written time.Time
}

func unknownKey(pool string, kind api.Kind, id string) string { return pool + "/" + key(kind, id) }

// observe records an observation, and returns the time of the first.
func (r *retention) observe(k string, now time.Time) (since time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.read(); err != nil {
		return now, err
	}
	was := r.seen[k]
	is := was.again(now)
	r.seen[k] = is
	if gap := now.Sub(r.written); was.Since.Equal(is.Since) && gap >= 0 && gap < unknownWrite {
		return is.Since, nil
	}
	return is.Since, r.write(now)
}

// since returns the time of the first observation, or zero if there was none.
func (r *retention) since(k string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read() != nil {
		return time.Time{}
	}
	return r.seen[k].Since
}

func (r *retention) read() error {
	if r.seen != nil {
		return nil
	}
	raw, err := os.ReadFile(r.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	seen := map[string]sighting{}
	if err == nil && json.Unmarshal(raw, &seen) != nil {
		seen = map[string]sighting{} // the week starts over
	}
	r.seen = seen
	return nil
}

// write writes the sightings, without those that were not observed lately.
func (r *retention) write(now time.Time) error {
	for k, s := range r.seen {
		if now.Sub(s.Seen) > unknownBreak {
			delete(r.seen, k)
		}
	}
	raw, err := json.Marshal(r.seen)
	if err != nil {
		return err
	}
	if err := r.o.writeFile(r.path, raw); err != nil {
		return err
	}
	r.written = now
	return nil
}

// stays records that the store does not have an object of which the pool has the
// data, and reports whether to keep that for now.
func (r *retention) stays(pool string, kind api.Kind, id string) bool {
	if r.cache.sawRemoved(key(kind, id)) {
		return false
	}
	now := r.o.Now().UTC()
	since, err := r.observe(unknownKey(pool, kind, id), now)
	if err != nil {
		r.log.Warn("record objects that are unknown to the cluster failed", "error", err)
		return true
	}
	if since.Equal(now) {
		r.log.Warn("found an object that is unknown to the cluster, keeping it for now", "pool", pool, "kind", kind, "id", id, "until", now.Add(r.o.KeepUnknown))
	}
	return now.Sub(since) < r.o.KeepUnknown
}

// noted reports whether stays was called for the object.
func (r *retention) noted(pool string, kind api.Kind, id string) bool {
	return !r.since(unknownKey(pool, kind, id)).IsZero()
}

// leftIn describes where data is that the store has no object for, and until when
// it is kept.
func (r *retention) leftIn(pool string, kind api.Kind, id string) string {
	if r.cache.sawRemoved(key(kind, id)) {
		return "in pool " + pool
	}
	since := r.since(unknownKey(pool, kind, id))
	if since.IsZero() {
		since = r.o.Now()
	}
	return "in pool " + pool + ", unknown to the cluster; kept until " + since.Add(r.o.KeepUnknown).UTC().Format(time.RFC3339) +
		": see \"Backup, restore\" in the operations guide"
}
