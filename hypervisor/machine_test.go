package hypervisor

import (
	"slices"
	"testing"
)

func TestParseMachines(t *testing.T) {
	const text = `<capabilities><guest><os_type>hvm</os_type><arch name='i686'><machine>pc-q35-1.0</machine></arch></guest>
<guest><os_type>hvm</os_type><arch name='x86_64'><wordsize>64</wordsize><emulator>/usr/bin/qemu-system-x86_64</emulator>
<machine maxCpus='288' deprecated='yes'>pc-q35-4.0.1</machine><machine maxCpus='288'>pc-q35-9.2</machine>
<machine canonical='pc-q35-10.0' maxCpus='4096'>q35</machine><machine>pc-q35-10.0</machine><machine>pc-i440fx-10.0</machine><machine>microvm</machine>
<domain type='qemu'/><domain type='kvm'/></arch></guest></capabilities>`
	got, err := ParseMachines(text)
	if want := []string{"pc-q35-10.0", "pc-q35-9.2", "pc-q35-4.0.1"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("ParseMachines = %v, %v, want %v", got, err, want)
	}
	if _, err := ParseMachines("<capabilities"); err == nil {
		t.Error("ParseMachines of invalid XML = nil, want an error")
	}
}

func TestCompareMachines(t *testing.T) {
	for _, c := range []struct {
		older, newer string
	}{{"pc-q35-9.2", "pc-q35-10.0"}, {"pc-q35-4.0", "pc-q35-4.0.1"}, {"q35", "pc-q35-2.4"}, {"", "pc-q35-2.4"}} {
		if CompareMachines(c.older, c.newer) >= 0 || CompareMachines(c.newer, c.older) <= 0 {
			t.Errorf("CompareMachines(%q, %q) does not order the first before the second", c.older, c.newer)
		}
	}
	if CompareMachines("pc-q35-10.0", "pc-q35-10.0") != 0 {
		t.Error("CompareMachines of equal machine types is not 0")
	}
}
