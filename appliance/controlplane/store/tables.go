package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// mapBytes is the address space that is reserved for a bbolt file. A file that outgrows
// its mapping makes the writer wait for all readers, and a watcher's snapshot may read
// for long.
const mapBytes = 16 << 30

// lockWait is how long to wait for a file's lock: two processes would destroy the file.
const lockWait = time.Second

// tables is the file of the state machine.
type tables struct {
	path string
	mu   sync.RWMutex // held for reading during a transaction, for writing while the file is replaced
	db   *bbolt.DB
	held extent

	touches  api.Touches
	program  state.Program // differs from this program only in simulations
	onDamage func(error)   // called with damage; nil: not called
}

// guard runs a function that reads or writes the file.
func (t *tables) guard(fn func() error) error {
	err := t.held.guarded(fn)
	var d *Damaged
	if errors.As(err, &d) && t.onDamage != nil {
		t.onDamage(err)
	}
	return err
}

func boltOptions() *bbolt.Options {
	return &bbolt.Options{
		Timeout:         lockWait,
		NoFreelistSync:  true, // it is rebuilt when the file is opened; writes are smaller
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: mapBytes,
	}
}

func openTables(path string) (*tables, error) {
	t := &tables{path: path, held: extent{path: path}}
	err := openBolt(path, func() (err error) {
		if t.db, err = bbolt.Open(path, 0o600, boltOptions()); err != nil {
			return err
		}
		if err = t.prepare(); err != nil {
			err = errors.Join(err, t.db.Close())
		}
		return err
	})
	return t, err
}

// openError converts bbolt's error of opening a file: it is Damaged if its content, or
// the disk, is the reason.
func openError(path string, err error) error {
	if err == nil {
		return nil
	}
	var d *Damaged
	if errors.As(err, &d) {
		return err
	}
	if errors.Is(err, bbolterrors.ErrInvalid) || errors.Is(err, bbolterrors.ErrChecksum) || errors.Is(err, bbolterrors.ErrVersionMismatch) {
		return &Damaged{path, err}
	}
	if isErrno(err, syscall.EROFS, syscall.EIO) {
		return writeError(path, err)
	}
	return fmt.Errorf("open %s: %w", path, err)
}

// begin starts a read transaction. Reads must run under guard; end must be called once.
func (t *tables) begin() (v state.View, end func(), err error) {
	tx, end, err := t.beginTx()
	return state.ViewOf(tx), end, err
}

func (t *tables) beginTx() (tx *bbolt.Tx, end func(), err error) {
	t.mu.RLock()
	if tx, err = t.db.Begin(false); err != nil {
		t.mu.RUnlock()
		return nil, nil, err
	}
	return tx, func() {
		_ = tx.Rollback() // of a read: cannot fail
		t.mu.RUnlock()
	}, nil
}

// read runs fn in a read transaction.
func (t *tables) read(fn func(state.View) error) error {
	v, end, err := t.begin()
	if err != nil {
		return err
	}
	defer end()
	return t.guard(func() error { return fn(v) })
}

// update runs fn in a write transaction: all of it takes effect, or nothing. bbolt's
// own Update reacts to a panic by reading all pages in a goroutine, where the damage
// that caused the panic ends the process.
func (t *tables) update(fn func(*bbolt.Tx) error) error {
	tx, err := t.db.Begin(true)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // fails after Commit, which has ended the transaction
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// apply applies entries in one transaction: all of them, or none if it returns an error.
func (t *tables) apply(entries []state.Entry) (out state.Outcome, err error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	err = t.held.grown(func() error {
		return t.update(func(tx *bbolt.Tx) (err error) {
			if out, err = state.Apply(tx, t.program, entries); err != nil {
				return fmt.Errorf("write tables: %w", err)
			}
			return nil
		})
	})
	if err == nil {
		t.touches.Note(out.Touched...)
	}
	return out, err
}

// prepare creates or upgrades the file's tables for this program.
func (t *tables) prepare() error {
	if err := state.Prepare(t.db.View, t.update); err != nil {
		return fmt.Errorf("prepare tables: %w", err)
	}
	return nil
}

// appliedIndex returns the log index up to which the tables are applied.
func (t *tables) appliedIndex() (index uint64, err error) {
	return index, t.read(func(v state.View) error { index = v.Applied(); return nil })
}

func (t *tables) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.db.Close()
}

// replace replaces the tables' file with the one at path, which is complete and synced.
func (t *tables) replace(path string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.db.Close(); err != nil {
		return err
	}
	if err := os.Rename(path, t.path); err != nil {
		return err
	}
	if err := atomicfile.Sync(filepath.Dir(t.path)); err != nil {
		return err
	}
	db, err := bbolt.Open(t.path, 0o600, boltOptions())
	if err != nil {
		return err
	}
	t.db = db
	t.held.size.Store(0)
	defer t.touches.Forget()
	return t.prepare() // it may be of an older version
}

// empty replaces the tables with those of a new store.
func (t *tables) empty() error {
	path := t.path + ".restore"
	if err := removeLeftover(path); err != nil {
		return err
	}
	fresh, err := openTables(path)
	if err != nil {
		return err
	}
	if err := fresh.close(); err != nil {
		return err
	}
	return t.replace(path)
}
