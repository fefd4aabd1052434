package fake

import (
	"errors"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/drivertest"
)

func TestConformance(t *testing.T) {
	drivertest.Run(t, func(*testing.T) sds.Driver { return New(drivertest.Limits) })
}

func TestSharedConformance(t *testing.T) {
	drivertest.Run(t, func(*testing.T) sds.Driver { return Shared("pool-1", drivertest.Limits, 1)[0] })
	drivertest.RunShared(t, func(*testing.T) (a, b sds.Driver) {
		s := Shared("pool-1", drivertest.Limits, 1)[0]
		return s, s.Join()
	})
}

func TestInjectedConditions(t *testing.T) {
	s := New(sds.Limits{})
	s.Serve("http://x/i", drivertest.Raw(1024))
	if _, err := s.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.Raw, URL: "http://x/i"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", Image: "img-1"}); err != nil {
		t.Fatal(err)
	}
	s.SetUsed("vol-1", true)
	if err := s.DeleteVolume(t.Context(), "vol-1"); api.CodeOf(err) != api.CodeInUse {
		t.Errorf("DeleteVolume of a used volume = %v, want in_use", err)
	}
	s.SetFree(0)
	if _, err := s.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-2", SizeBytes: 1}); api.CodeOf(err) != api.CodeDiskFull {
		t.Errorf("CreateVolume in a full store = %v, want insufficient_disk", err)
	}
	broken := errors.New("injected")
	s.Fault(func(op, id string) error {
		if op == "Volume" && id == "vol-1" {
			return broken
		}
		return nil
	})
	if _, err := s.Volume(t.Context(), "vol-1"); !errors.Is(err, broken) {
		t.Errorf("Volume with a fault = %v, want %v", err, broken)
	}
}
