package plan

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// setMachines sets a node's machine types.
func (s *State) setMachines(id string, types ...string) {
	n := s.Nodes[id]
	n.Status.Machines.Types = types
	s.Nodes[id] = n
}

// An instance with firmware of its own is only placed on a node that has it.
func TestFirmwareIsNeeded(t *testing.T) {
	for _, c := range []struct {
		name   string
		spec   api.InstanceSpec
		has    []string
		reason string // empty: it fits
	}{
		{"a BIOS", api.InstanceSpec{}, nil, ""},
		{"UEFI", api.InstanceSpec{Firmware: api.FirmwareUEFI}, []string{"uefi"}, ""},
		{"no UEFI", api.InstanceSpec{Firmware: api.FirmwareUEFI}, nil, "has no UEFI firmware for guests"},
		{"no Secure Boot", api.InstanceSpec{Firmware: api.FirmwareUEFI, SecureBoot: true}, []string{"uefi", "tpm"}, "has no UEFI firmware with Secure Boot"},
		{"no TPM", api.InstanceSpec{Firmware: api.FirmwareUEFI, TPM: true}, []string{"uefi"}, "has no TPM for guests"},
		{"all", api.InstanceSpec{Firmware: api.FirmwareUEFI, SecureBoot: true, TPM: true}, []string{"uefi", "secureBoot", "tpm"}, ""},
	} {
		n := api.Node{Status: api.NodeStatus{Machines: api.NodeMachines{Firmware: c.has}}}
		if got := canRun(api.Instance{Spec: c.spec}, n); !strings.HasPrefix(got, c.reason) || c.reason == "" && got != "" {
			t.Errorf("canRun(%s) = %q, want %q", c.name, got, c.reason)
		}
	}
}

// A running instance is only migrated to nodes whose processor has the features of its
// own.
func TestRunningInstancesNeedCPUs(t *testing.T) {
	milan := api.CPUModel{Vendor: "AMD", Model: "EPYC-Milan", Features: []string{"aes", "avx", "avx2"}, AddressBits: 48}
	more, less, intel, narrow := milan, milan, milan, milan
	more.Model, more.Features = "EPYC-Genoa", []string{"aes", "avx", "avx2", "avx512f"}
	less.Features = []string{"aes"}
	intel.Vendor = "Intel"
	narrow.AddressBits = 40
	for _, c := range []struct {
		name   string
		runs   api.InstanceCPU
		accel  string
		cpu    api.CPUModel // of n3
		reason string       // empty: it is migrated
	}{
		{"the same", api.InstanceCPU{Class: api.CPUBaseline, CPU: milan}, "kvm", milan, ""},
		{"a better one", api.InstanceCPU{Class: api.CPUBaseline, CPU: milan}, "kvm", more, ""},
		{"a lesser one", api.InstanceCPU{Class: api.CPUBaseline, CPU: milan}, "kvm", less, "n3: its processor lacks avx, avx2"},
		{"another vendor", api.InstanceCPU{Class: api.CPUBaseline, CPU: milan}, "kvm", intel, "n3: its processor is of Intel, not of AMD"},
		{"fewer address bits", api.InstanceCPU{Class: api.CPUBaseline, CPU: milan}, "kvm", narrow, "n3: its processor has 40 address bits, not 48"},
		{"host, the same", api.InstanceCPU{Class: api.CPUHost, CPU: milan}, "kvm", milan, ""},
		{"host, a better one", api.InstanceCPU{Class: api.CPUHost, CPU: milan}, "kvm", more, "n3: its processor is not the same"},
		{"emulated there", api.InstanceCPU{Class: api.CPUBaseline, CPU: milan}, "tcg", api.CPUModel{}, "n3: guests are emulated there"},
		{"emulated here", api.InstanceCPU{Class: api.CPUEmulated}, "kvm", milan, "n3: guests are not emulated there"},
		{"emulated on both", api.InstanceCPU{Class: api.CPUEmulated}, "tcg", api.CPUModel{}, ""},
		{"decided before there were classes", api.InstanceCPU{}, "kvm", less, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := three().instance("a", "flv-1", 0, 0)
			s.on(t, "n2")
			in := s.Instances["a"]
			in.Status.Machine = api.InstanceMachine{Type: "pc-q35-10.0", CPU: c.runs}
			s.Instances["a"] = in
			n := s.Nodes["n3"]
			n.Status.Accelerator, n.Status.Machines = c.accel, api.NodeMachines{Types: []string{"pc-q35-10.0"}, CPU: c.cpu}
			s.Nodes["n3"] = n
			s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: api.MigrationSpec{Instance: "a", Target: "n3"}}
			settle(t, s)
			m := s.Migrations["m"].Assignment
			if c.reason == "" && m.Phase != api.MigrationPreparing || c.reason != "" && (m.Phase != api.MigrationFailed || !strings.Contains(m.Reason, c.reason)) {
				t.Errorf("assignment of the migration = %+v, want the reason %q", m, c.reason)
			}
		})
	}
}

// An instance is only placed where QEMU has the machine type that it first had, both
// when it is migrated and when it is placed again. A node that does not report machine
// types is not excluded.
func TestAMachineTypeIsNeeded(t *testing.T) {
	for _, c := range []struct {
		name   string
		types  []string // of n3
		reason string   // empty: it fits
	}{
		{"the same", []string{"pc-q35-10.0", "pc-q35-9.2"}, ""},
		{"none said", nil, ""},
		{"an older QEMU", []string{"pc-q35-9.2"}, "n3: its QEMU has no machine type pc-q35-10.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := three().instance("a", "flv-1", 0, 0)
			s.on(t, "n2")
			in := s.Instances["a"]
			in.Status.Machine = api.InstanceMachine{Type: "pc-q35-10.0"}
			s.Instances["a"] = in
			s.setMachines("n3", c.types...)
			s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: api.MigrationSpec{Instance: "a", Target: "n3"}}
			settle(t, s)
			m := s.Migrations["m"].Assignment
			if c.reason == "" && m.Phase != api.MigrationPreparing || c.reason != "" && (m.Phase != api.MigrationFailed || !strings.Contains(m.Reason, c.reason)) {
				t.Errorf("assignment of the migration = %+v, want the reason %q", m, c.reason)
			}
		})
	}
	s := three().instance("a", "flv-1", 0, 0)
	in := s.Instances["a"]
	in.Status.Machine = api.InstanceMachine{Type: "pc-q35-10.0"}
	s.Instances["a"] = in
	s.setMachines("n1", "pc-q35-9.2")
	s.setMachines("n2", "pc-q35-10.0")
	s.setMachines("n3", "pc-q35-9.2")
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Node != "n2" {
		t.Errorf("assignment of an instance that is placed again = %+v, want node n2", a)
	}
}
