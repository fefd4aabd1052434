package container

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

// SpecFile is where the specification lies: in a folder that is empty after a boot,
// as the devices are those of this boot.
const SpecFile = "/run/cdi/basalt.json"

// Renew makes the file what the machine is now: it writes the specification, or
// removes it where there is no GPU. It returns what it has done, in words.
func (m *Machine) Renew(file string) (done string, err error) {
	if m.GPUs() == 0 {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("remove CDI specification: %w", err)
		}
		return "no CDI specification: " + m.none().Error(), nil
	}
	text, err := m.Text()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", fmt.Errorf("write CDI specification: %w", err)
	}
	// CDI's names end in .json or .yaml, so that none takes the new file for one.
	if err := replaceFile(file, text, 0o644); err != nil {
		return "", fmt.Errorf("write CDI specification: %w", err)
	}
	done = fmt.Sprintf("containers find this machine's GPUs (%d) as %s=0 and so on, or %s=all: %s", m.GPUs(), Kind, Kind, file)
	if err := conflicts(file); err != nil {
		return done, err
	}
	return done, nil
}

// Text returns the specification as a file has it. It is an error where there is no GPU.
func (m *Machine) Text() ([]byte, error) {
	if m.GPUs() == 0 {
		return nil, m.none()
	}
	s, err := m.Spec()
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode CDI specification: %w", err)
	}
	return append(text, '\n'), nil
}

// conflicts reports other files in the folder that have the same devices: engines
// then use none of them.
func conflicts(file string) error {
	// A folder that is changing now is for a later renewal.
	cache, err := cdi.NewCache(cdi.WithSpecDirs(filepath.Dir(file)), cdi.WithAutoRefresh(false))
	if err != nil {
		return nil
	}
	if errs := cache.GetErrors()[file]; len(errs) > 0 {
		return fmt.Errorf("CDI specification %s cannot be used: %w", file, errors.Join(errs...))
	}
	return nil
}

// replaceFile replaces a file, also behind a symbolic link, by renaming; what is
// right already is left alone.
func replaceFile(file string, text []byte, mode fs.FileMode) error {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, text) {
		return os.Chmod(file, mode)
	}
	return atomicfile.WriteFileUnsynced(file, text, mode)
}
