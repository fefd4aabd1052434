// Package dmcrypttest has tests for what opens encrypted devices (Run), and a fake for
// machines whose kernel has no device mapper (Loop).
package dmcrypttest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"github.com/basalt-gpu/basalt/sds/dmcrypt"
	"github.com/basalt-gpu/basalt/sds/rawdisk"
)

// Loop has real headers, which only open with their key; but a mapping is a loop device
// behind the header, so the content is not encrypted.
type Loop struct {
	dmcrypt.Kernel

	mu   sync.Mutex
	open map[string]mapping // by name
}

type mapping struct{ path, device string }

// Open opens a device under a name.
func (l *Loop) Open(ctx context.Context, device, name string, key []byte) error {
	l.mu.Lock()
	have, ok := l.open[name]
	l.mu.Unlock()
	if ok && have.device == device {
		return nil
	}
	if err := l.Close(ctx, name); err != nil {
		return err
	}
	switch ok, err := dmcrypt.Opens(ctx, device, key); {
	case err != nil:
		return fmt.Errorf("open encrypted %s: %w", device, err)
	case !ok:
		return fmt.Errorf("open encrypted %s: the key does not open it", device)
	}
	out, err := exec.CommandContext(ctx, "losetup", "--offset", strconv.Itoa(dmcrypt.HeaderBytes), "--find", "--show", device).Output()
	if err != nil {
		return fmt.Errorf("attach a loop device to %s: %w", device, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[string]mapping{}
	}
	l.open[name] = mapping{strings.TrimSpace(string(out)), device}
	return nil
}

// Close closes a mapping that nothing uses.
func (l *Loop) Close(_ context.Context, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok := l.open[name]
	if !ok {
		return nil
	}
	if who, err := rawdisk.InUse(m.path); err != nil || who != "" {
		return errors.Join(err, fmt.Errorf("close encrypted device %s: %s", name, who))
	}
	if err := exec.Command("losetup", "--detach", m.path).Run(); err != nil {
		return fmt.Errorf("detach %s: %w", m.path, err)
	}
	delete(l.open, name)
	return nil
}

// Find returns the mapping of that name.
func (l *Loop) Find(_ context.Context, device, name string) (dmcrypt.Mapping, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok := l.open[name]
	return dmcrypt.Mapping{Path: m.path, Over: ok && m.device == device}, nil
}

// Names returns the names of the open mappings that begin with prefix.
func (l *Loop) Names(_ context.Context, prefix string) (names []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.open {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names, nil
}

// CloseAll closes all mappings, whatever uses them.
func (l *Loop) CloseAll() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for name, m := range l.open {
		errs = append(errs, exec.Command("losetup", "--detach", m.path).Run())
		delete(l.open, name)
	}
	return errors.Join(errs...)
}
