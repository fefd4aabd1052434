package guest_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Parts of a kernel's configuration, as distributions ship it.
const (
	configHead    = "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 6.12.1 Kernel Configuration\n#\n"
	configGuest   = "CONFIG_VIRTIO_PCI=y\nCONFIG_VIRTIO_BLK=m\nCONFIG_VIRTIO_NET=m\nCONFIG_SCSI_VIRTIO=m\nCONFIG_ISO9660_FS=m\nCONFIG_VIRTIO_CONSOLE=m\n"
	configDriver  = "CONFIG_DRM=m\nCONFIG_DRM_VIRTIO_GPU=m\n"
	configNothing = "# CONFIG_DRM is not set\n"
)

func TestKernelCheck(t *testing.T) {
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{
		"config-good": configHead + configGuest + configDriver, "config-cloud": configHead + configGuest + configNothing,
		"config-old":      strings.Replace(configHead, "6.12.1", "5.15.0-100-generic", 1) + configGuest + configDriver,
		"config-no-agent": strings.Replace(configHead+configGuest+configDriver, "CONFIG_VIRTIO_CONSOLE=m\n", "", 1),
		"config-drm-only": configHead + configGuest + "CONFIG_DRM=y\n", "not-one": "hello\n",
		"split/boot/config-6": configHead + configGuest + configDriver, "split/DEBIAN/control": "Package: k\nVersion: 1\nArchitecture: all\nMaintainer: x <x@localhost>\nDescription: k\n",
		"whole/boot/config-6": configHead + configGuest + configDriver, "whole/DEBIAN/control": "Package: k\nVersion: 1\nArchitecture: all\nMaintainer: x <x@localhost>\nDescription: k\n",
		"whole/lib/modules/6/kernel/drivers/gpu/drm/virtio/virtio-gpu.ko.xz": "",
	})
	for _, name := range []string{"split", "whole"} {
		if out, err := exec.Command("dpkg-deb", "--root-owner-group", "-b", filepath.Join(dir, name), filepath.Join(dir, name+".deb")).CombinedOutput(); err != nil {
			t.Fatalf("dpkg-deb: %v\n%s", err, out)
		}
	}
	for file, c := range map[string]struct {
		want string
		code int
	}{
		"config-good":     {"config-good supported", 0},
		"config-cloud":    {"config-cloud new-kernel lacks DRM DRM_VIRTIO_GPU", 1},
		"config-old":      {"config-old new-kernel lacks version-5.15<5.16", 1},
		"config-no-agent": {"config-no-agent supported lacks VIRTIO_CONSOLE", 0},
		"config-drm-only": {"config-drm-only new-kernel lacks DRM_VIRTIO_GPU", 1},
		"whole.deb":       {"whole.deb supported", 0},
		"split.deb":       {"split.deb supported lacks virtio-gpu.ko(in-another-package?)", 0},
		"not-one":         {"has no kernel's configuration", 2},
		"absent":          {"cannot be read", 2},
	} {
		cmd := exec.Command("sh", "kernelcheck.sh", filepath.Join(dir, file))
		out, err := cmd.CombinedOutput()
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		got := strings.TrimSpace(string(out))
		if code := cmd.ProcessState.ExitCode(); code != c.code || c.code < 2 && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("kernelcheck.sh %s: exit code %d, output %q; want %d, %q", file, code, got, c.code, c.want)
		}
	}
}
