package store

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/basalt-gpu/basalt/appliance/broadcast"
)

// Options configure a store.
type Options struct {
	Dir    string // created if missing; used by one process at a time
	NodeID string // never changes once the directory is used
	// Watermark is the file, outside of Dir, with what this node has acknowledged to others
	// (NewWatermark); if empty, Dir with ".promise" appended.
	Watermark string

	// Transport connects the nodes. If nil, the node is alone, and forms a cluster of
	// one when the directory is new.
	Transport raft.Transport
	// Bootstrap makes the node the first of a new cluster; it needs a Transport. It has
	// no effect once the node has written anything.
	Bootstrap bool
	// Broken is called once, in a goroutine of its own, when the store cannot continue
	// and must be closed: a file of it is damaged or accepts no writes (Damaged, also
	// the error of the next Open), the cluster has dropped entries that the tables here
	// contain (the next Open rebuilds them), or it is beyond this program (TooOld). If
	// nil, the process panics.
	Broken func(why error)
	// Remote connects to the stores of other nodes. If nil, this one answers only while
	// it leads.
	Remote Remote
	// Election is how long followers wait for a message of the leader before they elect
	// another (each waits once to twice as long); 0 means 500 ms. It must be the same
	// on all nodes.
	Election time.Duration
	// LeaderWait is how long a call waits for a leader; 0 means 5 s.
	LeaderWait time.Duration

	// Reserve is the free space, in bytes, below which writes are refused; 0 means 64
	// MiB.
	Reserve int64
	// SnapshotEvery is the number of log entries after which a snapshot is written; 0
	// means 8192.
	SnapshotEvery uint64
	// StartTimeout bounds how long Open waits to be leader when alone; 0 means 10 s.
	StartTimeout time.Duration
	// Log receives log messages; nil means none.
	Log *slog.Logger
}

// Store is one node's part of the cluster's state. Its methods may be called
// concurrently.
type Store struct {
	options   Options
	raft      *raft.Raft
	fsm       *fsm
	tables    *tables
	log       *logStore
	votes     *stable
	watermark *watermark
	closers   []io.Closer // opened so far, to be closed in reverse

	term     atomic.Uint64 // in which this node leads, with everything applied that was committed before; 0: it does not lead
	caughtUp atomic.Bool   // has been leading since Open, or since another node led
	quiet    atomic.Uint64 // log index up to which a reader has found all commands applied
	leaders  leaders
	changed  *broadcast.Broadcaster // signals a change of this node's leadership, the known leader or, on the leader, the members

	heartbeat *heartbeat
	leads     *sharedCall[uint64]       // asks the other voters whether this node leads; returns its position in the log
	present   *sharedCall[uint64]       // asks the leader for its position in the log
	reach     *sharedCall[reachability] // asks the other voters whether they answer

	inflight chan struct{} // one element per Apply that Raft or the leader has not answered
	watches  chan struct{} // one element per open watch
	closing  chan struct{} // closed when Close begins
	stopped  chan struct{} // closed when Raft has stopped: pending requests are never answered
	once     sync.Once
	failOnce sync.Once      // guards the call of Options.Broken
	opened   atomic.Bool    // Raft runs
	running  sync.WaitGroup // watches, and the goroutines of the store
	mu       sync.Mutex     // guards closed against running.Add
	closed   bool
	closeErr error
}

// commitTimeout is how long (once to twice) followers may not know that an entry is
// committed if no other follows it: linearizable reads on them wait for that. The
// leader calls each follower this often, even when idle; it grows with the election
// timeout, because machines that need a longer one cannot handle such frequent calls
// either.
func commitTimeout(election time.Duration) time.Duration {
	return max(15*time.Millisecond, election*3/100)
}

// Limits of what waits in memory.
const (
	maxInflight = 1024
	maxWatches  = 1024
)

