package fence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

// Files in the state directory, and beside the socket. The latter are in memory,
// and of this boot only: they are for what changes all the time, or must be written
// before a kill, without wearing or waiting for a disk.
const (
	stateFile = "fence.json"
	lockFile  = "lock"

	leaseFile = "fence.lease"
	killFile  = "fence.victims"
)

// stored is the content of the state file; the lease has a file of its own. Each
// file is replaced as a whole.
type stored struct {
	V     int      `json:"v"`
	Boot  string   `json:"boot"`
	Armed bool     `json:"armed"`
	Lease *Lease   `json:"lease,omitempty"` // in files of older versions
	Keep  []string `json:"keep,omitempty"`
}

// storedLease is the content of the lease's file.
type storedLease struct {
	V     int    `json:"v"`
	Boot  string `json:"boot"`
	Lease Lease  `json:"lease"`
}

// state is the state of a machine to be written.
type state struct {
	stored
	lease storedLease
}

func (m *machine) store(boot string) state {
	return state{stored{V: version, Boot: boot, Armed: m.armed, Keep: slices.Sorted(maps.Keys(m.keep))}, storedLease{version, boot, m.lease}}
}

// files writes the files; the saver owns it.
type files struct {
	state, run string // directories
	last       []byte // last state written
	// replace writes the state file durably: atomicfile.WriteFile, or in tests a
	// disk that hangs or is full.
	replace func(path string, data []byte, mode fs.FileMode) error
}

// sweep removes incomplete files of a basalt-fence that was killed. Other processes
// use the directory of sockets too, so files of the last minute stay there.
func (f *files) sweep(now time.Time) error {
	return errors.Join(atomicfile.Sweep(now, f.state), atomicfile.Sweep(now.Add(-time.Minute), f.run))
}

// save writes what has changed: the state durably, the lease for as long as this
// boot lasts. The order makes sure that a crash between the two does not leave an
// armed node without its lease.
func (f *files) save(s state) error {
	if s.Armed {
		return errors.Join(f.saveLease(s.lease), f.saveState(s.stored))
	}
	return errors.Join(f.saveState(s.stored), f.saveLease(s.lease))
}

func (f *files) saveState(s stored) error {
	b, err := json.Marshal(s)
	if err != nil || bytes.Equal(b, f.last) {
		return err
	}
	f.last = nil
	if err := f.replace(filepath.Join(f.state, stateFile), b, 0o600); err != nil {
		return err
	}
	f.last = b
	return nil
}

func (f *files) saveLease(s storedLease) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return atomicfile.WriteFileUnsynced(filepath.Join(f.run, leaseFile), b, 0o600)
}

// load creates a machine from the files. With an error the returned machine kills
// everything, which is the safe choice.
func load(f files, boot string) (*machine, error) {
	m := &machine{}
	var s stored
	there, err := read(filepath.Join(f.state, stateFile), &s)
	if !there && err == nil {
		return m, nil
	}
	m.armed = true
	if err != nil {
		return m, err
	}
	if s.V != version {
		return m, fmt.Errorf("%s has version %d, want %d", stateFile, s.V, version)
	}
	m.armed = s.Armed
	m.setKeep(s.Keep)
	var l storedLease
	switch there, err = read(filepath.Join(f.run, leaseFile), &l); {
	case err != nil:
		return m, err
	case boot == "":
	case there && l.V == version && l.Boot == boot:
		m.lease = l.Lease
	case !there && s.Lease != nil && s.Boot == boot:
		m.lease = *s.Lease
	}
	return m, nil
}

// read decodes one of the files.
func read(name string, into any) (there bool, err error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		return true, fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return true, nil
}

// lock prevents a second basalt-fence from using the same state.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: another basalt-fence is running: %w", dir, err)
	}
	return f, nil
}
