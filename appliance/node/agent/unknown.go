package agent

import (
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// The store may have forgotten what a pool still has: it was restored from a
// backup of before, or recovered from a member that lagged behind. That looks
// like what was deleted. So volumes and images that the store does not know, or
// has on a node that is removed, stay for a week, and `basalt doctor leaks`
// lists them. What this process heard the store remove is certainly deleted and
// does not wait; most of that is gone before its object is.
const (
	keepUnknown = 7 * 24 * time.Hour
	// unknownBreak is how long nobody may have looked: after that the week
	// begins anew, since nobody could read of it either.
	unknownBreak = time.Hour
	unknownWrite = 10 * time.Minute // how often it is written that they are still there
)

// sighting of something that the store does not know.
type sighting struct {
	Since time.Time `json:"since"` // without a break until Seen
	Seen  time.Time `json:"seen"`
}

// again is the sighting after another look.
func (s sighting) again(now time.Time) sighting {
	if gap := now.Sub(s.Seen); s.Since.IsZero() || gap > unknownBreak || gap < -unknownBreak || now.Before(s.Since) {
		s.Since = now
	}
	s.Seen = now
	return s
}

// unknown remembers, beyond the agent's life, what was seen.
type unknown struct {
	*core
	path string

	mu      sync.Mutex
	seen    map[string]sighting // by pool, kind and id; nil: not read yet
	written time.Time
}

func unknownKey(pool string, kind api.Kind, id string) string { return pool + "/" + key(kind, id) }

// see notes that it is there, and says since when.
func (u *unknown) see(k string, now time.Time) (since time.Time, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.read(); err != nil {
		return now, err
	}
	was := u.seen[k]
	is := was.again(now)
	u.seen[k] = is
	if gap := now.Sub(u.written); was.Since.Equal(is.Since) && gap >= 0 && gap < unknownWrite {
		return is.Since, nil
	}
	return is.Since, u.write(now)
}

// since when it is there; zero: it was not seen yet.
func (u *unknown) since(k string) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.read() != nil {
		return time.Time{}
	}
	return u.seen[k].Since
}

func (u *unknown) read() error {
	if u.seen != nil {
		return nil
	}
	raw, err := os.ReadFile(u.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	seen := map[string]sighting{}
	if err == nil && json.Unmarshal(raw, &seen) != nil {
		seen = map[string]sighting{} // the week begins anew
	}
	u.seen = seen
	return nil
}

// write what somebody looks at still.
func (u *unknown) write(now time.Time) error {
	for k, s := range u.seen {
		if now.Sub(s.Seen) > unknownBreak {
			delete(u.seen, k)
		}
	}
	raw, err := json.Marshal(u.seen)
	if err != nil {
		return err
	}
	if err := u.o.writeFile(u.path, raw); err != nil {
		return err
	}
	u.written = now
	return nil
}

// stays notes that the store does not know what lies in the pool, and says
// whether it stays there for now.
func (u *unknown) stays(pool string, kind api.Kind, id string) bool {
	if u.cache.sawRemoved(key(kind, id)) {
		return false
	}
	now := u.o.Now().UTC()
	since, err := u.see(unknownKey(pool, kind, id), now)
	if err != nil {
		u.log.Warn("record objects that are unknown to the cluster failed", "error", err)
		return true
	}
	if since.Equal(now) {
		u.log.Warn("found an object that is unknown to the cluster, keeping it for now", "pool", pool, "kind", kind, "id", id, "until", now.Add(u.o.KeepUnknown))
	}
	return now.Sub(since) < u.o.KeepUnknown
}

// noted reports whether stays was asked about it.
func (u *unknown) noted(pool string, kind api.Kind, id string) bool {
	return !u.since(unknownKey(pool, kind, id)).IsZero()
}

// leftIn the pool is what is said of something that the store does not know.
func (u *unknown) leftIn(pool string, kind api.Kind, id string) string {
	if u.cache.sawRemoved(key(kind, id)) {
		return "in pool " + pool
	}
	since := u.since(unknownKey(pool, kind, id))
	if since.IsZero() {
		since = u.o.Now()
	}
	return "in pool " + pool + ", unknown to the cluster; kept until " + since.Add(u.o.KeepUnknown).UTC().Format(time.RFC3339) +
		": see \"Backup, restore\" in the operations guide"
}