// Open opens or creates the store. A node that is alone is ready when Open returns,
// unless its disk is full: then it can be read (Stale) and waits. Files that cannot be
// the store that this node has used so far are refused (Damaged).
func Open(o Options) (*Store, error) {
	if o.Dir == "" || o.NodeID == "" {
		return nil, errors.New("open store: Dir and NodeID are required")
	}
	o.setDefaults()
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	s := &Store{
		options: o, closing: make(chan struct{}), stopped: make(chan struct{}), changed: broadcast.New(),
		inflight: make(chan struct{}, maxInflight), watches: make(chan struct{}, maxWatches),
	}
	s.heartbeat = newHeartbeat(o.Election)
	s.leads = &sharedCall[uint64]{fn: s.askLeads, limit: readTimeout, run: s.run}
	s.present = &sharedCall[uint64]{fn: s.askPresent, limit: readTimeout, run: s.run}
	s.reach = &sharedCall[reachability]{fn: s.askReach, limit: reachTimeout, run: s.run}
	if err := s.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store in %s: %w", o.Dir, err), s.closeFiles())
	}
	s.running.Add(1)
	go s.followLeadership()
	s.running.Go(s.keepWatermark)
	if o.Transport != nil {
		s.running.Go(s.runHeartbeat)
	}
	if o.Transport == nil {
		s.awaitStart()
	}
	return s, nil
}

func (o *Options) setDefaults() {
	if o.Reserve == 0 {
		o.Reserve = defaultReserve
	}
	if o.SnapshotEvery == 0 {
		o.SnapshotEvery = 8192
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 10 * time.Second
	}
	if o.Election == 0 {
		o.Election = 500 * time.Millisecond
	}
	if o.LeaderWait == 0 {
		o.LeaderWait = 5 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

func (o *Options) path(name string) string { return filepath.Join(o.Dir, name) }

// start opens the files and starts Raft over them.
func (s *Store) start() error {
	logger := raftLogger(s.options.Log)
	snapshots, tablesCurrent, _, err := s.openStore(logger)
	if err != nil {
		return err
	}
	return s.startRaft(snapshots, tablesCurrent, logger)
}

// openStore opens the files and compares them with each other and with what the node has
// acknowledged. It returns the results of checkFiles.
func (s *Store) openStore(logger hclog.Logger) (snapshots *raft.FileSnapshotStore, tablesCurrent bool, last uint64, err error) {
	if s.watermark, err = s.options.loadWatermark(); err != nil {
		return nil, false, 0, err
	}
	s.closers = append(s.closers, closer(s.watermark.close))
	if err := s.openFiles(); err != nil {
		return nil, false, 0, err
	}
	snapshots, err = raft.NewFileSnapshotStoreWithLogger(s.options.Dir, 2, logger)
	if err != nil {
		return nil, false, 0, s.options.badSnapshots(err)
	}
	if err := s.checkDamage(); err != nil {
		return nil, false, 0, err
	}
	if err := s.rebuildTables(snapshots); err != nil {
		return nil, false, 0, err
	}
	if tablesCurrent, last, err = s.checkFiles(snapshots); err != nil {
		return nil, false, 0, err
	}
	_, id, err := s.Settled()
	if err == nil {
		err = s.options.checkWatermark(s.watermark, last, s.votes, id)
	}
	return snapshots, tablesCurrent, last, err
}

// openFiles opens tables, log and vote, and creates what is missing.
func (s *Store) openFiles() error {
	o := &s.options
	if err := removeLeftover(o.path("tables.db.restore")); err != nil {
		return err
	}
	if err := s.openTables(); err != nil {
		return err
	}
	var bolt *raftboltdb.BoltStore
	err := openBolt(o.path("log.db"), func() (err error) {
		bolt, err = raftboltdb.New(raftboltdb.Options{Path: o.path("log.db"), BoltOptions: boltOptions()})
		return err
	})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, bolt)
	s.log = &logStore{bolt: bolt, path: o.path("log.db"), held: extent{path: o.path("log.db")}, sleep: s.pause, cut: s.cut, wrote: s.wrote}
	if s.votes, err = openStable(o.path("vote")); err != nil {
		return &Damaged{o.path("vote"), err}
	}
	s.closers = append(s.closers, s.votes)
	return nil
}

func (s *Store) openTables() (err error) {
	if s.tables, err = openTables(s.options.path("tables.db")); err != nil {
		return err
	}
	s.closers = append(s.closers, closer(s.tables.close))
	s.fsm, err = newFSM(s.tables)
	return err
}

// watchDamage stops the store when a file shows damage from now on.
func (s *Store) watchDamage() {
	s.tables.onDamage, s.log.onDamage, s.fsm.fail = s.fail, s.fail, s.fail
}

// raftConfig returns Raft's configuration for the store.
func (o *Options) raftConfig(logger hclog.Logger) *raft.Config {
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(o.NodeID)
	conf.Logger = logger
	conf.BatchApplyCh = true // many Apply calls become one write to the disk
	conf.MaxAppendEntries = 256
	conf.SnapshotThreshold = o.SnapshotEvery
	conf.TrailingLogs = o.SnapshotEvery
	conf.HeartbeatTimeout, conf.ElectionTimeout = o.Election, o.Election
	conf.LeaderLeaseTimeout = o.Election * 4 / 5
	conf.CommitTimeout = commitTimeout(o.Election)
	conf.ShutdownOnRemove = false // a removed node can still be read
	return conf
}

func (s *Store) startRaft(snapshots raft.SnapshotStore, tablesCurrent bool, logger hclog.Logger) error {
	o := &s.options
	votes := votes{s.votes, s.watermark}
	conf := o.raftConfig(logger)
	transport, bootstrap := o.Transport, o.Bootstrap
	var alone *raft.InmemTransport
	if transport == nil {
		_, alone = raft.NewInmemTransport(raft.ServerAddress(o.NodeID))
		transport, bootstrap = alone, true
	}
	conf.NoSnapshotRestoreOnStart = tablesCurrent
	if bootstrap {
		if err := s.undoPartialBootstrap(votes, snapshots); err != nil {
			return err
		}
	}
	old, err := raft.HasExistingState(s.log, votes, snapshots)
	if err != nil {
		return err
	}
	if !old && bootstrap {
		first := raft.Configuration{Servers: []raft.Server{member(o.NodeID)}}
		if err := raft.BootstrapCluster(conf, s.log, votes, snapshots, transport, first); err != nil {
			return err
		}
	}
	s.watchDamage()
	if err := s.newRaft(conf, votes, snapshots, transport); err != nil {
		return err
	}
	s.opened.Store(true)
	members := s.raft.GetConfiguration().Configuration().Servers
	self := func(m raft.Server) bool { return m.ID == conf.LocalID }
	if alone == nil {
		return nil
	}
	if !slices.ContainsFunc(members, self) {
		return errors.Join(fmt.Errorf("its files belong to node %v, want %s", members, o.NodeID), s.raft.Shutdown().Error())
	}
	if err := electImmediately(alone); err != nil { // then it elects itself a moment later
		s.options.Log.Warn("store: elect only voter failed", "error", err)
	}
	return nil
}

// electImmediately makes a node that is alone elect itself without waiting for a leader
// that cannot exist. Short time-outs would have the same effect, but the leader would
// then also check its lease that often.
func electImmediately(node *raft.InmemTransport) error {
	_, caller := raft.NewInmemTransport("")
	caller.Connect(node.LocalAddr(), node)
	now := raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}}
	return caller.TimeoutNow("", node.LocalAddr(), &now, &raft.TimeoutNowResponse{})
}

