package gpudriver

import "testing"

func TestFlavour(t *testing.T) {
	for kernel, want := range map[string]string{
		"6.12.118+deb13-amd64": "amd64", "6.12.118+deb13-cloud-amd64": "cloud-amd64", "6.1.0-28-amd64": "amd64", "6.1.0-28-rt-amd64": "rt-amd64", "6.12.0": "",
	} {
		if got := flavour(kernel); got != want {
			t.Errorf("flavour(%s) = %q, want %q", kernel, got, want)
		}
	}
}

func TestMajor(t *testing.T) {
	for version, want := range map[string]int{"550.163.01-2": 550, "1:570.1-1": 570, "x": 0, "": 0} {
		if got := major(version); got != want {
			t.Errorf("major(%q) = %d, want %d", version, got, want)
		}
	}
}

func TestDriverVersion(t *testing.T) {
	for text, want := range map[string]string{
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.163.01  Release Build  (x@y)\nGCC version:  14.2\n": "550.163.01",
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat\n":                                               "535.104.05",
		"NVRM version: unknown\n": "NVRM version: unknown", "": "",
	} {
		if got := driverVersion(text); got != want {
			t.Errorf("driverVersion(%q) = %q, want %q", text, got, want)
		}
	}
}
