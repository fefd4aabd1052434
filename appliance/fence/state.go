package fence

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

const (
	stateFile = "fence.json"
	lockFile  = "lock"
)

// stored is the state file. It is replaced as a whole.
type stored struct {
	V     int      `json:"v"`
	Boot  string   `json:"boot"`
	Armed bool     `json:"armed"`
	Lease Lease    `json:"lease"`
	Keep  []string `json:"keep,omitempty"`
}

func (m *machine) store(boot string) stored {
	return stored{V: version, Boot: boot, Armed: m.armed, Lease: m.lease, Keep: slices.Sorted(maps.Keys(m.keep))}
}

// load makes a machine of the state file. An error comes with a machine that
// kills everything: it is what safety asks for.
func load(dir, boot string) (*machine, error) {
	m := &machine{}
	b, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	m.armed = true
	if err != nil {
		return m, err
	}
	var s stored
	if err := json.Unmarshal(b, &s); err != nil {
		return m, fmt.Errorf("%s: %w", stateFile, err)
	}
	if s.V != version {
		return m, fmt.Errorf("%s is of version %d; this basalt-fence knows %d", stateFile, s.V, version)
	}
	m.armed = s.Armed
	m.setKeep(s.Keep)
	if boot != "" && s.Boot == boot {
		m.lease = s.Lease
	}
	return m, nil
}

// save replaces the state file for good.
func save(dir string, s stored) (err error) {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	name := filepath.Join(dir, stateFile)
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(name+".new", name); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lock keeps a second basalt-fence from the same state.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: another basalt-fence is running: %w", dir, err)
	}
	return f, nil
}