// newRaft starts Raft, which first reads all of the log, and panics if it cannot.
func (s *Store) newRaft(conf *raft.Config, votes votes, snapshots raft.SnapshotStore, transport raft.Transport) (err error) {
	defer func() {
		if r := recover(); r != nil {
			var d *Damaged
			if e, ok := r.(error); !ok || !errors.As(e, &d) {
				panic(r)
			}
			err = d
		}
	}()
	s.raft, err = raft.NewRaft(conf, s.fsm, raftLog{s.log, s}, raftVotes{votes, s}, snapshots, transport)
	if why := s.fsm.unrestored; err != nil && why != nil { // Raft reports only that it can load no snapshot
		return s.options.badSnapshots(why)
	}
	return err
}

// undoPartialBootstrap reverts an interrupted creation of a cluster.
// raft.BootstrapCluster writes term 1 and then the first entry of the log; a node that
// was killed in between has no members and no way to get any. No other node is in term
// 1 with an empty log, without a vote and a snapshot.
func (s *Store) undoPartialBootstrap(votes raft.StableStore, snapshots raft.SnapshotStore) error {
	last, err := s.log.LastIndex()
	if err != nil || last > 0 {
		return err
	}
	if list, err := snapshots.List(); err != nil || len(list) > 0 {
		return err
	}
	if _, err := votes.GetUint64(keyLastVoteTerm); err == nil {
		return nil
	} else if err.Error() != errNotFound.Error() {
		return err
	}
	term, err := votes.GetUint64(keyCurrentTerm)
	if err == nil && term == 1 {
		return votes.SetUint64(keyCurrentTerm, 0)
	}
	return nil
}

