package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Damaged means that a node's store cannot be used: a file of it is missing,
// unreadable, another node's, or older than what the node has acknowledged to others.
// Using it would lose acknowledged writes; the lost data can be restored from the other
// nodes, or from a backup.
type Damaged struct {
	File string // path
	Err  error  // what is wrong with it
}

// Error returns the path of the file and what is wrong with it.
func (d *Damaged) Error() string { return fmt.Sprintf("%s: %v", d.File, d.Err) }

// Unwrap returns what is wrong with the file.
func (d *Damaged) Unwrap() error { return d.Err }

// acknowledged is what a node has acknowledged to others and must not forget. It is stored
// outside of the store, so that a store that was lost, or replaced by an older copy, is
// not mistaken for the current one: a voter that forgets what it has acknowledged, or
// whom it voted for, loses what the cluster has acknowledged.
type acknowledged struct {
	Node  string `json:"node"`
	ID    string `json:"id,omitempty"`    // of the cluster; empty: not known yet
	Used  bool   `json:"used,omitempty"`  // an entry or a vote was written: the store must exist
	Voted uint64 `json:"voted,omitempty"` // term of the last vote
	Last  uint64 `json:"last,omitempty"`  // the log reaches at least this entry
}

// watermark is the file with it. It is written after the store, so it never claims more
// than is true: at once when an entry is first written or a vote is given, and about
// every second while the log grows. Writing it needs no space on the disk.
type watermark struct {
	path string
	file *stable

	mu  sync.Mutex // guards now
	now acknowledged
}

// watermarkInterval is how long the watermark may lag behind the log.
const watermarkInterval = time.Second

const watermarkKey = "promised"

// NewWatermark creates the file for a node that becomes a member: it has acknowledged
// nothing yet, and its store may be new. The previous content of the file is discarded.
// id is the cluster's; empty means that the cluster is new, or of a version that had no
// ID.
func NewWatermark(path, nodeID, id string) error {
	if err := removeLeftover(path); err != nil {
		return err
	}
	p, err := openWatermark(path)
	if err != nil {
		return err
	}
	return errors.Join(p.update(func(m *acknowledged) { m.Node, m.ID = nodeID, id }), p.close())
}

func openWatermark(path string) (*watermark, error) {
	file, err := openStable(path)
	if err != nil {
		return nil, &Damaged{path, err}
	}
	p := &watermark{path: path, file: file}
	raw, err := file.Get([]byte(watermarkKey))
	if err == nil {
		err = json.Unmarshal(raw, &p.now)
	} else if errors.Is(err, errNotFound) {
		err = nil
	}
	if err != nil {
		return nil, errors.Join(&Damaged{path, err}, file.Close())
	}
	return p, nil
}

// update changes what is recorded, durably. If it returns an error nothing has changed.
func (p *watermark) update(change func(*acknowledged)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.now
	change(&next)
	if next == p.now {
		return nil
	}
	raw, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if err := p.file.Set([]byte(watermarkKey), raw); err != nil {
		return fmt.Errorf("write %s: %w", p.path, err)
	}
	p.now = next
	return nil
}

