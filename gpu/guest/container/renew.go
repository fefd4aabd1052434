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

// SpecFile is the path of the specification. It is in a folder that is empty after a boot,
// because the devices are those of the current boot.
const SpecFile = "/run/cdi/basalt.json"

// Renew updates the file to the machine's current state: it writes the specification, or
// removes it if there is no GPU. done describes for the operator what it did; it may be set
// together with an error, if another file describes the same devices.
func (m *Machine) Renew(file string) (done string, err error) {
	if m.GPUs() == 0 {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("remove CDI specification: %w", err)
		}
		return "no CDI specification: " + m.noGPU().Error(), nil
	}
	text, err := m.Text()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", fmt.Errorf("write CDI specification: %w", err)
	}
	// Engines read only files that end in .json or .yaml, so they ignore the temporary file.
	if err := replaceFile(file, text, 0o644); err != nil {
		return "", fmt.Errorf("write CDI specification: %w", err)
	}
	done = fmt.Sprintf("containers find this machine's GPUs (%d) as %s=0 and so on, or %s=all: %s", m.GPUs(), Kind, Kind, file)
	if err := conflicts(file); err != nil {
		return done, err
	}
	return done, nil
}

// Text returns the content of the specification's file. It returns an error if there is no
// GPU.
func (m *Machine) Text() ([]byte, error) {
	if m.GPUs() == 0 {
		return nil, m.noGPU()
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

// conflicts returns an error if another file in the folder describes the same devices,
// because engines then use none of these files.
func conflicts(file string) error {
	// If the folder changes at the same time, a later renewal checks it.
	cache, err := cdi.NewCache(cdi.WithSpecDirs(filepath.Dir(file)), cdi.WithAutoRefresh(false))
	if err != nil {
		return nil
	}
	if errs := cache.GetErrors()[file]; len(errs) > 0 {
		return fmt.Errorf("CDI specification %s cannot be used: %w", file, errors.Join(errs...))
	}
	return nil
}

// replaceFile replaces the content of a file by renaming a new one to it. If file is a
// symbolic link, it replaces the link's target. A file with the right content only gets the
// mode.
func replaceFile(file string, text []byte, mode fs.FileMode) error {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, text) {
		return os.Chmod(file, mode)
	}
	return atomicfile.WriteFileUnsynced(file, text, mode)
}