// checkFiles compares the files with each other. It reports whether the tables include
// the newest snapshot, so that it need not be restored, and the last entry of log and
// snapshots; and it refuses a log that ends before the tables: one of them is not this
// node's.
func (s *Store) checkFiles(snapshots raft.SnapshotStore) (tablesCurrent bool, last uint64, err error) {
	applied, err := s.tables.appliedIndex()
	if err != nil {
		return false, 0, err
	}
	if last, err = s.log.LastIndex(); err != nil {
		return false, 0, err
	}
	list, err := snapshots.List()
	if err != nil {
		return false, 0, s.options.badSnapshots(err)
	}
	first, err := s.log.FirstIndex()
	if err != nil {
		return false, 0, err
	}
	tablesCurrent = true
	has := uint64(0) // the newest snapshot
	if len(list) > 0 {
		has = list[0].Index
		last = max(last, has)
		_, r, err := snapshots.Open(list[0].ID)
		if err != nil {
			return false, 0, s.options.badSnapshots(err)
		}
		h, err := readHeader(r)
		if err := errors.Join(err, r.Close()); err != nil {
			return false, 0, s.options.badSnapshots(err)
		}
		tablesCurrent = applied >= h.applied
	}
	if first > has+1 { // Raft would read the entries between, and panic
		return false, 0, &Damaged{s.options.path("snapshots"),
			fmt.Errorf("a snapshot is missing or damaged: the log begins with entry %d, and the newest snapshot has entry %d", first, has)}
	}
	if applied > last {
		return false, 0, &Damaged{s.options.path("log.db"),
			fmt.Errorf("it ends at entry %d, but the tables contain entry %d: one of them was replaced or lost", last, applied)}
	}
	return tablesCurrent, last, nil
}

// badSnapshots converts the failure to read the snapshots: it is Damaged, as another
// start does not help, unless the process, the memory or the disk has no space now.
func (o *Options) badSnapshots(err error) error {
	var d *Damaged
	if err == nil || errors.As(err, &d) || isFull(err) || isErrno(err, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EINTR) {
		return err
	}
	return &Damaged{o.path("snapshots"), fmt.Errorf("read snapshot: %w", err)}
}

// awaitStart waits for the first leadership of a node that is alone.
func (s *Store) awaitStart() {
	deadline := time.After(s.options.StartTimeout)
	for {
		wait := s.changed.Next()
		if s.IsLeader() {
			return
		}
		select {
		case <-wait:
		case <-deadline:
			s.options.Log.Warn("store: not ready yet", "disk full", s.full())
			return
		}
	}
}

// pause sleeps until the time is over or the store closes.
func (s *Store) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.closing:
	}
}

// full reports whether the disk refused a write that Raft needs.
func (s *Store) full() bool { return s.log.full.Load() || s.fsm.full.Load() }

// Revision returns the revision of the last change that is applied here.
func (s *Store) Revision() int64 { return s.fsm.revision.Load() }

// Close stops the store. Batches that Apply has answered are on the disk.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.handOver()
		close(s.closing)
		close(s.fsm.closing)
		err := s.raft.Shutdown().Error()
		close(s.stopped)
		s.running.Wait()
		s.leaders.close()
		s.closeErr = errors.Join(err, s.updateWatermark(), s.closeFiles())
	})
	return s.closeErr
}

func (s *Store) closeFiles() error {
	var errs []error
	for _, c := range slices.Backward(s.closers) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// run starts a goroutine that Close waits for, and returns false after Close.
func (s *Store) run(fn func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Go(fn)
	return true
}

type closer func() error

func (c closer) Close() error { return c() }

// raftLogger returns a logger for Raft that writes to l.
func raftLogger(l *slog.Logger) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Name: "raft", Level: hclog.Warn, DisableTime: true,
		Output: lineWriter{l},
	})
}

type lineWriter struct{ log *slog.Logger }

func (w lineWriter) Write(line []byte) (int, error) {
	w.log.Info("store: " + strings.TrimSpace(string(line)))
	return len(line), nil
}