func (p *watermark) current() acknowledged {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

func (p *watermark) close() error { return p.file.Close() }

// reaches records that the log has the entry.
func (p *watermark) reaches(last uint64) error {
	return p.update(func(m *acknowledged) { m.Used, m.Last = true, max(m.Last, last) })
}

// ends records that the log will end with the entry.
func (p *watermark) ends(last uint64) error {
	return p.update(func(m *acknowledged) { m.Last = min(m.Last, last) })
}

// voted records that the node has voted in the term.
func (p *watermark) voted(term uint64) error {
	return p.update(func(m *acknowledged) { m.Used, m.Voted = true, max(m.Voted, term) })
}

// watermarkPath returns the path of the watermark file.
func (o *Options) watermarkPath() string {
	if o.Watermark != "" {
		return o.Watermark
	}
	return filepath.Clean(o.Dir) + ".promise"
}

// storeFiles are the files that a store that was used must have. The tables can be
// rebuilt from the log and the snapshots.
var storeFiles = []string{"log.db", "vote"}

// loadWatermark opens the watermark and compares it with the existing files of the store,
// before any file is created.
func (o *Options) loadWatermark() (*watermark, error) {
	path := o.watermarkPath()
	var there, missing []string
	for _, name := range storeFiles {
		switch _, err := os.Stat(o.path(name)); {
		case err == nil:
			there = append(there, name)
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, name)
		default:
			return nil, err
		}
	}
	_, err := os.Stat(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil && len(there) == 0 && o.Transport != nil && !o.Bootstrap:
		return nil, &Damaged{o.Dir, errors.New("the store is missing, but this node is a member of a cluster")}
	case err != nil && slices.Contains(there, "log.db") && slices.Contains(missing, "vote"): // from a version without watermarks
		return nil, &Damaged{o.path("vote"), errors.New("it is missing, but log.db exists")}
	case err != nil:
		if err := NewWatermark(path, o.NodeID, ""); err != nil { // new, or from a version without watermarks
			return nil, err
		}
	}
	p, err := openWatermark(path)
	if err != nil {
		return nil, err
	}
	if p.now.Node != "" && p.now.Node != o.NodeID {
		err = &Damaged{path, fmt.Errorf("it belongs to node %s, this is node %s", p.now.Node, o.NodeID)}
	} else if p.now.Used && len(missing) > 0 {
		err = &Damaged{o.path(missing[0]), errors.New("it is missing, but this node has written to it")}
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// checkWatermark compares an open store with the watermark, and adopts a store for which
// nothing was recorded so far. A store that was used before may be an old copy whose
// watermark was removed, and may have forgotten votes: its next vote is in a new term.
func (o *Options) checkWatermark(p *watermark, last uint64, votes *stable, id string) error {
	voted, err := votes.GetUint64(keyLastVoteTerm)
	if err != nil && !errors.Is(err, errNotFound) {
		return err
	}
	m := p.current()
	owner, err := votes.Get(keyNode)
	forgotten := err == nil && !m.Used
	if errors.Is(err, errNotFound) && !m.Used {
		owner, err = []byte(o.NodeID), votes.Set(keyNode, []byte(o.NodeID))
	}
	switch {
	case errors.Is(err, errNotFound):
		return &Damaged{o.path("vote"), errors.New("it is empty, but this node has written to it")}
	case err != nil:
		return err
	case string(owner) != o.NodeID:
		return &Damaged{o.path("vote"), fmt.Errorf("the store belongs to node %s, this is node %s", owner, o.NodeID)}
	case id != "" && m.ID != "" && id != m.ID:
		return &Damaged{o.path("tables.db"), fmt.Errorf("it belongs to cluster %s, but this node is a member of %s", id, m.ID)}
	case voted < m.Voted:
		return &Damaged{o.path("vote"), fmt.Errorf("it is an old copy: its last vote is in term %d, but this node has voted in term %d", voted, m.Voted)}
	case last < m.Last:
		return &Damaged{o.path("log.db"), fmt.Errorf("it is an old copy: it ends at entry %d, but this node has acknowledged entry %d", last, m.Last)}
	case last == 0 && voted == 0:
		return nil
	}
	if forgotten {
		if err := skipTerms(votes); err != nil {
			return err
		}
	}
	return p.update(func(m *acknowledged) { m.Used, m.Voted, m.Last = true, voted, last })
}

// skipTerms moves the node past every term that it may have voted in and forgotten.
// Raft considers two entries with the same index and term to be the same entry: if a
// term were led a second time, a node that still has the entries of the first time
// would keep them, and their effects, in place of the new ones. The number of skipped
// terms is the time in milliseconds: that is more than there were elections, and of two
// copies of a store the one that is adopted later has the later terms, so that what was
// acknowledged last is kept.
func skipTerms(votes *stable) error {
	term, err := votes.GetUint64(keyCurrentTerm)
	if err != nil && !errors.Is(err, errNotFound) {
		return err
	}
	return votes.SetUint64(keyCurrentTerm, term+uint64(max(1, time.Now().UnixMilli()))) // a clock may be before 1970
}

// keepWatermark updates the watermark from the log, until Close.
func (s *Store) keepWatermark() {
	for {
		select {
		case <-s.closing:
			return
		case <-time.After(watermarkInterval):
		}
		if err := s.updateWatermark(); err != nil {
			s.options.Log.Warn("store: record acknowledged entries failed", "error", err)
		}
	}
}

func (s *Store) updateWatermark() error {
	s.log.ending.Lock() // or entries that are deleted meanwhile would be recorded
	defer s.log.ending.Unlock()
	last, err := s.log.LastIndex()
	if err != nil || last == 0 {
		return err
	}
	_, id, err := s.Settled()
	if err != nil {
		return err
	}
	return s.watermark.update(func(m *acknowledged) {
		m.Used, m.Last = true, max(m.Last, last)
		if m.ID == "" {
			m.ID = id
		}
	})
}

// wrote records that the log has entries, before they are acknowledged: at once for the
// first entry, while later ones are recorded by keepWatermark.
func (s *Store) wrote(last uint64) error {
	if s.watermark.current().Used {
		return nil
	}
	return s.watermark.reaches(last)
}

// Keys of the vote file: Raft's, and the node that owns the store.
var (
	keyLastVoteTerm = []byte("LastVoteTerm")
	keyCurrentTerm  = []byte("CurrentTerm")
	keyNode         = []byte("Node")
)

// votes is the vote file as Raft writes it, which also records every vote in the watermark.
type votes struct {
	*stable
	watermark *watermark
}

// SetUint64 stores a number durably.
func (v votes) SetUint64(k []byte, val uint64) error {
	if err := v.stable.SetUint64(k, val); err != nil || !bytes.Equal(k, keyLastVoteTerm) {
		return err
	}
	return v.watermark.voted(val)
}
