package dmcrypttest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/sds/dmcrypt"
)

// Devices is what is tested.
type Devices interface {
	Format(ctx context.Context, device string, h dmcrypt.Header, key []byte, scratch string) error
	Open(ctx context.Context, device, name string, key []byte) error
	Close(ctx context.Context, name string) error
	Find(ctx context.Context, device, name string) (dmcrypt.Mapping, error)
	Names(ctx context.Context, prefix string) ([]string, error)
}

// Run tests d with devices that newDevice creates. A name is used by one test only.
func Run(t *testing.T, d Devices, newDevice func(t *testing.T) string) {
	t.Helper()
	s := suite{d, newDevice}
	t.Run("LifeCycle", s.lifeCycle)
	t.Run("WrongKey", s.wrongKey)
	t.Run("OtherDevice", s.otherDevice)
	t.Run("InUse", s.inUse)
}

type suite struct {
	Devices
	newDevice func(t *testing.T) string
}

var key = []byte("0f2ad6b1c9e84c3f9d6ba1e2f3041526")

// formatted returns an encrypted device, and the name for its mapping, which is closed
// when the test ends.
func (s suite) formatted(t *testing.T, name string) (device, mapping string) {
	t.Helper()
	device = s.newDevice(t)
	h := dmcrypt.Header{UUID: "bbbbbbbb-0000-4000-8000-000000000000", Label: "test"}
	if err := s.Format(t.Context(), device, h, key, filepath.Join(t.TempDir(), "scratch")); err != nil {
		t.Fatal(err)
	}
	mapping = "basalt-test-" + name
	t.Cleanup(func() {
		if err := s.Close(context.Background(), mapping); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return device, mapping
}

func (s suite) find(t *testing.T, device, name string) dmcrypt.Mapping {
	t.Helper()
	m, err := s.Find(t.Context(), device, name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (s suite) open(t *testing.T, device, name string) (path string) {
	t.Helper()
	if err := s.Open(t.Context(), device, name, key); err != nil {
		t.Fatal(err)
	}
	m := s.find(t, device, name)
	if m.Path == "" || !m.Over {
		t.Fatalf("Find of an open device = %+v, want a path, over it", m)
	}
	return m.Path
}

// lifeCycle checks that content survives closing, and that each step can be repeated.
func (s suite) lifeCycle(t *testing.T) {
	device, name := s.formatted(t, "life")
	if m := s.find(t, device, name); m != (dmcrypt.Mapping{}) {
		t.Errorf("Find of a closed device = %+v, want none", m)
	}
	content := bytes.Repeat([]byte("in plain"), 512)
	for round := range 2 {
		path := s.open(t, device, name)
		if again := s.open(t, device, name); again != path {
			t.Errorf("opened twice at %s and %s, want one mapping", path, again)
		}
		if names, err := s.Names(t.Context(), name[:len(name)-1]); err != nil || !slices.Equal(names, []string{name}) {
			t.Errorf("Names of open mappings = %q, %v, want %q", names, err, name)
		}
		if names, err := s.Names(t.Context(), name+"-"); err != nil || len(names) > 0 {
			t.Errorf("Names with another prefix = %q, %v, want none", names, err)
		}
		f, err := os.OpenFile(path, os.O_RDWR|os.O_SYNC, 0)
		if err != nil {
			t.Fatal(err)
		}
		have := make([]byte, len(content))
		if round == 0 {
			_, err = f.WriteAt(content, 0)
		} else if _, err = f.ReadAt(have, 0); !bytes.Equal(have, content) {
			t.Errorf("content after closing = %.20q, want %.20q", have, content)
		}
		if err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := s.Close(t.Context(), name); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
	}
	if m := s.find(t, device, name); m.Path != "" {
		t.Errorf("Find after Close = %+v, want none", m)
	}
}

func (s suite) wrongKey(t *testing.T) {
	device, name := s.formatted(t, "key")
	if err := s.Open(t.Context(), device, name, []byte("another")); err == nil {
		t.Error("Open with another key succeeded, want an error")
	}
	if m := s.find(t, device, name); m.Path != "" {
		t.Errorf("Find after a failed Open = %+v, want none", m)
	}
}

// otherDevice checks that a name is moved to the device that it is opened for.
func (s suite) otherDevice(t *testing.T) {
	a, name := s.formatted(t, "moved")
	b, _ := s.formatted(t, "moved")
	s.open(t, a, name)
	if m := s.find(t, b, name); m.Path == "" || m.Over {
		t.Errorf("Find with another device = %+v, want a mapping that is not over it", m)
	}
	if m := s.find(t, filepath.Join(t.TempDir(), "gone"), name); m.Path == "" || m.Over {
		t.Errorf("Find with a device that is gone = %+v, want a mapping that is not over it", m)
	}
	s.open(t, b, name)
	if m := s.find(t, a, name); m.Over {
		t.Errorf("Find with the earlier device = %+v, want it not over it", m)
	}
}

// inUse checks that a mapping that something uses is not closed.
func (s suite) inUse(t *testing.T) {
	device, name := s.formatted(t, "used")
	f, err := os.OpenFile(s.open(t, device, name), os.O_RDWR|os.O_EXCL, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context(), name); err == nil {
		t.Error("Close of a mapping in use succeeded, want an error")
	}
	if m := s.find(t, device, name); !m.Over {
		t.Errorf("Find after a refused Close = %+v, want the mapping", m)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
